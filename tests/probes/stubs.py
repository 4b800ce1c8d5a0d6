"""Stand-ins for what the probes ask: a CUDA driver, and modules to put in place."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from pytest_veo.memory.snapshot import Reading
from pytest_veo.probes.base import Probe
from pytest_veo.probes.cuda_driver import CudaDriver
from pytest_veo.probes.cuda_driver import DriverWatch


UUIDS = (
    "51300000-0000-4000-8000-000000000000",
    "51300000-0000-4000-8000-000000000001",
)
GPU_0, GPU_1 = (f"GPU-{uuid}" for uuid in UUIDS)


class StubDriver(CudaDriver):
    """Two devices; `contexts` says on which of them the process holds a context."""

    def __init__(self) -> None:
        self.contexts: set[int] = set()
        self.refuses_names = False

    def device_count(self) -> int:
        return len(UUIDS)

    def has_context(self, ordinal: int) -> bool:
        return ordinal in self.contexts

    def device_name(self, ordinal: int) -> str:
        if self.refuses_names:
            raise OSError("cuDeviceGetUuid of device 0: CUDA error 999")
        return f"GPU-{UUIDS[ordinal]}"


class StubWatch(DriverWatch):
    """A process that has loaded the driver, or not."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: StubDriver | None = None

    def driver(self) -> StubDriver | None:
        return self.loaded

    def use_device(self, ordinal: int) -> None:
        """Make a context, as the first allocation of a framework does."""
        self.loaded = self.loaded or StubDriver()
        self.loaded.contexts.add(ordinal)


def install(monkeypatch: pytest.MonkeyPatch, **modules: Any) -> None:
    """Put modules into `sys.modules`; `torch__cuda` stands for `torch.cuda`."""
    for name, contents in modules.items():
        module = ModuleType(name.replace("__", "."))
        vars(module).update(
            vars(contents) if not isinstance(contents, dict) else contents
        )
        monkeypatch.setitem(sys.modules, module.__name__, module)


def figures(probe: Probe) -> dict[tuple[str, str], int]:
    """What a glance shows, by counter's name and device."""
    values = probe.glance()
    return {
        (counter.name, counter.device): value
        for counter, value in zip(probe.counters, values, strict=True)
    }


def by_name(readings: tuple[Reading, ...]) -> dict[tuple[str, str], int]:
    """A full reading, by counter's name and device."""
    return {
        (reading.counter.name, reading.counter.device): reading.value
        for reading in readings
    }


def said(probe: Probe) -> list[str]:
    """The probe's troubles as the report prints them."""
    return [str(trouble) for trouble in probe.troubles]
