"""How frame times are spread: quantiles, jitter, and what the clock could resolve."""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections.abc import Callable

import numpy as np

from pytest_veo.frames.series import Event
from pytest_veo.frames.series import Float64s
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.series import Int64s


MAD_SCALE = 1.4826
"""Makes the median absolute deviation of normal frame times their deviation."""

_MIN_FOR_QUANTUM = 16
_CHUNK = 4096


class Ordered:
    """Frame times in order, for every rank that is asked for.

    Args:
        values: shape (n,), n >= 1; kept as a sorted copy.
    """

    def __init__(self, values: Int64s) -> None:
        self._values = np.sort(values)

    def __len__(self) -> int:
        return int(self._values.size)

    def at(self, rank: int) -> float:
        """The value at this rank, counted from 0."""
        return float(self._values[rank])

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
        most = max(abs(2 * int(self._values[0]) - twice), 0)
        most = max(most, abs(2 * int(self._values[-1]) - twice))
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
        inside = np.searchsorted(self._values, high, side="right")
        return int(inside - np.searchsorted(self._values, low, side="left"))


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
