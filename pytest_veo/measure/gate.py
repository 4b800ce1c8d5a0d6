"""The cheap first look: whose growth is worth a closer one.

What an idle test costs (pytest keeps its reports and ids) is learned from the
session itself, by the number of fixtures a test uses. So is the session's noise: a
suspicion that turned out to be nothing raises the gate, and quiet tests lower it
again. Small suspicions are followed while the confirming credit lasts, large ones
always.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Rung
from pytest_veo.units import Unit


if TYPE_CHECKING:
    from collections.abc import Sequence


LARGE_BLOCKS = 512
"""Python blocks that are as good as 64 KiB."""
LARGE_BYTES = 64 << 10
_ARENA_BYTES = 1 << 20
"""Python's allocator maps and unmaps memory in pieces of this size."""
_WINDOW = 16
_FADE_EVERY = 64
_FADE = 0.5

_FIRST_IDLE = {"host.python_blocks": 35, "host.heap": 304}
"""What an idle test costs before the session has shown it (measured, pytest 9)."""
_NEVER = 1 << 62


@dataclasses.dataclass(frozen=True, slots=True)
class Suspicion:
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
    if counter.rung is Rung.DRIVER and growth % _ARENA_BYTES == 0:
        return False  # most likely Python's own arenas
    return growth >= LARGE_BYTES


class _Floor:
    """The least that a test of one kind has cost of late."""

    __slots__ = ("_coming", "_seen", "cost")

    def __init__(self, cost: int) -> None:
        self.cost = cost
        self._coming = _NEVER
        self._seen = 0

    def saw(self, change: int) -> bool:
        """Learn from one more test; whether `cost` has changed."""
        if change < 0:
            return False
        self._coming = min(self._coming, change)
        self._seen += 1
        if self._seen % _WINDOW == 0:
            cost, self._coming = self._coming, _NEVER
        else:
            cost = min(self.cost, change)
        if cost == self.cost:
            return False
        self.cost = cost
        return True


class Gate:
    """Decides who looks guilty; learns what is normal."""

    def __init__(self) -> None:
        self._floors: dict[tuple[Counter, int], _Floor] = {}
        self._noise: dict[Counter, float] = {}
        self._limits: dict[tuple[int, int], list[int]] = {}
        self._layouts: dict[int, Sequence[Counter]] = {}
        self._quiet = 0

    def is_quiet(
        self, layout: Sequence[Counter], growth: Sequence[int], fixtures: int
    ) -> bool:
        """Whether no counter grew by more than an idle test and the noise.

        Args:
            layout: the counters; the same object as long as they are the same.
            growth: of each.
            fixtures: how many fixtures the test uses.
        """
        limits = self._limits.get((id(layout), fixtures))
        if limits is None:
            limits = self._make_limits(layout, fixtures)
        for change, limit in zip(growth, limits, strict=True):
            if change > limit:
                return False
        return True

    def _make_limits(self, layout: Sequence[Counter], fixtures: int) -> list[int]:
        limits = [self._limit(counter, fixtures) for counter in layout]
        self._layouts[id(layout)] = layout  # keeps the id from being used again
        self._limits[id(layout), fixtures] = limits
        return limits

    def _limit(self, counter: Counter, fixtures: int) -> int:
        if counter.rung is Rung.DEVICE:
            return _NEVER
        idle = self._idle(counter, fixtures)
        return idle + counter.gate + int(self._noise.get(counter, 0))

    def _idle(self, counter: Counter, fixtures: int) -> int:
        floor = self._floors.get((counter, fixtures))
        return floor.cost if floor else _FIRST_IDLE.get(counter.key, 0)

    def suspicions(
        self, layout: Sequence[Counter], growth: Sequence[int], fixtures: int
    ) -> list[Suspicion]:
        """Counters that grew by more than an idle test and the session's noise."""
        found = []
        for counter, change in zip(layout, growth, strict=True):
            if change > self._limit(counter, fixtures):
                excess = change - self._idle(counter, fixtures)
                found.append(Suspicion(counter, excess, is_large(counter, excess)))
        return found

    def saw(
        self, layout: Sequence[Counter], growth: Sequence[int], fixtures: int
    ) -> None:
        """Learn from a test that was not followed up."""
        for counter, change in zip(layout[:2], growth, strict=False):
            if self._floor(counter, fixtures).saw(change):
                self._limits.clear()
        self._quiet += 1
        if self._quiet % _FADE_EVERY == 0 and self._noise:
            for counter in self._noise:
                self._noise[counter] *= _FADE
            self._limits.clear()

    def _floor(self, counter: Counter, fixtures: int) -> _Floor:
        floor = self._floors.get((counter, fixtures))
        if floor is None:
            floor = _Floor(_FIRST_IDLE.get(counter.key, 0))
            self._floors[counter, fixtures] = floor
        return floor

    def cleared(self, suspicions: Sequence[Suspicion]) -> None:
        """Learn from suspicions that turned out to be nothing."""
        for suspicion in suspicions:
            if suspicion.counter.always:
                continue
            known = self._noise.get(suspicion.counter, 0.0)
            noise = min(suspicion.growth, _most_noise(suspicion.counter))
            self._noise[suspicion.counter] = max(known, float(noise))
        self._limits.clear()


def _most_noise(counter: Counter) -> int:
    if counter.unit is Unit.COUNT:
        return LARGE_BLOCKS - 1
    return _ARENA_BYTES if counter.rung is Rung.DRIVER else LARGE_BYTES - 1


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
