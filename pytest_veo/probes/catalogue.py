"""The probes this package ships, by name, and how they are opened.

A probe's file is imported when the probe is asked for, not before.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from pytest_veo.errors import ProbeUnavailable
from pytest_veo.memory.snapshot import Trouble
from pytest_veo.probes.base import Probe
from pytest_veo.probes.sleeping import SleepingProbe


Factory = Callable[[], Probe]


def _host() -> Probe:
    from pytest_veo.probes.host import HostProbe

    return HostProbe()


def _asleep(name: str, file: str, kind: str, *modules: str) -> Factory:
    def make() -> Probe:
        module = importlib.import_module(f"pytest_veo.probes.{file}")
        probe: Probe = getattr(module, kind)()
        return probe

    return lambda: SleepingProbe(name, make, modules)


def _nvml() -> Probe:
    from pytest_veo.probes.cuda_driver import DriverWatch

    def make() -> Probe:
        from pytest_veo.probes.nvml import NvmlProbe

        return NvmlProbe()

    # A program may call the driver without any framework.
    watch = DriverWatch()
    return SleepingProbe("nvml", make, (), lambda: watch.driver() is not None)


_CUDA_LIBRARIES = ("torch", "cupy", "numba", "cuda.core")

CATALOGUE: Mapping[str, Factory] = MappingProxyType(
    {
        "host": _host,
        "nvml": _nvml,
        "torch": _asleep("torch", "torch_cuda", "TorchCudaProbe", "torch"),
        "accelerator": _asleep(
            "accelerator", "torch_accelerator", "TorchAcceleratorProbe", "torch"
        ),
        "cupy": _asleep("cupy", "cupy_pool", "CupyPoolProbe", "cupy"),
        "numba": _asleep("numba", "numba_cuda", "NumbaCudaProbe", "numba"),
        "rmm": _asleep("rmm", "rmm_stats", "RmmStatsProbe", "rmm"),
        "jax": _asleep("jax", "jax_arrays", "JaxArraysProbe", "jax"),
        "onnxruntime": _asleep(
            "onnxruntime",
            "onnxruntime_sessions",
            "OnnxruntimeSessionsProbe",
            "onnxruntime",
        ),
        "cuda": _asleep("cuda", "cuda_objects", "CudaObjectsProbe", *_CUDA_LIBRARIES),
    }
)
"""Name to factory, in the order in which probes are read and reported."""


COUNTERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "host": (
            "python_blocks",
            "heap",
            "mapped",
            "shared",
            "threads",
            "descriptors",
            "children",
            "rss",
            "asyncio_tasks",
        ),
        "nvml": ("process", "device_used", "device_used_and_reserved"),
        "torch": (
            "allocated",
            "allocated_peak",
            "allocations",
            "active",
            "requested",
            "reserved",
            "private_pools",
            "pinned",
            "pinned_held",
        ),
        "cupy": ("used", "held", "pinned", "pinned_held"),
        "numba": ("allocations", "allocated", "pending"),
        "rmm": ("allocated", "allocations"),
        "jax": ("arrays", "array_bytes", "allocated", "held"),
        "onnxruntime": ("sessions", "values", "bindings"),
    }
)
"""The counters of probes whose set does not depend on the machine."""


class OpenedProbes(NamedTuple):
    """Probes ready to be read, and what keeps the others away."""

    ready: tuple[Probe, ...]
    troubles: tuple[Trouble, ...]


def open_probes(
    names: Iterable[str], catalogue: Mapping[str, Factory] = CATALOGUE
) -> OpenedProbes:
    """Open the named probes, in the catalogue's order, each once.

    Args:
        names: words of the catalogue, as `settings` checks.
        catalogue: the shipped one, or that with other people's probes added.
    """
    ready: list[Probe] = []
    troubles: list[Trouble] = []
    for name in sorted(set(names), key=list(catalogue).index):
        try:
            probe = catalogue[name]()
            probe.open()
        except ProbeUnavailable as unavailable:
            troubles.append(Trouble(name, unavailable.reason))
        except Exception as error:  # a probe of someone else may fail in any way
            reason = f"{type(error).__name__}: {error}"
            troubles.append(Trouble(name, reason, is_error=True))
        else:
            ready.append(probe)
    return OpenedProbes(tuple(ready), tuple(troubles))
