"""The cheap first look: whose growth is worth a closer one.

What an idle test costs (pytest keeps its reports and ids) is learned from the
session itself, by the number of fixtures a test uses. So is the session's noise: a
suspicion that turned out to be nothing raises the gate, and quiet tests lower it
again. Small suspicions are followed while the confirming credit lasts, large ones
always.
"""

from __future__ import annotations

import dataclasses
from operator import gt
from typing import TYPE_CHECKING
from typing import NamedTuple

from pytest_veo.measure.amounts import ARENA_BYTES
from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Rung
from pytest_veo.units import Unit


if TYPE_CHECKING:
    from collections.abc import Sequence


LARGE_BLOCKS = 512
"""Python blocks that are as good as 64 KiB."""
LARGE_BYTES = 64 << 10
_WINDOW = 16
_TYPICAL = 11
"""Which of the recent costs, in order, stands for them all."""
_LEARN_EVERY = 4
_FADE_EVERY = 512
_FADE = 0.5

_FIRST_IDLE = {"host.python_blocks": (35, 6), "host.heap": (304, 64)}
"""What an idle test costs, and each of its fixtures, before the session has shown it
(measured, pytest 9)."""
_CLEARED_KEPT = 9
_CLEARED_LEAST = 3
_CLEARED_TESTS = 128
"""So few tests, or it is no noise: to look into a rare one costs less than to miss."""
_NEVER = 1 << 62


class Suspicion(NamedTuple):
    """A counter that grew by more than its gate."""

    counter: Counter
    growth: int
    """Beyond what an idle test costs, in the counter's unit."""
    is_large: bool


def is_large(counter: Counter, growth: int) -> bool:
    """Whether growth this large is followed up whatever it costs."""
    if counter.always:
        return True
    if counter.unit is Unit.COUNT:
        return growth >= LARGE_BLOCKS
    if counter.rung is Rung.HELD:
        return False  # a pool grows with use
    if counter.key == "host.mapped" and growth % ARENA_BYTES == 0:
        return False  # most likely Python's own
    return growth >= LARGE_BYTES


def any_large(suspicions: Sequence[Suspicion]) -> bool:
    """Whether one of them is followed up whatever it costs."""
    return any(suspicion.is_large for suspicion in suspicions)


def is_next_arena(suspicion: Suspicion) -> bool:
    """Whether it is most likely that Python's allocator took one more arena."""
    return suspicion.counter.key == "host.mapped" and suspicion.growth == ARENA_BYTES


class Idle:
    """What tests of one kind that turned out to be clean have cost of late."""

    __slots__ = ("_recent", "_turn", "cost")

    def __init__(self, cost: int) -> None:
        self.cost = cost
        self._recent = [cost] * _WINDOW
        self._turn = 0

    def saw(self, change: int) -> bool:
        """Learn from one more; whether `cost` has changed."""
        self._recent[self._turn % _WINDOW] = change
        self._turn += 1
        if self._turn % _LEARN_EVERY and self._turn > _LEARN_EVERY:
            return False
        # Not the least: what one test leaves for the collector varies, and a later
        # test's window may see it go.
        cost = max(0, sorted(self._recent)[_TYPICAL])
        changed = cost != self.cost
        self.cost = cost
        return changed


class _Lane:
    """The tests that use so many fixtures, under one set of counters."""

    __slots__ = ("idle", "layout", "limits")

    def __init__(self, layout: Sequence[Counter], fixtures: int) -> None:
        self.layout = layout
        self.idle: dict[bool, list[tuple[int, Idle]]] = {False: [], True: []}
        for place, counter in enumerate(layout):
            if counter.key in _FIRST_IDLE:
                test, fixture = _FIRST_IDLE[counter.key]
                for settled in (False, True):
                    idle = Idle(test + fixture * fixtures)
                    self.idle[settled].append((place, idle))
        self.limits: list[int] | None = None
        """Of growth before settling; None: to be made anew."""

    def make_limits(self, noise: dict[Counter, float], *, settled: bool) -> list[int]:
        """The most that an innocent test grows by, for each counter."""
        limits = [
            _NEVER
            if counter.rung is Rung.DEVICE
            else counter.gate + int(noise.get(counter, 0))
            for counter in self.layout
        ]
        for place, idle in self.idle[settled]:
            limits[place] += idle.cost
        return limits

    def saw(self, growth: Sequence[int], *, settled: bool) -> None:
        """Learn from a clean test."""
        for place, idle in self.idle[settled]:
            if idle.saw(growth[place]):
                self.limits = None


