"""What a run was made in: versions, machine, drivers, allocator settings.

Reads what is loaded and what the system says; imports and initialises nothing.
"""

from __future__ import annotations

import os
import platform
import sys


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


def describe(extra: dict[str, str] | None = None) -> tuple[tuple[str, str], ...]:
    """Name and value of all that is known, sorted by name."""
    rows = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()).strip(),
        "cpus": str(os.cpu_count()),
    }
    for name in _MODULES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            rows[f"module.{name}"] = version
    for name in _VARIABLES:
        if name in os.environ:
            rows[f"env.{name}"] = os.environ[name]
    rows.update(extra or {})
    return tuple(sorted(rows.items()))
