"""What a run was made in: versions, machine, drivers, allocator settings.

Reads what is loaded and what the system says; imports and initialises nothing.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import sys
from collections.abc import Callable
from collections.abc import Mapping

from pytest_veo.telemetry import devices


Rows = tuple[tuple[str, str], ...]

_MODULES = ("torch", "cupy", "numba", "jax", "onnxruntime", "rmm", "numpy", "xdist")
_VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_MODULE_LOADING",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "CUPY_ACCELERATORS",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "PYTHONMALLOC",
    "MALLOC_ARENA_MAX",
    "LD_PRELOAD",
)


@functools.cache
def _machine() -> Rows:
    return (
        ("python", platform.python_version()),
        ("implementation", platform.python_implementation()),
        ("system", f"{platform.system()} {platform.release()}"),
        ("machine", platform.machine()),
        ("libc", " ".join(platform.libc_ver()).strip()),
        ("cpus", str(os.cpu_count())),
    )


def describe(extra: Mapping[str, str] | None = None) -> Rows:
    """Name and value of all that is known, sorted by name."""
    rows = dict(_machine())
    rows.update(devices.describe())
    for name in _MODULES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            rows[f"module.{name}"] = version
    for name in _VARIABLES:
        if name in os.environ:
            rows[f"env.{name}"] = os.environ[name]
    rows.update(extra or {})
    return tuple(sorted(rows.items()))


class Surroundings:
    """Names the environment of this process, and describes it when it is new.

    A framework is imported, and a device taken, by the first test that needs it: what
    a run was made in is known bit by bit.

    Args:
        extra: gives more rows.
    """

    def __init__(self, extra: Callable[[], Mapping[str, str]]) -> None:
        self._extra = extra
        self._state: tuple[object, ...] = ()
        self._name = ""
        self._told: set[str] = set()

    def name(self, devices: int) -> tuple[str, Rows]:
        """The environment's name; its rows the first time that it is named.

        Args:
            devices: how many counters of devices were seen so far.
        """
        # Looking at all of it costs more than a test may.
        state = (devices, *(name in sys.modules for name in _MODULES))
        rows: Rows = ()
        if state != self._state:
            self._state = state
            rows = describe(self._extra())
            digest = hashlib.sha256(repr(rows).encode()).hexdigest()
            self._name = digest[:12]
        if self._name in self._told:
            return self._name, ()
        self._told.add(self._name)
        return self._name, rows
