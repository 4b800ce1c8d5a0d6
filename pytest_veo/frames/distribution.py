"""How frame times are spread: quantiles, jitter, and what the clock could resolve."""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections.abc import Callable
from collections.abc import Sequence
from typing import Literal

import numpy as np

from pytest_veo.frames.series import Event
from pytest_veo.frames.series import Float64s
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.series import Int64s


MAD_SCALE = 1.4826
"""Makes the median absolute deviation of normal frame times their deviation."""

_UINT32_MAX = int(np.iinfo(np.uint32).max)
_MIN_FOR_QUANTUM = 16
_CHUNK = 4096


class Ordered:
    """Frame times in order, for every rank that is asked for.

    Args:
        values: shape (n,); kept as a sorted copy.
    """

    def __init__(self, values: Int64s) -> None:
        # Above the least they nearly always fit in half the bytes, and then sort in
        # two thirds of the time. All are whole numbers: nothing is lost.
        self._least = int(values.min(initial=0))
        most = int(values.max(initial=0)) - self._least
        self._least = self._least if most <= _UINT32_MAX else 0
        kind = np.uint32 if most <= _UINT32_MAX else np.int64
        self._above = np.empty(values.size, kind)
        np.subtract(values, self._least, out=self._above, casting="unsafe")
        self._above.sort()

    def __len__(self) -> int:
        return int(self._above.size)

    def at(self, rank: int) -> float:
        """The value at this rank, counted from 0."""
        return float(self._whole(rank))

    def quantile(self, share: float) -> float:
        """Quantile by linear interpolation (R7, `numpy.quantile`'s default)."""
        return _interpolated(self.at, share * (len(self) - 1))

    def distance_at(self, rank: int, centre: float) -> float:
        """The value at this rank among the distances from `centre`.

        Args:
            rank: counted from 0.
            centre: a value, or the middle of two.
        """
        # In halves all is whole: the least distance within which enough values lie.
        twice = round(2 * centre)
        most = max(abs(2 * self._whole(end) - twice) for end in (0, -1))
        return (
            bisect.bisect_left(
                range(most + 1),
                rank + 1,
                key=lambda halves: self._within(twice, halves),
            )
            / 2
        )

    def distance_median(self, centre: float) -> float:
        """The median distance from `centre`."""
        middle = (len(self) - 1) / 2
        return _interpolated(lambda rank: self.distance_at(rank, centre), middle)

    def _within(self, twice: int, halves: int) -> int:
        low, high = -((halves - twice) // 2), (twice + halves) // 2
        return self._rank(high, "right") - self._rank(low, "left")

    def _whole(self, rank: int) -> int:
        return self._least + int(self._above[rank])

    def _rank(self, value: int, side: Literal["left", "right"]) -> int:
        """How many values are below `value`, or up to it when `side` is right."""
        if value < self._whole(0):
            return 0
        if value > self._whole(-1):
            return len(self)
        # In their own type: else all of them would be converted for one search.
        key = self._above.dtype.type(value - self._least)
        return int(np.searchsorted(self._above, key, side=side))


def quantiles(values: Int64s | Float64s, shares: Sequence[float]) -> tuple[float, ...]:
    """A few quantiles (R7) of values that are then in no order of use to others.

    Putting a few ranks in place takes a fifth of the time that sorting takes.

    Args:
        values: shape (n,), n >= 1; put into another order.
        shares: between 0 and 1.
    """
    places = [share * (values.size - 1) for share in shares]
    ends = {end for place in places for end in (math.floor(place), math.ceil(place))}
    values.partition(sorted(ends))
    return tuple(
        _interpolated(lambda rank: float(values[rank]), place) for place in places
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Frame times of one series, in nanoseconds."""

    mean_ns: float
    std_ns: float
    """Population standard deviation. A late frame is followed by a short one, so it
    overstates what is seen; compare `lag1`."""
    min_ns: float
    p50_ns: float
    p95_ns: float
    p99_ns: float
    p999_ns: float
    max_ns: float
    mad_ns: float
    """1.4826 times the median absolute deviation from the median."""
    cycle_mean_ns: float
    """Cycle-to-cycle jitter: mean change from one frame time to the next."""
    cycle_max_ns: float
    lag1: float
    """Correlation of a frame time with the next; 0 where all are equal. Near -1 long
    and short frames take turns."""
    duplicates: int
    """Intervals of 0: the clock did not step between two frames."""


def describe_spread(intervals_ns: Int64s, ordered: Ordered) -> Spread:
    """Describe the spread of frame times.

    Args:
        intervals_ns: shape (n,), n >= 1.
        ordered: the same values.
    """
    p50 = ordered.quantile(0.5)
    mean = float(intervals_ns.mean())
    offsets: Float64s = np.subtract(intervals_ns, mean, dtype=np.float64)
    scale = float(np.dot(offsets, offsets))
    cycle_mean, cycle_max = _cycle_jitter(intervals_ns)
    lag1 = float(np.dot(offsets[1:], offsets[:-1])) / scale if scale > 0 else 0.0
    return Spread(
        mean_ns=mean,
        std_ns=math.sqrt(scale / intervals_ns.size),
        min_ns=ordered.at(0),
        p50_ns=p50,
        p95_ns=ordered.quantile(0.95),
        p99_ns=ordered.quantile(0.99),
        p999_ns=ordered.quantile(0.999),
        max_ns=ordered.at(-1),
        mad_ns=MAD_SCALE * ordered.distance_median(p50),
        cycle_mean_ns=cycle_mean,
        cycle_max_ns=cycle_max,
        lag1=lag1,
        duplicates=int(np.count_nonzero(intervals_ns == 0)),
    )


def quantum_ns(series: FrameSeries) -> int:
    """The step in which this series' stamps move, in nanoseconds.

    A declared resolution is believed. Else it is the greatest common divisor of the
    intervals, if there are at least two different ones: an exact cadence says nothing
    about its clock. Displays fall on refreshes whatever the clock, so where all their
    intervals are multiples of the shortest, nothing is concluded from that.
    """
    if series.resolution_ns is not None:
        return series.resolution_ns
    intervals = series.intervals_ns
    steps = intervals[intervals > 0]
    if steps.size < _MIN_FOR_QUANTUM or steps.min() == steps.max():
        return 1
    step = _common_step(steps)
    if step == steps.min() and series.event is Event.DISPLAY:
        return 1
    return step


def _common_step(steps: Int64s) -> int:
    step = 0
    for start in range(0, steps.size, _CHUNK):
        step = int(np.gcd(np.gcd.reduce(steps[start : start + _CHUNK]), step))
        if step == 1:
            break
    return step


def _interpolated(at: Callable[[int], float], place: float) -> float:
    low = at(math.floor(place))
    return low + (at(math.ceil(place)) - low) * (place - math.floor(place))


def _cycle_jitter(intervals_ns: Int64s) -> tuple[float, float]:
    if intervals_ns.size < 2:
        return 0.0, 0.0
    changes = np.diff(intervals_ns)
    np.abs(changes, out=changes)
    return float(changes.mean()), float(changes.max())
