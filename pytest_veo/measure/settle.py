"""Bringing the process to rest before it is judged.

Only what costs nothing when nothing is wrong stays out of here: this is paid by
tests that look guilty.
"""

from __future__ import annotations

import gc
import sys
import time
from typing import TYPE_CHECKING

from pytest_veo.measure.meter import growth


if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence

    from pytest_veo.measure.meter import Glance
    from pytest_veo.measure.meter import Meter


LONG_WAITS_S = (0.002, 0.005, 0.01, 0.02, 0.04, 0.08)
"""Back-off while threads end, children are reaped and delayed frees arrive."""
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


def settle(
    meter: Meter,
    before: Glance,
    *,
    steps: Callable[[], None] = nothing,
    waits_s: Sequence[float] = LONG_WAITS_S,
    sleep: Callable[[float], None] = time.sleep,
) -> Glance:
    """Synchronise, collect, flush, and read again until nothing more comes back.

    Args:
        meter: what to read.
        before: the figures that ought to be reached again.
        steps: settle steps of other plugins.
        waits_s: how long to wait, again and again, for what time alone brings back.
        sleep: the clock to wait by.
    """
    meter.settle()
    gc.collect()
    steps()
    after = meter.glance()
    for wait in waits_s:
        if not may_come_back(before, after):
            break
        sleep(wait)
        meter.settle()
        gc.collect()
        after = meter.glance()
    return after


def may_come_back(before: Glance, after: Glance) -> bool:
    """Whether a counter that time alone can lower is still up."""
    return any(
        counter.always and change > 0
        for counter, change in zip(after.layout, growth(before, after), strict=True)
    )
