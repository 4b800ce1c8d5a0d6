"""Frame times cut down to what a plot can show: strip, histogram, percentiles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple


if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Mapping
    from collections.abc import Sequence


STRIP_POINTS = 1200
BARS = 80
SHARES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999)
_NS_PER_US = 1000


class Strip(NamedTuple):
    """Frame times in order, in microseconds."""

    per_point: int
    """Frames behind each point."""
    longest_us: tuple[int, ...]
    shortest_us: tuple[int, ...]
    """Empty where each point is one frame."""


def strip(intervals_ns: Sequence[int], points: int = STRIP_POINTS) -> Strip:
    """At most `points` of them; of many frames the longest and the shortest."""
    per_point = max(1, math.ceil(len(intervals_ns) / points))
    starts = range(0, len(intervals_ns), per_point)
    parts = [intervals_ns[start : start + per_point] for start in starts]
    shortest = () if per_point == 1 else tuple(_us(min(part)) for part in parts)
    return Strip(per_point, tuple(_us(max(part)) for part in parts), shortest)


class Histogram(NamedTuple):
    """How many frames took how long."""

    edges_us: tuple[float, ...]
    """One more than there are counts."""
    counts: tuple[int, ...]


def histogram(intervals_ns: Sequence[int], bars: int = BARS) -> Histogram:
    """Bars of equal width where frames are alike, of equal ratio where one froze.

    A single freeze of a second would put all other frames into the first bar.
    """
    if not intervals_ns:
        return Histogram((), ())
    low, high = min(intervals_ns), max(intervals_ns)
    # A width below the clock's step would draw a comb of empty bars.
    steps = len(set(intervals_ns))
    bars = max(1, min(bars, steps))
    if low > 0 and high > 4 * low:
        ratio = math.log(high / low)
        edges = [low * math.exp(ratio * i / bars) for i in range(bars + 1)]
        places = [math.log(each / low) / ratio for each in intervals_ns]
    else:
        width = max(high - low, 1)
        edges = [low + width * i / bars for i in range(bars + 1)]
        places = [(each - low) / width for each in intervals_ns]
    counts = [0] * bars
    for place in places:
        counts[min(bars - 1, int(place * bars))] += 1
    return Histogram(tuple(round(e / _NS_PER_US, 1) for e in edges), tuple(counts))


def percentiles(intervals_ns: Sequence[int]) -> list[tuple[float, int]]:
    """Share and frame time in microseconds, by linear interpolation (R7).

    Shares that lie beyond the last frame but one are left out; 1 is the longest frame.
    """
    if not intervals_ns:
        return []
    ordered = sorted(intervals_ns)
    last = len(ordered) - 1
    found = []
    for share in SHARES:
        if share * last > last - 1 and share > 0.5:
            continue
        low = math.floor(share * last)
        part = share * last - low
        high = ordered[min(low + 1, last)]
        value = ordered[low] * (1 - part) + high * part
        found.append((share, _us(value)))
    return [*found, (1.0, _us(ordered[-1]))]


def _us(value_ns: float) -> int:
    return round(value_ns / _NS_PER_US)


_STATISTICS = {
    "p50_ms": 0.5,
    "p95_ms": 0.95,
    "p99_ms": 0.99,
    "max_ms": 1.0,
}


def series(data: Mapping[str, Any]) -> dict[str, Any]:
    """One series for the page: its limits, and the plots' numbers.

    Args:
        data: as `frames.record` makes it.
    """
    intervals = [int(each) for each in data.get("intervals_ns") or ()]
    stats = data.get("stats") or {}
    # Recorded, shown, and not judged.
    warmup = min(int(stats.get("warmup") or 0), max(len(intervals) - 1, 0))
    found: dict[str, Any] = {
        "series": str(data["series"]),
        "warmup": warmup,
        "limits": list(_limits(data)),
    }
    if intervals:
        cut = strip(intervals)
        found["strip"] = [cut.per_point, cut.longest_us, cut.shortest_us]
        found["histogram"] = histogram(intervals[warmup:])
        found["percentiles"] = percentiles(intervals[warmup:])
    else:
        found["percentiles"] = list(_known(data))
    return found


def _limits(data: Mapping[str, Any]) -> Iterator[tuple[str, float, float, str]]:
    """Rule, limit in milliseconds, its share, outcome: limits on a frame's time."""
    for finding in data.get("findings") or ():
        rule = str(finding.get("rule"))
        if rule in _STATISTICS and finding.get("limit") is not None:
            limit, outcome = float(finding["limit"]), str(finding["outcome"])
            yield rule, limit, _STATISTICS[rule], outcome


def _known(data: Mapping[str, Any]) -> Iterator[tuple[float, int]]:
    spread = (data.get("stats") or {}).get("spread") or {}
    for rule, share in _STATISTICS.items():
        value = spread.get(rule.replace("_ms", "_ns"))
        if isinstance(value, int | float):
            yield share, _us(value)
