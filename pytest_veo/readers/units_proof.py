"""Units proven by the file itself: stamps against the frame times beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_veo.frames.series import Int64s


_CLOSE = 1.25
_SEARCHED = 50_000
"""Rows that are looked at: a unit does not change within a file."""
_SPREAD = 20_000
_PAIRS = 5000
"""Pairs that are enough to tell a unit."""


def spread_out(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """At most some twenty thousand of these values, from first to last.

    A unit or an interval of samples does not change from one row to the next: these
    tell the median.
    """
    # Odd, so that of frames long and short in turns both are seen.
    return values[:: len(values) // _SPREAD | 1]


def pairs_of(
    stamps: Int64s,
    intervals_ns: Int64s,
    owners: npt.NDArray[np.int64],
    *,
    follows: bool,
) -> tuple[Int64s, Int64s]:
    """Steps of the stamps within one owner, and the frame times that match them."""
    order = np.argsort(owners[:_SEARCHED], kind="stable")
    before, after = order[:-1], order[1:]
    same = owners[before] == owners[after]
    before, after = before[same][:_PAIRS], after[same][:_PAIRS]
    times = intervals_ns[before if follows else after]
    steps = stamps[after] - stamps[before]
    usable = (times > 0) & (steps > 0)
    return steps[usable], times[usable]


def told_power(steps: Int64s, intervals_ns: Int64s) -> int | None:
    """How many powers of ten the steps must be divided by to be frame times.

    Returns:
        0, 3, 6 or 9; None when the two have nothing to do with each other.
    """
    if not len(steps):
        return None
    ratio = float(np.median(steps / intervals_ns))
    for power in (0, 3, 6, 9):
        if 1 / _CLOSE < ratio / 10.0**power < _CLOSE:
            return power
    return None


def told_frequency_hz(ticks: Int64s, intervals_ns: Int64s) -> int | None:
    """The frequency of a counter, told from steps in ticks and in nanoseconds."""
    if not len(ticks):
        return None
    hz = float(np.median(ticks / intervals_ns)) * 1e9
    # Performance counters of Windows 10 and later run at exactly 10 MHz.
    if abs(hz - 1e7) < 1e3:
        return 10_000_000
    return round(hz) if 1e5 < hz < 1e11 else None


def ticks_to_ns(ticks: Int64s, frequency_hz: int) -> Int64s:
    """Nanoseconds since the counter's zero, whole.

    Raises:
        OverflowError: more than 62 bits.
    """
    most = max(abs(int(ticks.max())), abs(int(ticks.min())))
    if most * 10**9 // frequency_hz >= 1 << 62:
        raise OverflowError("beyond 62 bits of nanoseconds")
    if 10**9 % frequency_hz == 0:
        return ticks * (10**9 // frequency_hz)
    first = int(ticks[0])
    start = first * 10**9 // frequency_hz
    since = np.rint((ticks - first) * (1e9 / frequency_hz)).astype(np.int64)
    return np.asarray(since + start, np.int64)
