"""Presents of one program, checked before they become a series.

Stamps and the frame times beside them say the same thing twice. Where they disagree,
one of them is wrong; where one is written coarsely, the other is finer.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_veo.frames.series import MISSING_NS
from pytest_veo.frames.series import Int64s
from pytest_veo.readers.presents import Meaning
from pytest_veo.readers.presents import Owner
from pytest_veo.readers.presents import Presents
from pytest_veo.readers.source import Source
from pytest_veo.units import format_ns


LONGEST_FRAME_NS = 3600 * 10**9
"""No program stands still this long and goes on: the clock jumped."""
LONG_FRAME_NS = 10 * 10**9
"""A freeze worth a remark."""
_COARSE_NS = 100_000
"""Stamps that are multiples of this are too coarse for frames."""
_AT_ONCE = 1 << 16
_NEAR = 8
"""Rows that frames in flight can put between one and its place."""
_BATCH_NS = 10**9
"""Presents that are completed together lie within this."""
_AGREE_NS = 1_000_000
"""How far a frame time may lie beyond the stamps' distance: rounding, and more."""


def in_order(
    source: Source,
    presents: Presents,
    owner: Owner,
    meaning: Meaning,
    notes: list[str],
) -> Presents:
    """The rows in the order of their stamps.

    Rows out of order are sorted when the tool's own frame times prove the sorted order
    right, when they stand but a few rows from their place (frames are written as they
    complete), or when the tool saw them so itself. Else two captures were mixed, or a
    clock was set back.
    """
    stamps = presents.stamps_ns
    back = np.flatnonzero(stamps[1:] < stamps[:-1]) + 1
    if not len(back):
        return presents
    order = np.argsort(stamps, kind="stable")
    ordered = presents.take(order)
    agree = len(back) <= len(stamps) // 4 and _intervals_agree(ordered, meaning)
    moved = int(np.abs(order - np.arange(len(order))).max())
    near = moved <= _NEAR and len(back) <= len(stamps) // 20
    if agree or near or _were_seen(presents, back, meaning):
        proof = ", which the frame times confirm" if agree else ""
        notes.append(
            f"{owner.name}: {len(back)} rows out of order, the first at "
            f"{meaning.words(int(presents.lines[back[0]]))}; sorted by "
            f"{meaning.stamp_column}{proof}"
        )
        return ordered
    row = int(back[0])
    step = format_ns(int(stamps[row - 1] - stamps[row]))
    raise source.error(
        f"time of {owner.name} goes back by {step}: two captures in one file, or a "
        f"clock that was set; split the file here",
        **meaning.place(int(presents.lines[row]), meaning.stamp_column),
    )


def _were_seen(presents: Presents, back: Int64s, meaning: Meaning) -> bool:
    """Whether the tool wrote 0 ms for each of these rows.

    PresentMon does where a present is older than the one before it: programs that
    throw frames away complete several at once, the last one first.
    """
    intervals = presents.interval_ns
    if intervals is None or meaning.interval_follows or intervals[back].any():
        return False
    steps = presents.stamps_ns[back - 1] - presents.stamps_ns[back]
    return int(steps.max()) < _BATCH_NS


def check_frames(
    source: Source,
    presents: Presents,
    owner: Owner,
    meaning: Meaning,
    notes: list[str],
) -> None:
    """Hold stamps and frame times against each other.

    Raises:
        CaptureError: a frame time below zero or impossibly long, with its line.
    """
    check_steps(source, presents.stamps_ns, presents.lines, meaning, notes)
    pairs = _matching(presents, meaning)
    if pairs is None or presents.interval_ns is None:
        return
    intervals, steps, lines = pairs
    if bool((presents.interval_ns < 0).any()):
        row = int(np.argmax(presents.interval_ns < 0))
        raise source.error(
            f"a frame time below zero: {presents.interval_ns[row] / 1e6:g} ms",
            **meaning.place(int(presents.lines[row]), meaning.interval_column),
        )
    beyond = intervals - steps > _AGREE_NS
    if beyond.any():
        beyond &= intervals > steps + steps // 10
    if beyond.mean() > 0.5:
        notes.append(
            f"{owner.name}: frame times are longer than the distances of their stamps; "
            f"stamps pace the series, frame times make the tools' figures"
        )
    elif bool((beyond & (intervals > LONG_FRAME_NS)).any()):
        row = int(np.argmax(beyond & (intervals > LONG_FRAME_NS)))
        raise source.error(
            f"a frame of {format_ns(int(intervals[row]))} between stamps "
            f"{format_ns(int(steps[row]))} apart",
            **meaning.place(int(lines[row]), meaning.interval_column),
        )
    _tell_gaps(intervals, steps, owner, notes)


