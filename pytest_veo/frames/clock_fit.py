"""Two clocks: how far apart they are, how they drift, and how sure that is.

A device's clock and the host's tick at slightly different rates. Over minutes both
are straight lines to each other: `host = device + offset + drift * (device - first)`.
Each pair of readings says between which two host times a device stamp was taken;
every line that passes through all those gaps is possible. The middle one is the
estimate, and how far the possible lines part is the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pytest_veo.errors import FramesError
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.series import Int64s


Floats = npt.NDArray[np.float64]

_FEWEST_PAIRS = 2
_STEPEST = 0.01
"""Rates further apart than 1 % are no two clocks of the same second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockFit:
    """The line between two clocks."""

    first_ns: int
    """The device stamp at which `offset_ns` holds: that of the first pair."""
    last_ns: int
    """The device stamp of the last pair; beyond, the bound grows."""
    offset_ns: float
    """Host minus device at `first_ns`."""
    drift_ppm: float
    """How much faster the host runs, in millionths."""
    bound_ns: float
    """The estimate is within this of the truth, from first to last pair."""
    drift_bound_ppm: float
    median_offset_ns: float
    """Median of host minus device over all pairs: a check that needs no line."""
    pairs: int
    method: str
    """`brackets`, `pairs` or `one-way`."""
    meaning: str
    """What `bound_ns` rests on, a sentence."""

    def to_host(self, device_ns: Int64s) -> Int64s:
        """Stamps of the device's clock as stamps of the host's, shape kept."""
        since = device_ns - self.first_ns
        moved = np.rint(self.offset_ns + since * (self.drift_ppm * 1e-6))
        return np.asarray(device_ns + moved.astype(np.int64), np.int64)

    def bound_at(self, device_ns: int) -> float:
        """The bound for one stamp: it grows outside the time that was measured."""
        beyond = max(self.first_ns - device_ns, device_ns - self.last_ns, 0)
        return self.bound_ns + beyond * self.drift_bound_ppm * 1e-6


def fit_brackets(device_ns: Int64s, before_ns: Int64s, after_ns: Int64s) -> ClockFit:
    """Fit from device stamps taken between two readings of the host's clock.

    Args:
        device_ns: the device's stamps, shape (n,), n at least 2.
        before_ns: the host's clock just before each.
        after_ns: the host's clock just after each.

    Raises:
        FramesError: too few pairs, a bracket that ends before it begins, or rates
            that are no two clocks of one second.
    """
    _check(device_ns, before_ns, after_ns)
    if bool((after_ns < before_ns).any()):
        pair = int(np.argmax(after_ns < before_ns))
        raise FramesError(f"clock pair {pair}: read after it was read again")
    return _fit(
        device_ns,
        before_ns,
        after_ns,
        "brackets",
        "every device stamp was taken between its two host stamps, and both clocks "
        "run evenly",
    )


def fit_pairs(
    device_ns: Int64s, host_ns: Int64s, *, deviation_ns: int | Int64s | None = None
) -> ClockFit:
    """Fit from stamps of both clocks that were taken together.

    Args:
        device_ns: the device's stamps, shape (n,), n at least 2.
        host_ns: the host's stamps.
        deviation_ns: how far apart the two of a pair can be at most, as calibrated
            timestamps tell. Without it the pairs' own scatter makes the bound.

    Raises:
        FramesError: too few pairs, or rates that are no two clocks of one second.
    """
    _check(device_ns, host_ns)
    if deviation_ns is not None:
        reach = np.asarray(deviation_ns, np.int64)
        return _fit(
            device_ns,
            host_ns - reach,
            host_ns + reach,
            "pairs",
            "the two stamps of a pair are no further apart than their deviation",
        )
    return _fit(
        device_ns,
        host_ns,
        host_ns,
        "pairs",
        "no pair lies further from the line than this; a delay that all pairs share "
        "cannot be seen",
    )


def fit_one_way(sent_ns: Int64s, received_ns: Int64s) -> ClockFit:
    """Fit from messages that carry the sender's stamp: the fastest ones tell.

    A message is never early, so the line runs along the lowest points. The shortest
    delay itself cannot be known from one side; it is part of the offset.

    Args:
        sent_ns: the sender's clock, shape (n,), n at least 2.
        received_ns: the receiver's clock when each message came.

    Raises:
        FramesError: too few messages, or rates that are no two clocks of one second.
    """
    _check(sent_ns, received_ns)
    x, base = _relative(sent_ns)
    y = (received_ns - sent_ns - _median(received_ns - sent_ns)).astype(np.float64)
    hull = _lower_hull(x, y)
    # The edge under the middle message has the least sum of delays above it.
    edges = np.flatnonzero(x[hull][1:] >= np.mean(x))
    edge = int(edges[0]) if len(edges) else len(hull) - 2
    left, right = hull[edge], hull[edge + 1]
    slope = float((y[right] - y[left]) / (x[right] - x[left]))
    floor = float(y[left] - slope * x[left])
    above = y - floor - slope * x
    bound = max(float(np.quantile(above, min(1.0, 10 / len(above)))), 1.0)
    median = _median(received_ns - sent_ns)
    span = float(x[-1] - x[0])
    return _checked(
        ClockFit(
            first_ns=base,
            last_ns=base + int(span),
            offset_ns=median + floor,
            drift_ppm=slope * 1e6,
            bound_ns=bound,
            drift_bound_ppm=2e6 * bound / span,
            median_offset_ns=float(median),
            pairs=len(x),
            method="one-way",
            meaning=(
                "the tenth fastest message lies this far above the line; the shortest "
                "delay itself is part of the offset and cannot be told from one side"
            ),
        )
    )


