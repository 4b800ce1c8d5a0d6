"""How frame times are spread: quantiles, jitter, and what the clock could resolve."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

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
    """Frame times of which some order statistics are wanted; never sorted whole.

    Args:
        values: shape (n,), n >= 1.
        copy: False lets the values themselves be put in another order.
    """

    def __init__(self, values: Int64s | Float64s, *, copy: bool = True) -> None:
        self._values = np.array(values) if copy else values

    def __len__(self) -> int:
        return int(self._values.size)

    def at(self, ranks: Iterable[int]) -> tuple[float, ...]:
        """The values at these ranks, counted from 0."""
        wanted = list(ranks)
        if wanted:
            self._values.partition(sorted(set(wanted)))
        return tuple(float(self._values[rank]) for rank in wanted)

    def quantiles(self, shares: Iterable[float]) -> tuple[float, ...]:
        """Quantiles by linear interpolation (R7, `numpy.quantile`'s default)."""
        last = len(self) - 1
        places = [share * last for share in shares]
        ranks = [rank for p in places for rank in (math.floor(p), math.ceil(p))]
        found = self.at(ranks)
        return tuple(
            low + (high - low) * (place - math.floor(place))
            for place, low, high in zip(places, found[::2], found[1::2], strict=True)
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
    p50, p95, p99, p999 = ordered.quantiles((0.5, 0.95, 0.99, 0.999))
    mean = float(intervals_ns.mean())
    offsets: Float64s = np.subtract(intervals_ns, mean, dtype=np.float64)
    scale = float(np.dot(offsets, offsets))
    cycle_mean, cycle_max = _cycle_jitter(intervals_ns)
    lag1 = float(np.dot(offsets[1:], offsets[:-1])) / scale if scale > 0 else 0.0
    return Spread(
        mean_ns=mean,
        std_ns=math.sqrt(scale / intervals_ns.size),
        min_ns=float(intervals_ns.min()),
        p50_ns=p50,
        p95_ns=p95,
        p99_ns=p99,
        p999_ns=p999,
        max_ns=float(intervals_ns.max()),
        mad_ns=MAD_SCALE * absolute_median(offsets, p50 - mean),
        cycle_mean_ns=cycle_mean,
        cycle_max_ns=cycle_max,
        lag1=lag1,
        duplicates=int(np.count_nonzero(intervals_ns == 0)),
    )


def absolute_median(values: Float64s, around: float = 0.0) -> float:
    """Median distance of `values` from `around`; `values` are used up."""
    values -= around
    np.abs(values, out=values)
    return Ordered(values, copy=False).quantiles((0.5,))[0]


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


def _cycle_jitter(intervals_ns: Int64s) -> tuple[float, float]:
    if intervals_ns.size < 2:
        return 0.0, 0.0
    changes = np.diff(intervals_ns)
    np.abs(changes, out=changes)
    return float(changes.mean()), float(changes.max())
