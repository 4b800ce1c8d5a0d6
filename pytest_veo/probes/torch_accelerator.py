"""PyTorch's allocators on accelerators other than CUDA: XPU, MPS and plug-ins.

The device's allocator must be initialised by the user: several of the functions here
would initialise it.
"""

from __future__ import annotations

import sys
from typing import Any

from pytest_veo.probes.gauges import Gauge
from pytest_veo.probes.gauges import GaugedProbe
from pytest_veo.units import Unit


_HELD_GATE = 20 << 20


class TorchAcceleratorProbe(GaugedProbe):
    """Counters of every device of the one accelerator this PyTorch is built for."""

    name = "accelerator"

    def __init__(self) -> None:
        super().__init__()
        self._unseen: tuple[int, ...] | None = None
        self._kind = ""

    def is_active(self) -> bool:
        """Whether the accelerator's allocator is initialised, and is not CUDA's."""
        if "torch.accelerator" not in sys.modules:
            return False
        if self._kind:
            return self._kind != "cuda"
        core = sys.modules.get("torch._C")
        is_initialized = getattr(core, "_accelerator_isAllocatorInitialized", None)
        if is_initialized is None or is_initialized() is not True:
            return False
        self._kind = _kind_of_accelerator()
        return self._kind != "cuda"

    def close(self) -> None:
        """Let go of the devices."""
        super().close()
        self._unseen = None
        self._kind = ""

    def _discover(self) -> None:
        torch = sys.modules["torch"]
        if self._unseen is None:
            is_mps = self._kind == "mps"
            self._unseen = (
                () if is_mps else tuple(range(torch.accelerator.device_count()))
            )
            if is_mps:
                self._add_mps(torch)
        for ordinal in self._unseen:
            stats = torch._C._accelerator_getDeviceStats(ordinal)
            if stats["reserved_bytes"]["all"]["peak"] > 0:
                self._unseen = tuple(left for left in self._unseen if left != ordinal)
                self._add_device(torch, ordinal)

    def _add_device(self, torch: Any, ordinal: int) -> None:
        def take() -> tuple[int, ...]:
            stats = torch._C._accelerator_getDeviceStats(ordinal)
            return (
                stats["allocated_bytes"]["all"]["current"],
                stats["allocation"]["all"]["current"],
                stats["reserved_bytes"]["all"]["current"],
            )

        device = _name_of(torch, self._kind, ordinal)
        counters = (
            self._live("allocated", device),
            self._live("allocations", device, Unit.COUNT),
            self._held("reserved", device, gate=_HELD_GATE),
        )
        self._add_quick(Gauge(counters, take))

    def _add_mps(self, torch: Any) -> None:
        """Metal has one device, and no count of allocations."""

        def take() -> tuple[int, ...]:
            return (
                torch._C._mps_currentAllocatedMemory(),
                torch._C._mps_driverAllocatedMemory(),
            )

        self._report("Metal's allocator does not count it", "mps", "allocations")
        counters = (
            self._live("allocated", "mps"),
            self._held("reserved", "mps", gate=_HELD_GATE),
        )
        self._add_quick(Gauge(counters, take))

    def _bring_to_rest(self) -> None:
        """Wait for the current device."""
        if self.counters:
            sys.modules["torch"].accelerator.synchronize()


def _kind_of_accelerator() -> str:
    """The accelerator this PyTorch is built for; asks no device."""
    return str(sys.modules["torch.accelerator"].current_accelerator().type)


def _name_of(torch: Any, kind: str, ordinal: int) -> str:
    """`GPU-<uuid>` where the backend tells it."""
    backend = getattr(torch, kind, None)
    properties_of = getattr(backend, "get_device_properties", None)
    if properties_of is None:
        return f"{kind}:{ordinal}"
    uuid = getattr(properties_of(ordinal), "uuid", None)
    return f"GPU-{uuid}" if uuid is not None else f"{kind}:{ordinal}"