def bring_to(series: FrameSeries, fit: ClockFit, clock: Clock) -> FrameSeries:
    """A series of the device's clock as one of the host's.

    The stamps then carry `fit.bound_ns` of doubt, so the resolution is no finer.

    Raises:
        FramesError: the series has that clock already.
    """
    if series.clock is clock:
        raise FramesError(f"{series.name}: its stamps are of the clock {clock} already")
    doubt = max(round(fit.bound_ns), series.resolution_ns or 1, 1)
    return replace(
        series, t_ns=fit.to_host(series.t_ns), clock=clock, resolution_ns=doubt
    )


def _check(device_ns: Int64s, *others: Int64s) -> None:
    if device_ns.size < _FEWEST_PAIRS:
        raise FramesError(f"{device_ns.size} clock pairs: at least 2 are needed")
    if any(other.shape != device_ns.shape for other in others):
        raise FramesError("clock pairs: the columns have different lengths")
    back = np.flatnonzero(np.diff(device_ns) <= 0)
    if len(back):
        raise FramesError(
            f"clock pair {int(back[0]) + 1}: the device's clock does not go on"
        )


def _relative(device_ns: Int64s) -> tuple[Floats, int]:
    base = int(device_ns[0])
    return (device_ns - base).astype(np.float64), base


def _median(values: Int64s) -> int:
    return int(np.sort(values)[len(values) // 2])


def _fit(
    device_ns: Int64s, low_ns: Int64s, high_ns: Int64s, method: str, meaning: str
) -> ClockFit:
    x, base = _relative(device_ns)
    middle = low_ns + (high_ns - low_ns) // 2 - device_ns
    median = _median(middle)
    low = (low_ns - device_ns - median).astype(np.float64)
    high = (high_ns - device_ns - median).astype(np.float64)
    lowest, highest = _upper_hull(x, low), _lower_hull(x, high)
    lines = _Lines(x[lowest], low[lowest], x[highest], high[highest])
    slope = lines.best_slope()
    # Lines must pass all gaps; where none does, the gaps are widened until one does.
    slack = max(-lines.gap(slope), 0.0) * (1 + 1e-9)
    steep = lines.slopes(slope, slack)
    floor, roof = lines.room(slope)
    span = float(x[-1])
    offset = (floor + roof) / 2
    # Two lines part most at an end; half a nanosecond is lost to whole stamps.
    bound = (slack + 1) / 2 + max(
        abs(edge - (offset + slope * at))
        for at in (0.0, span)
        for edge in lines.edges(at, steep, slack)
    )
    return _checked(
        ClockFit(
            first_ns=base,
            last_ns=base + int(span),
            offset_ns=median + offset,
            drift_ppm=slope * 1e6,
            bound_ns=bound,
            drift_bound_ppm=max(steep[1] - slope, slope - steep[0], bound / span) * 1e6,
            median_offset_ns=float(median),
            pairs=len(x),
            method=method,
            meaning=meaning,
        )
    )


def _checked(fit: ClockFit) -> ClockFit:
    if abs(fit.drift_ppm) >= 0.99 * _STEPEST * 1e6:
        raise FramesError(
            f"the clocks run at rates {fit.drift_ppm / 1e4:.3g} % apart: these are no "
            f"stamps in nanoseconds of two clocks"
        )
    return fit


@dataclass(frozen=True, slots=True, eq=False)
class _Lines:
    """The lines that stay above `low` and below `high`."""

    low_x: Floats
    low: Floats
    high_x: Floats
    high: Floats

    def room(self, slope: float) -> tuple[float, float]:
        """Between which offsets a line of this slope may lie."""
        floor = float((self.low - slope * self.low_x).max())
        roof = float((self.high - slope * self.high_x).min())
        return floor, roof

    def gap(self, slope: float) -> float:
        """How much room a slope leaves; below zero: no line fits. Concave."""
        floor, roof = self.room(slope)
        return roof - floor

    def best_slope(self) -> float:
        """The slope with most room."""
        return _peak(self.gap, -_STEPEST, _STEPEST)

    def slopes(self, best: float, slack: float) -> tuple[float, float]:
        """The least and the greatest slope that fit, gaps widened by `slack`."""
        return (
            _edge(lambda s: self.gap(s) + slack, best, -_STEPEST),
            _edge(lambda s: self.gap(s) + slack, best, _STEPEST),
        )

    def edges(
        self, at: float, steep: tuple[float, float], slack: float
    ) -> tuple[float, float]:
        """The lowest and the highest of the possible lines at one moment."""

        def above(slope: float) -> float:
            return self.room(slope)[1] + slack / 2 + slope * at

        def below(slope: float) -> float:
            return -(self.room(slope)[0] - slack / 2 + slope * at)

        highest = above(_peak(above, *steep))
        lowest = -below(_peak(below, *steep))
        return lowest, highest


def _peak(value: Callable[[float], float], low: float, high: float) -> float:
    """Where a concave function is greatest."""
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if value(left) < value(right):
            low = left
        else:
            high = right
    return (low + high) / 2


def _edge(value: Callable[[float], float], inside: float, outside: float) -> float:
    """Where a concave function that is not below 0 at `inside` falls below 0."""
    if value(outside) >= 0:
        return outside
    for _ in range(100):
        middle = (inside + outside) / 2
        if value(middle) >= 0:
            inside = middle
        else:
            outside = middle
    return inside


def _lower_hull(x: Floats, y: Floats) -> list[int]:
    """The points that lie on the lower edge, by rising x."""
    hull: list[int] = []
    for point in range(len(x)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (x[point] - x[a]) < (y[point] - y[a]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(point)
    return hull


def _upper_hull(x: Floats, y: Floats) -> list[int]:
    return _lower_hull(x, -y)