class Gate:
    """Decides who looks guilty; learns what is normal."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[int, int], _Lane] = {}
        self._noise: dict[Counter, float] = {}
        self._cleared: dict[Counter, list[tuple[int, int]]] = {}
        """The test that each was seen in, and its growth."""
        self._tests = 0
        self._quiet = 0

    def _lane(self, layout: Sequence[Counter], fixtures: int) -> _Lane:
        lane = self._lanes.get((id(layout), fixtures))
        if lane is None:  # a lane holds its layout: the id is not used again
            lane = self._lanes[id(layout), fixtures] = _Lane(layout, fixtures)
        return lane

    def is_quiet(
        self, layout: Sequence[Counter], growth: Sequence[int], fixtures: int
    ) -> bool:
        """Whether no counter grew by more than an idle test and the noise.

        Args:
            layout: the counters; the same object as long as they are the same.
            growth: of each, before anything was settled.
            fixtures: how many fixtures the test uses.
        """
        self._tests += 1
        lane = self._lanes.get((id(layout), fixtures))
        if lane is None:
            lane = self._lane(layout, fixtures)
        limits = lane.limits
        if limits is None:
            limits = lane.limits = lane.make_limits(self._noise, settled=False)
        return not any(map(gt, growth, limits))

    def suspicions(
        self, layout: Sequence[Counter], growth: Sequence[int], fixtures: int
    ) -> list[Suspicion]:
        """Counters that, settled, grew by more than an idle test and the noise."""
        lane = self._lane(layout, fixtures)
        limits = lane.make_limits(self._noise, settled=True)
        idle = dict(lane.idle[True])
        found = []
        for place, (change, limit) in enumerate(zip(growth, limits, strict=True)):
            if change > limit:
                counter = layout[place]
                excess = change - (idle[place].cost if place in idle else 0)
                found.append(Suspicion(counter, excess, is_large(counter, excess)))
        return found

    def saw(
        self,
        layout: Sequence[Counter],
        growth: Sequence[int],
        fixtures: int,
        *,
        settled: bool = False,
    ) -> None:
        """Learn from a test that was clean: as it ended, or once settled."""
        self._lane(layout, fixtures).saw(growth, settled=settled)
        self._quiet += 1
        if self._noise and self._quiet % _FADE_EVERY == 0:
            for counter in self._noise:
                self._noise[counter] *= _FADE
            self._forget_limits()

    def cleared(self, suspicions: Sequence[Suspicion]) -> None:
        """Learn from suspicions that turned out to be nothing."""
        for suspicion in suspicions:
            if suspicion.counter.always:
                continue
            known = self._cleared.setdefault(suspicion.counter, [])
            growth = min(suspicion.growth, _most_noise(suspicion.counter))
            known.append((self._tests, growth))
            del known[:-_CLEARED_KEPT]
            since = self._tests - _CLEARED_TESTS
            recent = sorted(growth for test, growth in known if test > since)
            if len(recent) >= _CLEARED_LEAST:
                # Not the largest: the first use of something is no noise.
                self._noise[suspicion.counter] = float(recent[-2])
        self._forget_limits()

    @property
    def is_experienced(self) -> bool:
        """Whether suspicions have come to nothing before."""
        return any(len(seen) >= _CLEARED_LEAST for seen in self._cleared.values())

    def _forget_limits(self) -> None:
        for lane in self._lanes.values():
            lane.limits = None


def _most_noise(counter: Counter) -> int:
    if counter.unit is Unit.COUNT:
        return LARGE_BLOCKS - 1
    return ARENA_BYTES if counter.rung is Rung.DRIVER else LARGE_BYTES - 1


@dataclasses.dataclass(slots=True)
class Credit:
    """Time that confirming may still take."""

    left_ns: int
    share: float
    """Of the tests' own time, added as they run."""

    def earn(self, test_ns: int) -> None:
        """A test has run for so long."""
        self.left_ns += int(test_ns * self.share)

    def spend(self, confirm_ns: int) -> None:
        """Confirming has taken so long; large suspicions may overdraw."""
        self.left_ns -= confirm_ns

    def affords(self, expected_ns: int) -> bool:
        """Whether a small suspicion may be followed."""
        return self.left_ns > expected_ns
