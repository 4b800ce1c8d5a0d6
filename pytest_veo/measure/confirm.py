"""Running a suspect again until its growth stops or has repeated often enough.

The judge must not allocate while it measures: every figure goes into one array of
machine integers that is made beforehand, and nothing else outlives a run.
"""

from __future__ import annotations

import dataclasses
import time
from array import array
from typing import TYPE_CHECKING
from typing import Protocol

from pytest_veo.measure.settle import settle
from pytest_veo.memory.leak import Course
from pytest_veo.memory.leak import course
from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Rung
from pytest_veo.units import Unit


if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence

    from pytest_veo.measure.meter import Glance
    from pytest_veo.measure.meter import Meter


MOST_HANDLES = 40
"""Descriptors, threads or children that confirming may pile up."""
MOST_BYTES = 256 << 20
"""Memory that confirming may pile up, once it has seen a few runs."""


class Runs(Protocol):
    """Runs the suspect again."""

    def run(self) -> str:
        """Empty if the run passed, else why it did not."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far confirming may go."""

    most_runs: int
    time_ns: int
    patience_ns: int
    """Once growth looks steady, keep looking for its end this long: a cache fills
    up, a leak does not."""
    patience_runs: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """What the re-runs showed of each counter."""

    layout: tuple[Counter, ...]
    series: tuple[tuple[int, ...], ...]
    """For each counter its value before the first run, then after each."""
    courses: tuple[Course, ...]
    runs: int
    spent_ns: int
    stopped: str = ""
    """Why running ended early: a failed run, the time, what piled up."""
    layout_changed: bool = False

    def growing(self) -> tuple[int, ...]:
        """Places in `layout` of the counters that go on growing."""
        return tuple(
            index
            for index, course_ in enumerate(self.courses)
            if course_ is Course.GROWING
        )

    @property
    def is_decided(self) -> bool:
        """Whether no counter is left that may or may not grow."""
        return Course.UNDECIDED not in self.courses


def floor_of(counter: Counter) -> float:
    """Mean growth a run below which a counter is called flat."""
    if counter.key == "host.heap":
        return 24.0
    if counter.key == "host.python_blocks":
        return 0.9
    if counter.rung is Rung.DRIVER or not counter.exact:
        return float(max(counter.step, 4096) if counter.unit is Unit.BYTES else 1)
    return 0.3 if counter.unit is Unit.COUNT else 1.0


def large_of(counter: Counter) -> float | None:
    """Even growth a run from which four runs suffice."""
    if counter.key == "host.python_blocks":
        return 500.0
    if counter.unit is Unit.COUNT:
        return None
    if counter.device == "host":
        return float(64 << 10)
    return float(counter.step)


class Confirmation:
    """One suspect's re-runs."""

    def __init__(
        self,
        meter: Meter,
        runs: Runs,
        limits: Limits,
        *,
        steps: Callable[[], None] = lambda: None,
        clock: Callable[[], int] = time.perf_counter_ns,
        tolerated: Callable[[Counter], float] = lambda _: 0.0,
    ) -> None:
        self._meter = meter
        self._runs = runs
        self._limits = limits
        self._steps = steps
        self._clock = clock
        self._tolerated = tolerated

    def go(self, before: Glance) -> Confirmed:
        """Run until the answer is clear or a limit is reached.

        Args:
            before: the settled figures before the first re-run.
        """
        layout = before.layout
        width = len(layout)
        table = array("q", bytes(8 * width * (self._limits.most_runs + 1)))
        table[:width] = array("q", before.values)
        rules = [
            (max(floor_of(c), self._tolerated(c)), large_of(c), c.rung is Rung.DEVICE)
            for c in layout
        ]
        began = self._clock()
        runs, stopped, steady_since = 0, "", 0
        changed = False
        while runs < self._limits.most_runs:
            why = self._runs.run()
            after = settle(self._meter, before, steps=self._steps)
            if after.layout is not layout:
                changed = True
                stopped = "the set of counters changed"
                break
            runs += 1
            table[runs * width : (runs + 1) * width] = array("q", after.values)
            before = after
            if why:
                stopped = why
                break
            spent = self._clock() - began
            if not _is_time_to_look(runs):
                continue
            courses = _courses(table, width, runs, rules)
            if Course.UNDECIDED not in courses and Course.GROWING not in courses:
                break
            if _piled_up(layout, table, width, runs):
                break
            if Course.GROWING in courses:
                steady_since = steady_since or spent
                long_enough = spent - steady_since >= self._limits.patience_ns
                if long_enough or runs >= self._limits.patience_runs:
                    break
            else:
                steady_since = 0
            if spent >= self._limits.time_ns and runs >= 3:
                stopped = "its time was up"
                break
        return Confirmed(
            layout=layout,
            series=tuple(
                tuple(table[i : (runs + 1) * width : width]) for i in range(width)
            ),
            courses=tuple(_courses(table, width, runs, rules)),
            runs=runs,
            spent_ns=self._clock() - began,
            stopped=stopped,
            layout_changed=changed,
        )


def _is_time_to_look(runs: int) -> bool:
    """Looking costs in proportion to the runs made: look ever more seldom."""
    return runs <= 16 or runs % (runs // 8) == 0


def _courses(
    table: array[int],
    width: int,
    runs: int,
    rules: Sequence[tuple[float, float | None, bool]],
) -> list[Course]:
    return [
        Course.FLAT
        if ignored
        else course(table[i : (runs + 1) * width : width], floor=floor, large=large)
        for i, (floor, large, ignored) in enumerate(rules)
    ]


def _piled_up(
    layout: Sequence[Counter], table: array[int], width: int, runs: int
) -> bool:
    if runs < 4:
        return False
    for index, counter in enumerate(layout):
        total = table[runs * width + index] - table[index]
        if counter.always and counter.unit is Unit.COUNT:
            if total >= MOST_HANDLES:
                return True
        elif counter.unit is Unit.BYTES and total >= MOST_BYTES:
            return True
    return False
