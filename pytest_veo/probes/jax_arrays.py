"""JAX: what its allocators have handed out, and which arrays are alive.

Asked of backends that are initialised already. JAX takes most of a device at its
first use and keeps it, so the driver's figures say nothing about its arrays.
"""

from __future__ import annotations

import sys
from typing import Any

from pytest_veo.memory.snapshot import HOST
from pytest_veo.memory.snapshot import Counter
from pytest_veo.probes.cuda_driver import DriverWatch
from pytest_veo.probes.gauges import Gauge
from pytest_veo.probes.gauges import GaugedProbe
from pytest_veo.units import Unit


_EXTENSIONS = ("jaxlib._jax", "jaxlib.xla_extension")
"""JAX's C++ part, by its name of today and of before 0.6."""
_BRIDGE = "jax._src.xla_bridge"
_CUDA_PLATFORMS = frozenset({"cuda", "gpu"})


class JaxArraysProbe(GaugedProbe):
    """Counters of every initialised backend of JAX."""

    name = "jax"

    def __init__(self, watch: DriverWatch | None = None) -> None:
        super().__init__()
        self._watch = watch or DriverWatch()
        self._platforms: set[str] = set()

    def is_active(self) -> bool:
        """Whether a backend of JAX is initialised."""
        return "jax" in sys.modules and bool(_backends())

    def close(self) -> None:
        """Let go of the backends."""
        super().close()
        self._platforms = set()

    def _discover(self) -> None:
        if not self._platforms:
            self._add_arrays()
        for platform, backend in _backends().items():
            if platform not in self._platforms:
                self._platforms.add(platform)
                for device in backend.local_devices():
                    self._add_device(device, self._name_of(platform, device))

    def _add_arrays(self) -> None:
        arrays = Counter(probe=self.name, name="arrays", unit=Unit.COUNT)
        array_bytes = Counter(probe=self.name, name="array_bytes", unit=Unit.BYTES)
        self._add_quick(Gauge((arrays,), lambda: (len(_live_arrays()),)))
        self._add_slow(Gauge((array_bytes,), lambda: (_bytes_of(_live_arrays()),)))

    def _add_device(self, device: Any, name: str) -> None:
        stats = device.memory_stats()
        if stats is None:
            if name != HOST:
                self._report("memory_stats() is None under this allocator", name)
            return

        def allocated() -> tuple[int, ...]:
            return (device.memory_stats()["bytes_in_use"],)

        def held() -> tuple[int, ...]:
            return (device.memory_stats()["pool_bytes"],)

        self._add_quick(Gauge((self._live("allocated", name),), allocated))
        if "pool_bytes" in stats:
            self._add_slow(Gauge((self._held("held", name),), held))

    def _name_of(self, platform: str, device: Any) -> str:
        if platform == "cpu":
            return HOST
        driver = self._watch.driver() if platform in _CUDA_PLATFORMS else None
        if driver is None:
            return f"{platform}:{device.id}"
        return driver.device_name(device.local_hardware_id)

    def _bring_to_rest(self) -> None:
        """Wait for arrays that are still being computed; let go of what is done with.

        JAX keeps what it copied from until its next call or the next collection.
        """
        for array in _live_arrays():
            try:
                array.block_until_ready()
            except RuntimeError:
                continue  # its computation failed: its own test says so
        for module in _EXTENSIONS:
            let_go = getattr(sys.modules.get(module), "collect_garbage", None)
            if let_go is not None:
                let_go()


def _backends() -> dict[str, Any]:
    """Platform to backend. Read, not asked for: JAX would initialise them all."""
    bridge = sys.modules.get(_BRIDGE)
    backends: dict[str, Any] = getattr(bridge, "_backends", {})
    return backends


def _live_arrays() -> list[Any]:
    return [
        array for backend in _backends().values() for array in backend.live_arrays()
    ]


def _bytes_of(arrays: list[Any]) -> int:
    return sum(int(array.nbytes) for array in arrays)
