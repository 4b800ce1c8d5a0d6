"""CuPy's default pools: device memory per device, and pinned host memory.

`MemoryPool.used_bytes` answers for the current device only, and to make another
device current would make a context there. The pool keeps one part per device, and
these parts answer without any context; Python's collector knows the way to them.
A part counts the arenas of all its streams.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

from pytest_veo.memory.snapshot import HOST
from pytest_veo.probes.cuda_driver import DriverWatch
from pytest_veo.probes.gauges import Gauge
from pytest_veo.probes.gauges import GaugedProbe
from pytest_veo.probes.gauges import Unreadable


_ROUNDING = 512
_HELD_GATE = 20 << 20
"""What a pool keeps for later is its purpose; less than this is not looked at."""
_OTHER_ALLOCATOR = (
    "the current allocator is not the default pool: what it hands out is not counted"
)


class CupyPoolProbe(GaugedProbe):
    """Counters of CuPy's default pools on every device with a context."""

    name = "cupy"

    def __init__(self, watch: DriverWatch | None = None) -> None:
        super().__init__()
        self._watch = watch or DriverWatch()
        self._unseen: tuple[int, ...] | None = None

    def is_active(self) -> bool:
        """Whether CuPy is imported and this process has held a CUDA context."""
        if "cupy" not in sys.modules:
            return False
        return self._unseen is not None or self._watch.has_any_context()

    def close(self) -> None:
        """Let go of the pools."""
        super().close()
        self._unseen = None

    def _discover(self) -> None:
        cupy = sys.modules["cupy"]
        pool = cupy.get_default_memory_pool()
        driver = self._watch.driver()
        if driver is None:
            return
        if self._unseen is None:
            self._unseen = tuple(range(driver.device_count()))
            self._add_pinned(cupy.get_default_pinned_memory_pool())
            pool.used_bytes()  # CuPy 14 makes the parts at the first question
        for ordinal in self._unseen:
            if not driver.has_context(ordinal):
                continue
            part = _part_of(pool, ordinal)
            if part is not None:
                self._unseen = tuple(left for left in self._unseen if left != ordinal)
                self._add_device(part, driver.device_name(ordinal))
        if getattr(cupy.cuda.get_allocator(), "__self__", None) is pool:
            self._retract(_OTHER_ALLOCATOR)
        else:
            self._report(_OTHER_ALLOCATOR)

    def _add_device(self, part: Any, device: str) -> None:

        def take() -> tuple[int, ...]:
            return part.used_bytes(), part.total_bytes()

        used = self._live("used", device, step=_ROUNDING)
        held = self._held("held", device, gate=_HELD_GATE, step=_ROUNDING)
        self._add_quick(Gauge((used, held), take))

    def _add_pinned(self, pool: Any) -> None:
        def out() -> tuple[int, ...]:
            handed_out, _kept = _pinned_buffers(pool)
            return (_size(handed_out),)

        def held() -> tuple[int, ...]:
            handed_out, kept = _pinned_buffers(pool)
            return (_size(handed_out) + _size(kept),)

        self._add_quick(Gauge((self._live("pinned", HOST),), out))
        self._add_slow(Gauge((self._held("pinned_held", HOST),), held))

    def _bring_to_rest(self) -> None:
        """Wait for the current device.

        The pool itself books a free at once and has nothing to wait for; blocks that
        it keeps stay where they are, for the user's next array.
        """
        runtime = sys.modules["cupy"].cuda.runtime
        driver = self._watch.driver()
        if driver is not None and driver.has_context(runtime.getDevice()):
            runtime.deviceSynchronize()


def _part_of(pool: Any, ordinal: int) -> Any | None:
    """The pool's part for one device; None while it has none there."""
    for found in gc.get_referents(pool):
        if isinstance(found, dict):  # CuPy 13: a part is made at first use
            return found.get(ordinal)
        if isinstance(found, tuple | list):
            return found[ordinal]
    raise Unreadable(f"{type(pool).__name__} does not show its parts")


def _pinned_buffers(pool: Any) -> tuple[list[Any], list[Any]]:
    """Buffers handed out, and buffers kept.

    The first are in a set, in CuPy 13 in a map from addresses; the second are in
    lists, by size.
    """
    out: list[Any] = []
    kept: list[Any] = []
    containers = 0
    for found in gc.get_referents(pool):
        if not isinstance(found, set | dict):
            continue
        containers += 1
        for entry in found if isinstance(found, set) else found.values():
            if isinstance(entry, list):
                kept += entry
            else:
                out.append(entry)
    if containers < 2:
        raise Unreadable(f"{type(pool).__name__} does not show its buffers")
    return out, kept


def _size(buffers: list[Any]) -> int:
    return sum(int(buffer.size) for buffer in buffers)
