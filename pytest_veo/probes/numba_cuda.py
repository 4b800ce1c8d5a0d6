"""Numba's CUDA contexts: live allocations, and frees that wait in two queues.

An array that dies leaves the list of allocations at once; its `cuMemFree` waits in
`memory_manager.deallocations`. Modules, streams and events wait in another queue,
`context.deallocations`. Clearing one does not clear the other.
"""

from __future__ import annotations

import sys
from typing import Any

from pytest_veo.probes.gauges import Gauge
from pytest_veo.probes.gauges import GaugedProbe
from pytest_veo.units import Unit


_DRIVER = "numba.cuda.cudadrv.driver"
_CONFIGS = ("numba.core.config", "numba.cuda.core.config")
_OWN_MANAGER = "NumbaCUDAMemoryManager"
_SIMULATED = "the CUDA simulator (NUMBA_ENABLE_CUDASIM) has no device memory"


class NumbaCudaProbe(GaugedProbe):
    """Counters of every device on which Numba has made a context."""

    name = "numba"

    def __init__(self) -> None:
        super().__init__()
        self._watched: dict[int, Any] = {}

    def is_active(self) -> bool:
        """Whether Numba has made a CUDA context, or only simulates one."""
        if "numba.cuda" not in sys.modules:
            return False
        return _is_simulated() or bool(_devices_in_use())

    def close(self) -> None:
        """Let go of the devices."""
        super().close()
        self._watched = {}

    def _discover(self) -> None:
        if _is_simulated():
            self._report(_SIMULATED)
            return
        for ordinal, device in _devices_in_use():
            if ordinal not in self._watched:
                self._watched[ordinal] = device
                self._add_device(device)

    def _add_device(self, device: Any) -> None:
        name = str(device.uuid)
        manager = type(device.primary_context.memory_manager).__name__
        if manager != _OWN_MANAGER:
            self._report(f"the memory manager {manager} keeps its own books", name)
            return

        def allocations() -> tuple[int, ...]:
            return (len(_allocations(device)),)

        def allocated() -> tuple[int, ...]:
            return (sum(int(memory.size) for memory in _allocations(device).values()),)

        def pending() -> tuple[int, ...]:
            return (sum(map(len, _queues(device))),)

        count = self._live("allocations", name, Unit.COUNT)
        self._add_quick(Gauge((count,), allocations))
        self._add_slow(Gauge((self._live("allocated", name),), allocated))
        self._add_slow(Gauge((self._held("pending", name, Unit.COUNT),), pending))

    def _bring_to_rest(self) -> None:
        """Wait for each device and flush both of its queues.

        A queue that the user keeps shut (`defer_cleanup`) stays shut.
        """
        for device in self._watched.values():
            context = device.primary_context
            if context is None:
                continue
            context.push()
            try:
                context.synchronize()
                for queue in _queues(device):
                    queue.clear()
            finally:
                context.pop()


def _is_simulated() -> bool:
    return any(
        bool(getattr(sys.modules.get(config), "ENABLE_CUDASIM", False))
        for config in _CONFIGS
    )


def _devices_in_use() -> list[tuple[int, Any]]:
    module = sys.modules.get(_DRIVER)
    driver = getattr(module, "driver", None)
    if driver is None:
        return []
    return [
        (ordinal, device)
        for ordinal, device in list(driver.devices.items())
        if device.primary_context is not None
    ]


def _allocations(device: Any) -> dict[Any, Any]:
    context = device.primary_context
    if context is None:
        return {}  # the context was closed, and all it had went with it
    allocations: dict[Any, Any] = context.memory_manager.allocations
    return allocations


def _queues(device: Any) -> tuple[Any, ...]:
    context = device.primary_context
    if context is None:
        return ()
    return context.memory_manager.deallocations, context.deallocations
