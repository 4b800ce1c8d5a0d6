"""Stands for `pynvml` and the driver under it: two devices, faults on demand."""

from __future__ import annotations

import dataclasses
import os
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.probes.stubs import GPU_0
from tests.probes.stubs import GPU_1
from tests.probes.stubs import install


MIB = 1 << 20
V2 = 0x2000028


class NVMLError(Exception):
    """Stands for `pynvml.NVMLError`; one class an error code, as there."""


WORDS = {
    "Uninitialized": "Uninitialized",
    "InvalidArgument": "Invalid Argument",
    "NotSupported": "Not Supported",
    "NoPermission": "Insufficient Permissions",
    "NotFound": "Not Found",
    "InsufficientSize": "Insufficient Size",
    "DriverNotLoaded": "Driver Not Loaded",
    "LibraryNotFound": "NVML Shared Library Not Found",
    "FunctionNotFound": "Function Not Found",
    "GpuIsLost": "GPU is lost",
    "ResetRequired": "GPU requires restart",
    "LibRmVersionMismatch": "RM has detected an NVML/RM version mismatch.",
    "Timeout": "Timeout",
    "Unknown": "Unknown Error",
    "ArgumentVersionMismatch": "Argument version mismatch",
}
ERRORS: dict[str, type[NVMLError]] = {
    name: type(f"NVMLError_{name}", (NVMLError,), {}) for name in WORDS
}


def error(name: str) -> NVMLError:
    return ERRORS[name](WORDS[name])


@dataclasses.dataclass
class Card:
    """One device, or one slice of one."""

    used: int = 400 * MIB
    reserved: int = 256 * MIB
    compute: list[tuple[int, int | None]] = dataclasses.field(default_factory=list)
    graphics: list[tuple[int, int | None]] = dataclasses.field(default_factory=list)
    is_sliced: bool = False
    slices: list[Card | None] = dataclasses.field(default_factory=list)


class FakeNvml:
    """As much of `pynvml` as the probe may call; counts calls, fails on demand."""

    def __init__(self) -> None:
        self.cards = {
            GPU_0: Card(compute=[(os.getpid(), 300 * MIB), (1, 100 * MIB)]),
            GPU_1: Card(compute=[(os.getpid(), 320 * MIB)]),
        }
        self.faults: dict[str, str | list[str | None]] = {}
        self.calls: deque[str] = deque(maxlen=8)
        self.users = 0

    def fail(self, function: str, *names: str | None) -> None:
        """Fail for good with one error, or call by call (None: that call succeeds)."""
        only = names[0]
        lasts = len(names) == 1 and only is not None
        self.faults[function] = only if lasts and only else list(names)

    def enter(self, function: str) -> None:
        self.calls.append(function)
        fault = self.faults.get(function)
        name = (fault.pop(0) if fault else None) if isinstance(fault, list) else fault
        if name is not None:
            raise error(name)
        if self.users <= 0 and function != "nvmlInit":
            raise error("Uninitialized")

    def init(self) -> None:
        self.enter("nvmlInit")
        self.users += 1

    def shutdown(self) -> None:
        self.enter("nvmlShutdown")
        self.users -= 1

    def by_uuid(self, name: str) -> Card:
        self.enter("nvmlDeviceGetHandleByUUID")
        if name not in self.cards:
            raise error("NotFound")
        return self.cards[name]

    def memory(self, card: Card, version: int | None = None) -> SimpleNamespace:
        self.enter(f"nvmlDeviceGetMemoryInfo{'_v2' if version == V2 else ''}")
        reserved = 0 if version == V2 else card.reserved
        return SimpleNamespace(used=card.used + reserved)

    def lists(self, kind: str, version: str) -> Callable[[Card], list[Any]]:
        def query(card: Card) -> list[Any]:
            self.enter(f"{kind}{version}")
            entries = {"compute": card.compute, "graphics": card.graphics}
            return [
                SimpleNamespace(pid=pid, usedGpuMemory=used)
                for pid, used in entries.get(kind, [])
            ]

        return query

    def mig_mode(self, card: Card) -> tuple[int, int]:
        self.enter("nvmlDeviceGetMigMode")
        return int(card.is_sliced), int(card.is_sliced)

    def most_slices(self, card: Card) -> int:
        self.enter("nvmlDeviceGetMaxMigDeviceCount")
        return len(card.slices)

    def slice_at(self, card: Card, index: int) -> Card:
        self.enter("nvmlDeviceGetMigDeviceHandleByIndex")
        found = card.slices[index]
        if found is None:
            raise error("NotFound")
        return found

    def install(self, monkeypatch: pytest.MonkeyPatch, **changes: object) -> None:
        contents: dict[str, object] = {
            "NVMLError": NVMLError,
            "nvmlMemory_v2": V2,
            "nvmlInit": self.init,
            "nvmlShutdown": self.shutdown,
            "nvmlDeviceGetHandleByUUID": self.by_uuid,
            "nvmlDeviceGetMemoryInfo": self.memory,
            "nvmlDeviceGetMigMode": self.mig_mode,
            "nvmlDeviceGetMaxMigDeviceCount": self.most_slices,
            "nvmlDeviceGetMigDeviceHandleByIndex": self.slice_at,
        }
        contents |= {f"NVMLError_{name}": kind for name, kind in ERRORS.items()}
        kinds = {"Compute": "compute", "Graphics": "graphics", "MPSCompute": "mps"}
        for kind, short in kinds.items():
            for version in ("_v3", "_v2"):
                name = f"nvmlDeviceGet{kind}RunningProcesses{version}"
                contents[name] = self.lists(short, version)
        contents |= changes
        install(monkeypatch, pynvml=contents)
