"""Presents of several programs in one table, told apart and checked.

Rows of such tables are in the order in which frames were completed, programs mixed,
so time runs backwards from row to row. Within one swapchain it must not.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_veo.frames.series import MISSING_NS
from pytest_veo.frames.series import Bools
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import Int64s
from pytest_veo.frames.series import StageStamps
from pytest_veo.readers.capture import CapturedSeries
from pytest_veo.readers.capture import parse_address
from pytest_veo.readers.columns import Column
from pytest_veo.readers.source import Source
from pytest_veo.units import format_ns


LONGEST_FRAME_NS = 3600 * 10**9
"""No program stands still this long and goes on: the clock jumped."""
LONG_FRAME_NS = 10 * 10**9
"""A freeze worth a remark."""
_COARSE_NS = 100_000
"""Stamps that are multiples of this are too coarse for frames."""
_MOST_OVERTAKEN = 0.02
"""Share of frames displayed out of order that tearing and planes may explain."""
_AGREE_NS = 1_000_000
"""How far a frame time may lie beyond the stamps' distance: rounding, and more."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Presents:
    """One program's swapchain, or a whole table: a row a frame."""

    stamps_ns: Int64s
    lines: npt.NDArray[np.int32]
    interval_ns: Int64s | None = None
    """Frame times as the tool wrote them; 0 where it wrote none."""
    display_ns: Int64s | None = None
    """When each frame reached the screen; `MISSING_NS` where it never did."""
    dropped: Bools | None = None
    display_interval_ns: Int64s | None = None
    """Time since the frame before reached the screen; 0 where not displayed."""
    generated: Bools | None = None
    """Rows that are no present of their own: frames a driver put between two."""

    def take(self, rows: npt.NDArray[np.intp]) -> Presents:
        """These rows only, in this order."""
        fields: dict[str, Any] = {
            field.name: None if value is None else value[rows]
            for field in dataclasses.fields(self)
            for value in [getattr(self, field.name)]
        }
        return Presents(**fields)


@dataclasses.dataclass(frozen=True, slots=True)
class Owner:
    """Whose frames they are."""

    process: str = ""
    process_id: int | None = None
    swapchain: int | None = None

    @property
    def name(self) -> str:
        """`game.exe[1520] 0x1927feb15a0`: what messages call the series."""
        name = self.process or "frames"
        if self.process_id is not None:
            name += f"[{self.process_id}]"
        return name if self.swapchain is None else f"{name} {self.swapchain:#x}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What the columns of a format mean."""

    tool: str
    event: Event
    clock: Clock
    stamp_column: str
    interval_column: str
    interval_follows: bool = False
    """True: a frame time reaches to the next stamp, not back to the one before."""
    has_lines: bool = True
    """False: rows are entries of a list, counted from 0, and no lines of a text."""

    def place(self, row: int, column: str) -> dict[str, Any]:
        """Where an error is, as `CaptureError` takes it."""
        if self.has_lines:
            return {"line": row, "column": column}
        return {"column": f"{column}[{row}]"}

    def words(self, row: int) -> str:
        """Where a remark is about."""
        return f"line {row}" if self.has_lines else f"frame {row}"


def owners_of(
    source: Source,
    rows: int,
    process: Column | None,
    process_id: Column | None,
    swapchain: Column | None,
) -> tuple[list[Owner], npt.NDArray[np.int64]]:
    """Who owns each row: the owners in order of appearance, and a number per row."""
    columns = (process, process_id, swapchain)
    if all(column is None or len(column.vocabulary) == 1 for column in columns):
        # One zero, seen `rows` times.
        return [_owner(source, columns, 0)], np.broadcast_to(np.int64(0), rows)
    key = np.zeros(rows, np.int64)
    for column in columns:
        if column is not None:
            key = key * max(len(column.vocabulary), 1) + column.values
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    owners = [_owner(source, columns, int(row)) for row in first]
    # Equal addresses may be written with and without leading zeros.
    order: dict[Owner, int] = {}
    for index in np.argsort(first):
        order.setdefault(owners[index], len(order))
    numbers = np.array([order[owner] for owner in owners], np.int64)
    return list(order), numbers[which]


def _owner(source: Source, columns: tuple[Column | None, ...], row: int) -> Owner:
    texts = [
        "" if column is None else column.vocabulary[column.values[row]]
        for column in columns
    ]
    name, number, address = texts
    process_id = int(number) if number.isdigit() else None
    return Owner(name, process_id, parse_address(address) if address else None)


