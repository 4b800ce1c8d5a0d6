"""The probes this package ships, by name, and how they are opened.

A probe's file is imported when the probe is asked for, not before.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from types import MappingProxyType

from pytest_veo.errors import BadSetting
from pytest_veo.errors import ProbeUnavailable
from pytest_veo.memory.snapshot import Trouble
from pytest_veo.probes.base import Probe


Factory = Callable[[], Probe]


def _shipped(module: str, kind: str) -> Factory:
    def make() -> Probe:
        probe: Probe = getattr(importlib.import_module(module), kind)()
        return probe

    return make


CATALOGUE: Mapping[str, Factory] = MappingProxyType(
    {
        "host": _shipped("pytest_veo.probes.host", "HostProbe"),
        "nvml": _shipped("pytest_veo.probes.nvml", "NvmlProbe"),
        "torch": _shipped("pytest_veo.probes.torch_cuda", "TorchCudaProbe"),
        "accelerator": _shipped(
            "pytest_veo.probes.torch_accelerator", "TorchAcceleratorProbe"
        ),
        "cupy": _shipped("pytest_veo.probes.cupy_pool", "CupyPoolProbe"),
        "numba": _shipped("pytest_veo.probes.numba_cuda", "NumbaCudaProbe"),
        "rmm": _shipped("pytest_veo.probes.rmm_stats", "RmmStatsProbe"),
        "jax": _shipped("pytest_veo.probes.jax_arrays", "JaxArraysProbe"),
        "onnxruntime": _shipped(
            "pytest_veo.probes.onnxruntime_sessions", "OnnxruntimeSessionsProbe"
        ),
        "cuda": _shipped("pytest_veo.probes.cuda_objects", "CudaObjectsProbe"),
    }
)
"""Name to factory, in the order in which probes are read and reported."""


@dataclasses.dataclass(frozen=True)
class OpenedProbes:
    """Probes ready to be read, and what kept the others away."""

    ready: tuple[Probe, ...]
    troubles: tuple[Trouble, ...]


def open_probes(
    names: Iterable[str], catalogue: Mapping[str, Factory] = CATALOGUE
) -> OpenedProbes:
    """Open the named probes, in the catalogue's order, each once.

    Args:
        names: words of the catalogue.
        catalogue: the shipped one, or that with a project's own probes added.

    Raises:
        BadSetting: a name that no probe has.
    """
    wanted = set(names)
    for name in sorted(wanted - set(catalogue)):
        raise BadSetting(_unknown(name, catalogue))
    ready: list[Probe] = []
    troubles: list[Trouble] = []
    for name, make in catalogue.items():
        if name not in wanted:
            continue
        probe = make()
        try:
            probe.open()
        except ProbeUnavailable as unavailable:
            troubles.append(Trouble(name, unavailable.reason))
        else:
            ready.append(probe)
    return OpenedProbes(tuple(ready), tuple(troubles))


def _unknown(name: str, catalogue: Mapping[str, Factory]) -> str:
    near = difflib.get_close_matches(name, catalogue, n=1)
    hint = f" did you mean {near[0]!r}?" if near else ""
    known = ", ".join(catalogue)
    return f"unknown probe {name!r}:{hint} known probes are {known}"
