"""Threads and children that end by themselves, later than a suspect is waited for.

Re-runs follow each other faster than a timer of half a second ends, so such threads
pile up as if they were never to end. Before they are called a leak they get more time,
once: a test that leaks none never waits.
"""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

from pytest_veo.measure.meter import growth
from pytest_veo.memory.leak import Course
from pytest_veo.memory.snapshot import HOST
from pytest_veo.probes.host import CHILDREN
from pytest_veo.probes.host import THREADS


if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence

    from pytest_veo.measure.confirm import Confirmed
    from pytest_veo.measure.meter import Glance
    from pytest_veo.measure.meter import Meter


WAITS_S = (0.1, 0.2, 0.4, 0.8, 1.0)
STRAYS_WAITS_S = (0.1, 0.2, 0.4, 0.8)
FEW_STRAYS = 3
"""Fewer are not waited for: a pool's first threads stay."""
_RUNNERS = (THREADS, CHILDREN)


def outwaited(
    meter: Meter,
    shown: Confirmed,
    *,
    waits_s: Sequence[float] = WAITS_S,
    sleep: Callable[[float], None] = time.sleep,
) -> Confirmed:
    """What re-runs showed, once threads and children had time to end.

    If at least half of those that the re-runs left have ended, none is a leak. What
    grew on the host with them is theirs as far as can be told: memory that dead
    threads leave to malloc comes back to no figure.

    Args:
        meter: what to read.
        shown: what the re-runs showed.
        waits_s: how long to wait, again and again.
        sleep: the clock to wait by.
    """
    runners = [
        place
        for place, counter in enumerate(shown.layout)
        if counter in _RUNNERS and _piles_up(shown, place)
    ]
    if not runners:
        return shown
    for wait in waits_s:
        sleep(wait)
        gc.collect()
        late = meter.examine()
        if late.layout is not shown.layout:
            return shown
        gone = [_has_come_back(shown.series[i], late.values[i]) for i in runners]
        if all(gone):
            return shown._replace(courses=_courses(shown))
    return shown


def outwait_strays(
    meter: Meter,
    level: Glance,
    *,
    waits_s: Sequence[float] = STRAYS_WAITS_S,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Let the threads and children that re-runs have left end before the next test.

    Those that end while it runs would hide the ones that it leaves.

    Args:
        meter: what to read.
        level: the figures before the re-runs.
        waits_s: how long to wait, again and again.
        sleep: the clock to wait by.
    """
    for wait in waits_s:
        if _strays(level, meter.glance()) < FEW_STRAYS:
            return
        sleep(wait)


def _strays(level: Glance, now: Glance) -> int:
    change = dict(zip(now.layout, growth(level, now), strict=True))
    return sum(max(0, change.get(counter, 0)) for counter in _RUNNERS)


def _piles_up(shown: Confirmed, place: int) -> bool:
    series = shown.series[place]
    is_open = shown.courses[place] is not Course.FLAT
    return is_open and 2 * (series[-1] - series[0]) >= shown.runs


def _courses(shown: Confirmed) -> tuple[Course, ...]:
    return tuple(
        Course.FLAT if counter.device == HOST else course
        for counter, course in zip(shown.layout, shown.courses, strict=True)
    )


def _has_come_back(series: Sequence[int], late: int) -> bool:
    """Whether no more than half of what it grew by is left."""
    return 2 * (late - series[0]) <= max(series) - series[0]