def without_edge(
    presents: Presents, owner: Owner, meaning: Meaning, notes: list[str]
) -> Presents:
    """The rows without a frame time that reaches out of the capture for an hour.

    The first frame time goes back to a present before the capture began (where frame
    times follow, the last one goes beyond its end): no stamp can check it.
    """
    times = presents.interval_ns
    edge = -1 if meaning.interval_follows else 0
    if times is None or times[edge] < LONGEST_FRAME_NS:
        return presents
    hours = times[edge] / 3.6e12
    times = times.copy()
    times[edge] = 0
    notes.append(
        f"{owner.name}: {meaning.words(int(presents.lines[edge]))}: a frame time of "
        f"{hours:.1f} hours reaches out of the capture; it is left out"
    )
    return dataclasses.replace(presents, interval_ns=times)


def refined(
    presents: Presents, owner: Owner, meaning: Meaning, notes: list[str]
) -> Presents:
    """Stamps rebuilt from the frame times, where those are written finer.

    The Capture Application writes six significant digits: a stamp of 13.491 s tells
    milliseconds, the frame time beside it a tenth of a microsecond.
    """
    pairs = _matching(presents, meaning)
    if pairs is None:
        return presents
    intervals, steps, _ = pairs
    part = slice(None, None, max(len(steps) // 10_000, 1))
    coarse = (steps[part] % _COARSE_NS == 0).mean() > 0.5
    if not coarse or (intervals[part] % _COARSE_NS == 0).mean() > 0.5:
        return presents
    stamps = presents.stamps_ns
    rebuilt = stamps[0] + np.concatenate(([0], np.cumsum(intervals)))
    # Four significant digits leave half a thousandth of the stamp open.
    allowed = 2_000_000 + np.abs(stamps) // 1500
    if bool((np.abs(rebuilt - stamps) > allowed).any()):
        return presents
    notes.append(
        f"{owner.name}: {meaning.stamp_column} is written coarsely; stamps are rebuilt "
        f"from {meaning.interval_column}, which agrees and is finer"
    )
    display = presents.display_ns
    if display is not None:
        moved = display + (rebuilt - stamps)
        display = np.where(display == MISSING_NS, MISSING_NS, moved)
    return dataclasses.replace(presents, stamps_ns=rebuilt, display_ns=display)


def check_steps(
    source: Source,
    stamps_ns: Int64s,
    lines: npt.NDArray[Any],
    meaning: Meaning,
    notes: list[str],
) -> None:
    """Refuse a frame of an hour, remark on one of ten seconds.

    Args:
        source: where the stamps are from.
        stamps_ns: stamps in order.
        lines: the line of each stamp.
        meaning: names the stamps' column.
        notes: takes the remarks.
    """
    if len(stamps_ns) < 2:
        return
    longest, length = _longest_step(stamps_ns)
    line = int(lines[longest + 1])
    if length >= LONGEST_FRAME_NS:
        raise source.error(
            f"a frame of {length / 3.6e12:.1f} hours: the clock jumped, or two "
            f"captures are in one file",
            **meaning.place(line, meaning.stamp_column),
        )
    if length >= LONG_FRAME_NS:
        notes.append(
            f"{meaning.words(line)}: a frame of {format_ns(length)}, kept as it is"
        )


def _longest_step(stamps_ns: Int64s) -> tuple[int, int]:
    """After which stamp the longest step comes, and its length."""
    place, length = 0, -1
    # Ten million steps at once would be memory for nothing.
    for first in range(0, len(stamps_ns) - 1, _AT_ONCE):
        steps = np.diff(stamps_ns[first : first + _AT_ONCE + 1])
        longest = int(np.argmax(steps))
        if steps[longest] > length:
            place, length = first + longest, int(steps[longest])
    return place, length


def _tell_gaps(
    intervals: Int64s, steps: Int64s, owner: Owner, notes: list[str]
) -> None:
    # What the tool did not tell, it did not miss.
    told, span = int(intervals.sum()), int(steps.sum() - steps[intervals == 0].sum())
    if span and 0 < told < 0.99 * span:
        notes.append(
            f"{owner.name}: the frame times sum to {format_ns(told)}, the stamps span "
            f"{format_ns(span)}: rows are missing"
        )


def is_sampled(presents: Presents, meaning: Meaning) -> bool:
    """Whether rows lie much further apart than the frame times they tell."""
    pairs = _matching(presents, meaning)
    if pairs is None or len(pairs[0]) < 5:
        return False
    intervals, steps, _ = pairs
    if not 0 < int(intervals.sum()) < 0.6 * int(steps.sum()):
        return False
    usual = float(np.median(intervals[intervals > 0]))
    return usual * 2 < float(np.median(steps))


def _matching(
    presents: Presents, meaning: Meaning
) -> tuple[Int64s, Int64s, npt.NDArray[np.int32]] | None:
    """Frame times beside the distances of stamps they speak of, and their lines."""
    if presents.interval_ns is None or len(presents.stamps_ns) < 2:
        return None
    steps = np.diff(presents.stamps_ns)
    if meaning.interval_follows:
        return presents.interval_ns[:-1], steps, presents.lines[:-1]
    return presents.interval_ns[1:], steps, presents.lines[1:]


def _intervals_agree(presents: Presents, meaning: Meaning) -> bool:
    pairs = _matching(presents, meaning)
    if pairs is None:
        return False
    intervals, steps, _ = pairs
    return bool((np.abs(intervals - steps) <= 2_000).mean() > 0.99)
