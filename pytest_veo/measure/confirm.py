"""Running a suspect again until its growth stops or has repeated often enough.

The judge must not allocate while it measures: every figure goes into one array of
machine integers that is made beforehand, and nothing else outlives a run.
"""

from __future__ import annotations

import dataclasses
import time
from array import array
from typing import TYPE_CHECKING
from typing import NamedTuple
from typing import Protocol

from pytest_veo.measure.amounts import SMALL_BYTES
from pytest_veo.measure.amounts import floor_of
from pytest_veo.measure.amounts import is_context
from pytest_veo.measure.amounts import large_of
from pytest_veo.measure.amounts import most_of
from pytest_veo.measure.amounts import tiny_of
from pytest_veo.measure.gate import is_large
from pytest_veo.measure.meter import Glance
from pytest_veo.measure.settle import LONG_WAITS_S
from pytest_veo.measure.settle import SHORT_WAITS_S
from pytest_veo.measure.settle import may_come_back
from pytest_veo.measure.settle import settle
from pytest_veo.memory.leak import SHORT_RUNS
from pytest_veo.memory.leak import Course
from pytest_veo.memory.leak import Rule
from pytest_veo.memory.leak import course
from pytest_veo.memory.leak import deltas
from pytest_veo.memory.leak import longest_pause
from pytest_veo.memory.leak import slope
from pytest_veo.memory.snapshot import HOST
from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Rung
from pytest_veo.probes.host import THREADS
from pytest_veo.units import Unit
from pytest_veo.verdict import SMALL


if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence

    from pytest_veo.measure.limits import Limits
    from pytest_veo.measure.meter import Meter


PILED_UP = "more would have piled up too much"
THREAD_STOCK_BYTES = 256 << 10
"""Freed memory that glibc keeps for one thread and books as in use. This thread's is
full (`stock.refill`); another's fills run by run, for a thousand runs and more."""
OTHERS_SHARE = 0.01
"""Of the time confirming took: other threads that ran for less did nothing."""
LEAST_RUNS_TO_PILE_UP = 5


class Runs(Protocol):
    """Runs the suspect again."""

    def run(self) -> str:
        """Empty if the run passed, else why it did not."""


class Confirmed(NamedTuple):
    """What the re-runs showed of each counter."""

    layout: Sequence[Counter]
    series: tuple[tuple[int, ...], ...]
    """For each counter its value before the first run, then after each."""
    courses: tuple[Course, ...]
    runs: int
    spent_ns: int
    stopped: str = ""
    """Why running ended early."""

    @property
    def run_ns(self) -> int:
        """What one run took, about."""
        return self.spent_ns // max(1, self.runs)

    def growing(self) -> tuple[int, ...]:
        """Places in `layout` of the counters that go on growing."""
        return tuple(
            index
            for index, course_ in enumerate(self.courses)
            if course_ is Course.GROWING
        )

    @property
    def is_small(self) -> bool:
        """Whether nothing that grows does so by a large amount a run."""
        return not any(
            is_large_slope(self.layout[place], self.series[place])
            for place in self.growing()
        )

    @property
    def has_ended(self) -> bool:
        """Whether all that grew has stopped."""
        return self.is_decided and not self.growing() and not self.stopped

    @property
    def fell_at_first(self) -> bool:
        """Whether the first run let go of some of what grows in the others."""
        return any(deltas(self.series[place])[0] < 0 for place in self.growing())

    @property
    def longest_pause(self) -> int:
        """The most runs from one that grew to the next, of what goes on growing."""
        growing = [deltas(self.series[place]) for place in self.growing()]
        return max(map(longest_pause, growing), default=0)

    def slopes(self) -> dict[str, float]:
        """Mean growth a run of each counter of the host."""
        return {
            counter.key: slope(series)
            for counter, series in zip(self.layout, self.series, strict=True)
            if counter.device == HOST
        }

    def likely(self) -> tuple[int, ...]:
        """Places of counters that grew in each run but the first, and no more."""
        return tuple(
            index
            for index, course_ in enumerate(self.courses)
            if course_ is Course.UNDECIDED
            and min(deltas(self.series[index])[1:], default=0) > 0
        )

    def would_pile_up(self, runs: int) -> bool:
        """Whether so many runs more would do harm."""
        return any(
            most is not None and slope(series) * runs >= most
            for most, series in zip(map(most_of, self.layout), self.series, strict=True)
        )

    @property
    def is_of_heap_alone(self) -> bool:
        """Whether only the native heap grows, by little: malloc's stock may fill."""
        growing = self.growing()
        return [self.layout[place].key for place in growing] == ["host.heap"] and (
            slope(self.series[growing[0]]) < SMALL_BYTES
        )

    @property
    def is_decided(self) -> bool:
        """Whether no counter is left that may or may not grow."""
        return Course.UNDECIDED not in self.courses


