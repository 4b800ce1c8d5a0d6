"""Bringing the process to rest before it is judged.

Only what costs nothing when nothing is wrong stays out of here: this is paid by
tests that look guilty.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import deque
from typing import TYPE_CHECKING

from pytest_veo.measure.meter import growth
from pytest_veo.probes.host import BLOCKS


if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence

    from pytest_veo.measure.meter import Glance
    from pytest_veo.measure.meter import Meter


LONG_WAITS_S = (0.002, 0.005, 0.01, 0.02, 0.04, 0.08)
"""Back-off while threads end, children are reaped and delayed frees arrive."""
BUFFER_BYTES = 64 << 10
"""Heap that may be a device's buffer on the host, still to be given back."""
SHORT_WAITS_S = (0.002, 0.005)
"""The same, once a long wait has brought nothing back."""


def nothing() -> None:
    """No further steps."""


def forget_attribute_names() -> None:
    """Empty the interpreter's cache of attribute look-ups.

    It holds up to 4096 names, those made up at run time too, and fills for hundreds
    of runs: growth in small steps that is nobody's leak.
    """
    for name in ("_clear_type_cache", "_clear_internal_caches"):
        if hasattr(sys, name):
            getattr(sys, name)()
            return


class Spares:
    """The interpreter's free lists: blocks it keeps in stock for the next objects.

    A full collection empties them, which would hide growth of some hundred blocks
    from whoever compares figures taken before and after it. They fill again with the
    next test. What they held is seen whenever a full collection finds no garbage.
    """

    def __init__(self) -> None:
        self._seen: deque[int] = deque(maxlen=9)
        self._blocks = 0

    def collect(
        self, glance: Callable[[], Glance], read: Callable[[], Glance]
    ) -> Glance:
        """Collect everything and read, as if the lists held what they mostly do.

        Args:
            glance: gives the cheap figures.
            read: gives the figures that are wanted, once all is collected.
        """
        full = glance()
        if not gc.collect():
            self._seen.append(max(0, _blocks(full) - _blocks(glance())))
            # Not the latest: a test that makes many objects leaves thousands.
            self._blocks = sorted(self._seen)[len(self._seen) // 4]
        return _with_blocks(read(), self._blocks)


def _blocks(glance: Glance) -> int:
    layout = glance.layout
    return glance.values[0] if layout and layout[0] is BLOCKS else 0


def _with_blocks(glance: Glance, spare: int) -> Glance:
    if not spare or not glance.layout or glance.layout[0] is not BLOCKS:
        return glance
    return glance._replace(values=(glance.values[0] + spare, *glance.values[1:]))


def settle(
    meter: Meter,
    before: Glance,
    *,
    steps: Callable[[], None] = nothing,
    waits_s: Sequence[float] = LONG_WAITS_S,
    examine: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> Glance:
    """Synchronise, collect, flush, and read again until nothing more comes back.

    Args:
        meter: what to read.
        before: the figures that ought to be reached again.
        steps: settle steps of other plugins.
        waits_s: how long to wait, again and again, for what time alone brings back.
        examine: read the dear figures, too.
        sleep: the clock to wait by.
    """
    look = meter.examine if examine else meter.glance
    meter.settle()
    gc.collect()
    steps()
    after = look()
    for wait in waits_s:
        if not may_come_back(before, after):
            break
        sleep(wait)
        meter.settle()
        gc.collect()
        after = look()
    return after


def wait(
    meter: Meter, before: Glance, sleep: Callable[[float], None] = time.sleep
) -> Glance:
    """Synchronise and read until nothing more comes back by itself; collect nothing.

    JAX gives a block back a little after its array, and its buffer on the host a
    little after that: neither is the collector's doing.
    """
    meter.settle()
    after = meter.glance()
    for seconds in LONG_WAITS_S[:4]:
        if not (may_come_back(before, after) or _heap_is_up(before, after)):
            break
        sleep(seconds)
        meter.settle()
        after = meter.glance()
    return after


def _heap_is_up(before: Glance, after: Glance) -> bool:
    place = after.layout.heap_place
    return place >= 0 and growth(before, after)[place] >= BUFFER_BYTES


def may_come_back(before: Glance, after: Glance) -> bool:
    """Whether a counter that time alone can lower is still up."""
    return any(
        counter.always and change > 0
        for counter, change in zip(after.layout, growth(before, after), strict=True)
    )
