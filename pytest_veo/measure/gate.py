"""The cheap first look: whose growth is worth a closer one.

What an idle test costs (pytest keeps its reports and ids) is learned from the
session itself, by the number of fixtures a test uses. So is the session's noise: a
suspicion that turned out to be nothing raises the gate, and quiet tests lower it
again. Small suspicions are followed while the confirming credit lasts, large ones
always.
"""

from __future__ import annotations

import dataclasses
from collections import deque
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
_FADE = 0.98

_FIRST_IDLE = {"host.python_blocks": 35, "host.heap": 304}
"""What an idle test costs before the session has shown it (measured, pytest 9)."""


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


class Gate:
    """Decides who looks guilty; learns what is normal."""

    def __init__(self) -> None:
        self._idle: dict[tuple[str, int], deque[int]] = {}
        self._noise: dict[Counter, float] = {}

    def suspicions(
        self, layout: Sequence[Counter], growth: Sequence[int], fixtures: int
    ) -> list[Suspicion]:
        """Counters that grew by more than an idle test and the session's noise."""
        found = []
        for counter, change in zip(layout, growth, strict=True):
            if change <= 0 or counter.rung is Rung.DEVICE:
                continue
            excess = change - self._idle_cost(counter, fixtures)
            if excess > counter.gate + self._noise.get(counter, 0):
                found.append(Suspicion(counter, excess, is_large(counter, excess)))
        return found

    def _idle_cost(self, counter: Counter, fixtures: int) -> int:
        if counter.key not in _FIRST_IDLE:
            return 0
        seen = self._idle.get((counter.key, fixtures))
        return min(seen) if seen else _FIRST_IDLE[counter.key]

    def saw(
        self, layout: Sequence[Counter], growth: Sequence[int], fixtures: int
    ) -> None:
        """Learn from a test that was not followed up."""
        for counter, change in zip(layout, growth, strict=True):
            if counter.key in _FIRST_IDLE and change >= 0:
                key = (counter.key, fixtures)
                self._idle.setdefault(key, deque(maxlen=_WINDOW)).append(change)
        for counter in self._noise:
            self._noise[counter] *= _FADE

    def cleared(self, suspicions: Sequence[Suspicion]) -> None:
        """Learn from suspicions that turned out to be nothing."""
        for suspicion in suspicions:
            if suspicion.counter.always:
                continue
            known = self._noise.get(suspicion.counter, 0.0)
            noise = min(suspicion.growth, _most_noise(suspicion.counter))
            self._noise[suspicion.counter] = max(known, float(noise))


def _most_noise(counter: Counter) -> int:
    if counter.unit is Unit.COUNT:
        return LARGE_BLOCKS
    return _ARENA_BYTES if counter.rung is Rung.DRIVER else LARGE_BYTES


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