def is_large_slope(counter: Counter, series: Sequence[int]) -> bool:
    """Whether a run grows it by so much that it is followed up whatever it costs.

    What a device's allocator has handed out is exact, and any of it is worth that.
    """
    per_run = slope(series)
    is_handed_out = counter.device != HOST and counter.rung is Rung.LIVE
    return per_run > 0 and (is_handed_out or is_large(counter, round(per_run)))


def other_threads_ns() -> int:
    """Time on processors of all threads but this one, ended ones included."""
    return time.process_time_ns() - time.thread_time_ns()


@dataclasses.dataclass(frozen=True, slots=True)
class Confirmation:
    """One suspect's re-runs."""

    meter: Meter
    runs: Runs
    limits: Limits
    steps: Callable[[], None] = lambda: None
    """Settle steps of others."""
    clock: Callable[[], int] = time.perf_counter_ns
    others_ns: Callable[[], int] = other_threads_ns
    tolerated: Callable[[Counter], float] = lambda _: 0.0

    def go(self) -> Confirmed:
        """Run until the answer is clear or a limit is reached."""
        table = _Table(self.meter.examine(), self.limits, self.tolerated)
        before = self._settle(table.glance(0), LONG_WAITS_S)
        if before.layout is not table.layout:
            table = _Table(before, self.limits, self.tolerated)
        table.replace_last(before)
        began, others_began_ns = self.clock(), self.others_ns()
        steady_ns, stopped = 0, ""
        ended_ns, shortest_ns = 0, self.limits.time_ns
        waits: Sequence[float] = LONG_WAITS_S
        while table.runs < self.limits.most_runs and not stopped:
            why = self.runs.run()
            after = self._settle(before, waits)
            if after.layout is not table.layout:
                stopped = why or "the set of counters changed while it ran"
                break
            if may_come_back(before, after):
                waits = SHORT_WAITS_S
            table.append(after)
            before = after
            spent_ns = self.clock() - began
            stopped = why or self._out_of_time(spent_ns, table.runs)
            # Runs that had to be waited for are no measure of what quiet ones take.
            shortest_ns = min(shortest_ns, spent_ns - ended_ns)
            ended_ns = spent_ns
            table.quiet_runs = self.limits.quiet_runs_of(shortest_ns)
            if not _is_time_to_look(table.runs):
                continue
            others_ns = self.others_ns() - others_began_ns
            table.have_others_run = others_ns > OTHERS_SHARE * spent_ns
            courses = table.courses()
            if table.is_clear(courses):
                break
            if table.has_piled_up():
                stopped = PILED_UP
                break
            if self._is_too_dear(spent_ns, table):
                stopped = SMALL
                break
            if Course.GROWING not in courses or table.has_open_handles(courses):
                steady_ns = 0
                continue
            steady_ns = steady_ns or spent_ns
            if self._is_steady(spent_ns - steady_ns, table.runs):
                break
        if waits is SHORT_WAITS_S and stopped in ("", PILED_UP):
            # What was not waited for each time gets one long wait at the end.
            late = self._settle(table.glance(0), LONG_WAITS_S)
            if late.layout is table.layout:
                table.replace_last(late)
        return table.confirmed(self.clock() - began, stopped)

    def _settle(self, before: Glance, waits_s: Sequence[float]) -> Glance:
        return settle(
            self.meter, before, steps=self.steps, waits_s=waits_s, examine=True
        )

    def _out_of_time(self, spent_ns: int, runs: int) -> str:
        if spent_ns >= self.limits.time_ns and runs >= 3:
            return "its time was up"
        return ""

    def _is_too_dear(self, spent_ns: int, table: _Table) -> bool:
        most_ns = self.limits.small_ns
        if most_ns is None or spent_ns <= most_ns or table.runs < SHORT_RUNS:
            return False
        return not table.is_any_large()

    def _is_steady(self, patient_ns: int, runs: int) -> bool:
        return (
            patient_ns >= self.limits.patience_ns or runs >= self.limits.patience_runs
        )


