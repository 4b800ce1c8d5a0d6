"""Stands for PyTorch built for CUDA: as much of it as the probe may touch."""

from __future__ import annotations

from collections import deque
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tests.probes.stubs import UUIDS
from tests.probes.stubs import install


class OutOfMemoryError(RuntimeError):
    """Stands for `torch.cuda.OutOfMemoryError`."""


class Allocator:
    """One device's caching allocator, as `_cuda_memoryStats` shows it."""

    def __init__(self) -> None:
        self.allocated = 0
        self.waiting = 0
        self.requested = 0
        self.allocations = 0
        self.reserved = 0
        self.reserved_peak = 0
        self.private: dict[tuple[int, int], int] = {}
        self.segment_bytes = 0

    def allocate(self, size: int) -> None:
        rounded = -(-size // 512) * 512
        self.allocated += rounded
        self.requested += size
        self.allocations += 1
        self.segment_bytes += 0 if self.reserved else 2 << 20
        self.reserved = self.reserved_peak = max(self.reserved, 2 << 20)

    def capture(self, pool: tuple[int, int], size: int) -> None:
        """A graph takes a pool of its own."""
        self.private[pool] = size
        self.segment_bytes += size


def stat(current: int, peak: int = 0, allocated: int = 0) -> dict[str, Any]:
    figures = {"current": current, "peak": max(current, peak)}
    return {"all": {**figures, "allocated": allocated, "freed": 0}}


class FakeTorch:
    """As much of PyTorch as the probe may touch; anything more raises."""

    def __init__(self, *, has_private_pools: bool = True) -> None:
        self.is_initialized: object = True
        self.backend = "native"
        self.devices = [Allocator(), Allocator()]
        self.contexts = {0}
        self.has_private_pools = has_private_pools
        self.pinned = 0
        self.accelerator = "cuda"
        self.asked: deque[bool] = deque(maxlen=8)
        self.error: Exception | None = None
        self.sync_errors: dict[int, Exception] = {}
        self.synchronized: list[int] = []
        self.is_capturing = False
        self.is_full = False
        self.uuids: list[object] = list(UUIDS)

    def memory_stats(self, ordinal: int, *, is_short: bool = False) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        device = self.devices[ordinal]
        stats: dict[str, Any] = {
            "allocated_bytes": stat(device.allocated),
            "allocation": stat(device.allocations),
            "active_bytes": stat(device.allocated + device.waiting),
            "reserved_bytes": stat(
                device.reserved, device.reserved_peak, device.segment_bytes
            ),
            "requested_bytes": stat(device.requested),
        }
        self.asked.append(is_short)
        if self.has_private_pools and not is_short:
            pools = {pool: stat(size) for pool, size in device.private.items()}
            stats["reserved_bytes_by_private_pools"] = pools
        return stats

    def host_stats(self) -> dict[str, dict[str, int]]:
        if self.error is not None:
            raise self.error
        return {
            "active_bytes": {"current": self.pinned},
            "allocated_bytes": {"current": 1 << 20},
        }

    def synchronize(self, ordinal: int) -> None:
        if ordinal in self.sync_errors:
            raise self.sync_errors[ordinal]
        self.synchronized.append(ordinal)

    def empty(self, size: int, *, dtype: str, **where: object) -> None:
        """Serving a request books what came back."""
        if self.is_full:
            raise OutOfMemoryError("out of memory")
        if "device" in where:
            self.devices[int(str(where["device"]).removeprefix("cuda:"))].waiting = 0
        else:
            self.pinned = 0

    def snapshot(self) -> list[dict[str, Any]]:
        return [
            {"device": ordinal, "total_size": size, "segment_pool_id": pool}
            for ordinal, device in enumerate(self.devices)
            for pool, size in {**device.private, (0, 0): device.reserved}.items()
        ]

    def properties(self, ordinal: int) -> SimpleNamespace:
        uuid = self.uuids[ordinal]
        return SimpleNamespace(uuid=uuid) if uuid else SimpleNamespace()

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cuda = SimpleNamespace(
            is_initialized=lambda: self.is_initialized,
            device_count=lambda: len(self.devices),
            get_allocator_backend=lambda: self.backend,
            get_device_properties=self.properties,
            is_current_stream_capturing=lambda: self.is_capturing,
            synchronize=self.synchronize,
            memory_snapshot=self.snapshot,
            OutOfMemoryError=OutOfMemoryError,
        )
        core = SimpleNamespace(
            _cuda_memoryStats=self.memory_stats,
            _accelerator_getDeviceStats=partial(self.memory_stats, is_short=True),
            _cuda_hostMemoryStats=self.host_stats,
            _cuda_hasPrimaryContext=lambda ordinal: ordinal in self.contexts,
        )
        accelerator = SimpleNamespace(
            current_accelerator=lambda: SimpleNamespace(type=self.accelerator)
        )
        torch = SimpleNamespace(
            __version__="2.14.1",
            _C=core,
            accelerator=accelerator,
            cuda=cuda,
            empty=self.empty,
            uint8="uint8",
        )
        install(monkeypatch, torch=torch, torch__cuda=cuda, torch___C=core)
        self.core = core