def series_of(
    source: Source,
    presents: Presents,
    owners: list[Owner],
    which: npt.NDArray[np.int64],
    meaning: Meaning,
    notes: list[str],
) -> tuple[CapturedSeries, ...]:
    """For each owner a series of presents and, where known, one of displays.

    Raises:
        CaptureError: time runs backwards within a swapchain, or a frame is impossibly
            long; with the line.
    """
    found: list[CapturedSeries] = []
    for number, owner in enumerate(owners):
        one = presents
        if len(owners) > 1:
            one = presents.take(np.flatnonzero(which == number))
        one = _in_order(source, one, owner, meaning, notes)
        own = one
        if one.generated is not None and bool(one.generated.any()):
            own = one.take(np.flatnonzero(~one.generated))
            notes.append(
                f"{owner.name}: {int(one.generated.sum())} generated frames count as "
                f"displays, not as presents"
            )
        if not len(own.stamps_ns):
            continue
        _check_frames(source, own, owner, meaning, notes)
        if own is one:
            own = one = _refined(one, owner, meaning, notes)
        found.extend(_build(source, own, one, owner, meaning, notes))
    if not found:
        raise source.error("generated frames only, and no present of a program")
    return tuple(found)


def _in_order(
    source: Source,
    presents: Presents,
    owner: Owner,
    meaning: Meaning,
    notes: list[str],
) -> Presents:
    """The rows in the order of their stamps.

    Rows out of order are sorted only when the tool's own frame times prove the
    sorted order right; else two captures were mixed, or a clock was set back.
    """
    stamps = presents.stamps_ns
    back = np.flatnonzero(stamps[1:] < stamps[:-1]) + 1
    if not len(back):
        return presents
    ordered = presents.take(np.argsort(stamps, kind="stable"))
    if len(back) <= len(stamps) // 4 and _intervals_agree(ordered, meaning):
        notes.append(
            f"{owner.name}: {len(back)} rows out of order, the first at "
            f"{meaning.words(int(presents.lines[back[0]]))}; sorted by "
            f"{meaning.stamp_column}, which the frame times confirm"
        )
        return ordered
    row = int(back[0])
    step = format_ns(int(stamps[row - 1] - stamps[row]))
    raise source.error(
        f"time of {owner.name} goes back by {step}: two captures in one file, or a "
        f"clock that was set; split the file here",
        **meaning.place(int(presents.lines[row]), meaning.stamp_column),
    )


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


def _check_frames(
    source: Source,
    presents: Presents,
    owner: Owner,
    meaning: Meaning,
    notes: list[str],
) -> None:
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


def _refined(
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
    steps = np.diff(stamps_ns)
    if not len(steps):
        return
    longest = int(np.argmax(steps))
    length, line = int(steps[longest]), int(lines[longest + 1])
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


def _tell_gaps(
    intervals: Int64s, steps: Int64s, owner: Owner, notes: list[str]
) -> None:
    told, span = int(intervals.sum()), int(steps.sum())
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


def _build(
    source: Source,
    presents: Presents,
    shown: Presents,
    owner: Owner,
    meaning: Meaning,
    notes: list[str],
) -> list[CapturedSeries]:
    sampled = is_sampled(presents, meaning)
    if sampled:
        notes.append(
            f"{owner.name}: rows are samples, not frames: most frames are missing, so "
            f"nothing can be said about jitter"
        )
    fields: dict[str, Any] = {
        "clock": meaning.clock,
        "name": owner.name,
        "source": source.name,
        "tool": meaning.tool,
        "process": owner.process,
        "process_id": owner.process_id,
        "swapchain": owner.swapchain,
        "sampled": sampled,
    }
    display = presents.display_ns
    numbers = _rows(presents, meaning)
    stages: tuple[StageStamps, ...] = ()
    if display is not None:
        stages = (StageStamps(event=Event.DISPLAY, t_ns=display),)
    made = [
        CapturedSeries(
            t_ns=presents.stamps_ns,
            event=meaning.event,
            dropped=presents.dropped,
            frame_times_ns=presents.interval_ns,
            rows=numbers,
            stages=stages,
            **fields,
        )
    ]
    if shown.display_ns is not None:
        fields["rows"] = numbers if shown is presents else _rows(shown, meaning)
        made.extend(_displays(shown, shown.display_ns, owner, fields, notes))
    return made


def _rows(presents: Presents, meaning: Meaning) -> Int64s | None:
    return presents.lines.astype(np.int64) if meaning.has_lines else None


def _displays(
    presents: Presents,
    display: Int64s,
    owner: Owner,
    fields: dict[str, Any],
    notes: list[str],
) -> list[CapturedSeries]:
    """The series of displays; none where fewer than two frames were displayed."""
    never = display == MISSING_NS
    shown = display[~never]
    if shown.size < 2:
        return []
    intervals = presents.display_interval_ns
    if bool((shown[1:] < shown[:-1]).any()):
        overtaken = int((shown < np.maximum.accumulate(shown)).sum())
        if overtaken > _MOST_OVERTAKEN * shown.size:
            notes.append(
                f"{owner.name}: the display stamps contradict each other ({overtaken} "
                f"of {shown.size} lie before an earlier frame's): no series of displays"
            )
            return []
        display = np.where(never, MISSING_NS, np.maximum.accumulate(display))
        notes.append(
            f"{owner.name}: {overtaken} frames were displayed before one presented "
            f"earlier; they count as displayed together with it"
        )
    times = None if intervals is None else intervals[~never & (intervals > 0)]
    return [
        CapturedSeries(
            t_ns=display,
            event=Event.DISPLAY,
            dropped=never,
            frame_times_ns=times,
            **fields,
        )
    ]