class _Table:
    """Every figure of every run, in one array that is made beforehand."""

    def __init__(
        self, start: Glance, limits: Limits, tolerated: Callable[[Counter], float]
    ) -> None:
        self.layout = start.layout
        self.runs = 0
        self._inside = dict(start.layout.inside)
        self._width = len(start.layout)
        self._cells = array("q", bytes(8 * self._width * (limits.most_runs + 1)))
        self._cells[: self._width] = array("q", start.values)
        self._is_hasty = limits.suspects is not None
        self.quiet_runs = limits.quiet_runs
        self.have_others_run = False
        """Whether other threads of the process have done anything meanwhile."""
        self._needed = [
            limits.suspects is None or counter in limits.suspects
            for counter in start.layout
        ]
        self._done = [is_context(counter) for counter in start.layout]
        self._tolerated = [tolerated(counter) for counter in start.layout]

    def append(self, glance: Glance) -> None:
        """Note the figures after one more run."""
        self.runs += 1
        self.replace_last(glance)

    def replace_last(self, glance: Glance) -> None:
        """Note the last run's figures anew; before any, those it begins with."""
        start = self.runs * self._width
        self._cells[start : start + self._width] = array("q", glance.values)

    def glance(self, run: int) -> Glance:
        """The figures after a run; 0: before the first."""
        start = run * self._width
        return Glance(self.layout, tuple(self._cells[start : start + self._width]))

    def series(self, place: int) -> Sequence[int]:
        """One counter's figures; what the driver books, without the pools."""
        series = self._cells[place : (self.runs + 1) * self._width : self._width]
        for inner in self._inside.get(place, ()):
            for run, value in enumerate(self.series(inner)):
                series[run] -= value
        return series

    def courses(self) -> list[Course]:
        """How each counter goes on."""
        return [self._course(place) for place in range(self._width)]

    def _course(self, place: int) -> Course:
        if self._done[place]:
            return Course.FLAT
        counter, series = self.layout[place], self.series(place)
        rule = Rule(
            floor=max(floor_of(counter, series), self._tolerated[place]),
            large=large_of(counter),
            tiny=tiny_of(counter),
            small=SMALL_BYTES if counter.key == "host.heap" else 0.0,
            stock=self._stock_bytes() if counter.key == "host.heap" else 0.0,
            quiet_runs=self.quiet_runs,
        )
        found = course(series, rule)
        self._done[place] = self._is_hasty and found is Course.FLAT
        return found

    def _stock_bytes(self) -> float:
        """What malloc may have laid in for other threads."""
        if not self.have_others_run or THREADS not in self.layout:
            return 0.0
        others = self.series(self.layout.index(THREADS))[-1] - 1
        return float(others * THREAD_STOCK_BYTES)

    def _final_courses(self) -> list[Course]:
        """What nobody needs to know is flat unless it grows."""
        courses = self.courses()
        if Course.GROWING in courses:
            return courses
        return [
            course_ if needed else Course.FLAT
            for needed, course_ in zip(self._needed, courses, strict=True)
        ]

    def is_clear(self, courses: Sequence[Course]) -> bool:
        """Whether nothing grows, nor may grow as far as it matters."""
        return Course.GROWING not in courses and not any(
            needed and course_ is Course.UNDECIDED
            for needed, course_ in zip(self._needed, courses, strict=True)
        )

    def has_open_handles(self, courses: Sequence[Course]) -> bool:
        """Whether handles may still stop growing.

        A pool fills up in its own time, and brings other growth with it.
        """
        return any(
            counter.always
            and counter.unit is Unit.COUNT
            and course_ is Course.UNDECIDED
            for counter, course_ in zip(self.layout, courses, strict=True)
        )

    def is_any_large(self) -> bool:
        """Whether anything still grows by a large amount a run."""
        return any(
            not done and is_large_slope(counter, self.series(place))
            for place, (counter, done) in enumerate(
                zip(self.layout, self._done, strict=True)
            )
        )

    def has_piled_up(self) -> bool:
        """Whether going on would do harm."""
        if self.runs < LEAST_RUNS_TO_PILE_UP:
            return False
        for place, counter in enumerate(self.layout):
            series = self.series(place)
            most = most_of(counter)
            if most is not None and series[-1] - series[0] >= most:
                return True
        return False

    def confirmed(self, spent_ns: int, stopped: str) -> Confirmed:
        """All of it, as a value."""
        return Confirmed(
            layout=self.layout,
            series=tuple(tuple(self.series(i)) for i in range(self._width)),
            courses=tuple(self._final_courses()),
            runs=self.runs,
            spent_ns=spent_ns,
            stopped=stopped,
        )


def _is_time_to_look(runs: int) -> bool:
    """Looking costs in proportion to the runs made: look ever more seldom."""
    return runs <= 16 or runs % (runs // 8) == 0
