"""Threads and children that end by themselves, later than a suspect is waited for.

Re-runs follow each other faster than a timer of half a second ends, so such threads
pile up as if they were never to end. Before they are called a leak they get more time,
once: a test that leaks none never waits. What stays when they have ended is measured
from rest to rest, in rounds of a few runs.
"""

from __future__ import annotations

import dataclasses
import gc
import time
from typing import TYPE_CHECKING

from pytest_veo.measure.amounts import floor_of
from pytest_veo.measure.meter import growth
from pytest_veo.memory.leak import Course
from pytest_veo.memory.snapshot import HOST
from pytest_veo.memory.snapshot import Rung
from pytest_veo.probes.host import CHILDREN
from pytest_veo.probes.host import THREADS


if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence

    from pytest_veo.measure.confirm import Confirmed
    from pytest_veo.measure.confirm import Runs
    from pytest_veo.measure.meter import Glance
    from pytest_veo.measure.meter import Meter
    from pytest_veo.memory.snapshot import Counter


WAITS_S = (0.1, 0.2, 0.4, 0.8, 1.0)
STRAYS_WAITS_S = (0.1, 0.2, 0.4, 0.8)
FEW_STRAYS = 3
"""Fewer are not waited for: a pool's first threads stay."""
_OF_NO_ARENA = (0, 1)
_RUNNERS = (THREADS, CHILDREN)


def has_piled_up(shown: Confirmed) -> bool:
    """Whether re-runs left threads or children."""
    return bool(_left(shown))


def some_have_ended(shown: Confirmed) -> bool:
    """Whether threads or children that had piled up were gone before the last look.

    What the re-runs showed of other counters is muddled then, whatever they grew by.
    """
    return any(
        _has_come_back(shown.series[place], shown.series[place][-1])
        for place in _left(shown)
    )


def ended(
    meter: Meter,
    shown: Confirmed,
    *,
    waits_s: Sequence[float] = WAITS_S,
    sleep: Callable[[float], None] = time.sleep,
) -> Glance | None:
    """The figures once the threads and children that re-runs left have ended.

    If at least half of them have, they end late. None: none was left, or they stay.

    Args:
        meter: what to read.
        shown: what the re-runs showed.
        waits_s: how long to wait, again and again.
        sleep: the clock to wait by.
    """
    runners = _left(shown)
    if not runners:
        return None
    for wait in waits_s:
        sleep(wait)
        gc.collect()
        late = meter.examine()
        if late.layout is not shown.layout:
            return None
        if all(_has_come_back(shown.series[i], late.values[i]) for i in runners):
            return late
    return None


def anything_stays(shown: Confirmed, late: Glance) -> bool:
    """Whether more is left on the host than what ended late may have taken once.

    Args:
        shown: what the re-runs showed.
        late: the figures once threads and children have ended.
    """
    return any(
        counter.device == HOST
        and counter.rung <= Rung.DRIVER
        and late.values[place] - shown.series[place][1]
        >= floor_of(counter, shown.series[place]) * (shown.runs - 1)
        for place, counter in enumerate(shown.layout)
    )


def flat_on_host(shown: Confirmed) -> Confirmed:
    """The same, once all that grew on the host has come back."""
    courses = tuple(
        Course.FLAT if counter.device == HOST else course
        for counter, course in zip(shown.layout, shown.courses, strict=True)
    )
    return shown._replace(courses=courses)


@dataclasses.dataclass(frozen=True, slots=True)
class Rounds:
    """Some runs as one, and a wait until the threads and children of them have ended.

    From rest to rest what ends late is in no figure, and what stays is in each.
    """

    runs: Runs
    meter: Meter
    count: int = 1
    waits_s: Sequence[float] = WAITS_S
    sleep: Callable[[float], None] = time.sleep

    def run(self) -> str:
        """Empty if all of the runs passed, else why one did not."""
        level = self.meter.glance() if self.waits_s else None
        for _ in range(self.count):
            why = self.runs.run()
            if why:
                return why
        for wait in self.waits_s:
            if level is None or not _strays(level, self.meter.glance()):
                break
            self.sleep(wait)
        return ""


def floor_of_round(count: int) -> Callable[[Counter], float]:
    """The mean growth below which a counter is flat over rounds of so many runs."""

    def floor(counter: Counter) -> float:
        return count * floor_of(counter, _OF_NO_ARENA)

    return floor


def by_run(rounds: Confirmed, count: int) -> Confirmed:
    """What rounds of so many runs each showed, as growth a run."""
    return rounds._replace(
        series=tuple(
            tuple(series[0] + (value - series[0]) // count for value in series)
            for series in rounds.series
        ),
        runs=rounds.runs * count,
    )


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


def _left(shown: Confirmed) -> list[int]:
    """Places of the threads and children that piled up, if they did."""
    return [
        place
        for place, counter in enumerate(shown.layout)
        if counter in _RUNNERS
        and max(shown.series[place]) - shown.series[place][0] >= FEW_STRAYS
    ]


def _has_come_back(series: Sequence[int], late: int) -> bool:
    """Whether no more than half of what it grew by is left."""
    return 2 * (late - series[0]) <= max(series) - series[0]
