"""MangoHud logs of every generation.

Columns came with the years, so they are found by name. `frametime` changed from whole
microseconds to milliseconds in 0.6.9 without a word in the file: the fps beside it and
the steps of `elapsed` tell which. A log with `log_interval` holds samples, not frames.
"""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pytest_veo.frames.series import Bools
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import Int64s
from pytest_veo.readers.capture import Capture
from pytest_veo.readers.capture import CapturedSeries
from pytest_veo.readers.columns import Kind
from pytest_veo.readers.columns import Table
from pytest_veo.readers.columns import Wanted
from pytest_veo.readers.present_checks import LONGEST_FRAME_NS
from pytest_veo.readers.present_checks import check_steps
from pytest_veo.readers.presents import Meaning
from pytest_veo.readers.source import Source
from pytest_veo.readers.table import Sheet
from pytest_veo.readers.table import guess_delimiter
from pytest_veo.readers.table import open_sheet
from pytest_veo.readers.table import split_line
from pytest_veo.readers.units_proof import spread_out


_MEANING = Meaning(
    tool="mangohud",
    event=Event.PRESENT,
    clock=Clock.TOOL,
    stamp_column="elapsed",
    interval_column="frametime",
)
_SEARCHED_LINES = 12
_GRACE_NS = 1_000_000_000
"""A frame may have begun this long before the log."""


def _header_line(source: Source) -> int | None:
    """Where the line of columns stands; None in a file of another kind."""
    machine = False
    for number, line in enumerate(source.head[:_SEARCHED_LINES]):
        cells = [cell.lower() for cell in split_line(line, guess_delimiter(line))]
        machine = machine or cells[:3] == ["os", "cpu", "gpu"]
        if cells[0] != "fps":
            continue
        if "elapsed" in cells and (machine or "frametime" in cells):
            return number
        if machine or cells[1:2] == ["frametime"]:
            return number
    return None


class MangoHudReader:
    """MangoHud's CSV logs."""

    name: ClassVar[str] = "mangohud"

    def claims(self, source: Source) -> bool:
        """A line of columns that begins with `fps`, near the top."""
        return source.is_text and _header_line(source) is not None

    def read(self, source: Source) -> Capture:
        """One series: MangoHud logs one program."""
        header = _header_line(source)
        assert header is not None
        sheet = open_sheet(source, header)
        notes: list[str] = []
        table = sheet.read(_wanted(source, sheet))
        notes.extend(table.notes)
        series = _series(source, table, notes)
        return Capture(
            file=source.name,
            format=self.name,
            version=_version(source, sheet),
            series=(series,),
            notes=tuple(notes),
            facts=_facts(source, header),
        )


def _wanted(source: Source, sheet: Sheet) -> list[Wanted]:
    wanted = [Wanted("fps", Kind.REAL)]
    if sheet.has("frametime"):
        wanted.append(Wanted("frametime", Kind.MILLISECONDS))
    if sheet.has("elapsed"):
        wanted.append(Wanted("elapsed", Kind.NANOSECONDS, required=True))
    if len(wanted) == 1:
        raise source.error(
            "neither `frametime` nor `elapsed`: fps alone is a smoothed figure and "
            "tells no frame",
            line=sheet.header_line + 1,
        )
    return wanted


def _version(source: Source, sheet: Sheet) -> str:
    for line in source.head[: sheet.header_line]:
        # Distributions build it without the `v`.
        if found := re.fullmatch(r"v?(\d+\.\d[\w.\-]*)", line.strip()):
            return found[1]
    for column, since in (
        ("cpu_mhz", "0.8.2 or later"),
        ("cpu_power", "0.8.0 or later"),
        ("swap_used", "0.7 or later"),
        ("frametime", "0.6.1 or later"),
    ):
        if sheet.has(column):
            return since
    return "0.5 or earlier"


def _facts(source: Source, header: int) -> tuple[tuple[str, str], ...]:
    for number, line in enumerate(source.head[: max(header - 1, 0)]):
        mark = guess_delimiter(line)
        names = split_line(line, mark)
        if names[:3] != ["os", "cpu", "gpu"]:
            continue
        values = split_line(source.head[number + 1], mark)
        # Names of GPUs are written with bare commas: then no column is certain.
        if len(values) == len(names):
            return tuple(p for p in zip(names, values, strict=True) if p[1])
        return (("machine", source.head[number + 1].strip()),)
    return ()


def _series(source: Source, table: Table, notes: list[str]) -> CapturedSeries:
    elapsed = table.get("elapsed")
    times, usable = _frame_times(source, table, notes)
    if elapsed is None:
        stamps: Int64s = np.cumsum(np.where(usable, times, 0))
        notes.append("no `elapsed` column: stamps are the sum of the frame times")
        sampled = False
    else:
        stamps = elapsed.values
        _check_order(source, stamps, table.lines)
        _check_unit(source, stamps, times[usable])
        sampled = _is_sampled(stamps, times[usable])
    check_steps(source, stamps, table.lines, _MEANING, notes)
    if sampled:
        step_ms = _usual_step(stamps) / 1e6
        notes.append(
            f"rows are samples {step_ms:.4g} ms apart (log_interval), not frames: most "
            f"frames are missing, so nothing can be said about jitter"
        )
    has_times = table.get("frametime") is not None
    return CapturedSeries(
        t_ns=stamps,
        event=Event.PRESENT,
        clock=Clock.TOOL,
        name="frames",
        source=source.name,
        tool="mangohud",
        sampled=sampled,
        frame_times_ns=times[usable] if has_times else None,
        rows=table.lines.astype(np.int64),
    )


def _frame_times(
    source: Source, table: Table, notes: list[str]
) -> tuple[Int64s, Bools]:
    """Frame times in nanoseconds, and which rows have one that is possible."""
    column = table.get("frametime")
    if column is None:
        notes.append("no `frametime` column (0.5): frame times are the stamps' steps")
        return np.zeros(table.rows, np.int64), np.zeros(table.rows, np.bool_)
    times = column.values
    fps = table["fps"].values
    elapsed = table.get("elapsed")
    stamps = None if elapsed is None else elapsed.values
    if _is_microseconds(source, times, fps, stamps):
        times = times // 1000
        notes.append("frametime is in microseconds (0.6.8 or earlier), told by the fps")
    longest: Int64s | int = LONGEST_FRAME_NS
    if stamps is not None:
        longest = np.minimum(longest, np.maximum(stamps, 0) + _GRACE_NS)
    impossible = ~column.missing & ((times <= 0) | (times > longest))
    for row in np.flatnonzero(impossible)[:3]:
        notes.append(
            f"line {table.lines[row]}: a frame time of {times[row] / 1e6:g} ms cannot "
            f"be; it is left out of the frame times"
        )
    more = int(impossible.sum()) - 3
    if more > 0:
        notes.append(f"{more} more frame times that cannot be are left out")
    return times, ~impossible & ~column.missing


def _is_microseconds(
    source: Source,
    times: Int64s,
    fps: npt.NDArray[np.float64],
    elapsed: Int64s | None,
) -> bool:
    """Whether frame times read as milliseconds are a thousand times too long."""
    some, rates = spread_out(times), spread_out(fps)
    usable = (some > 0) & (rates > 0)
    if usable.any():
        # 1000 when in milliseconds; fps is smoothed before 0.6.7, hence the slack.
        product = float(np.median(some[usable] / 1e6 * rates[usable]))
        if 200 < product < 5_000:
            return False
        if 200_000 < product < 5_000_000:
            return True
    if elapsed is not None and len(times) > 2 and (some > 0).any():
        step = _usual_step(elapsed) / float(np.median(some[some > 0]))
        if 0.5 < step < 2:
            return False
        if 0.5e-3 < step < 2e-3:
            return True
    raise source.error(
        "the unit of `frametime` cannot be told: neither fps nor elapsed match it",
        column="frametime",
    )


def _check_order(source: Source, stamps: Int64s, lines: npt.NDArray[np.int32]) -> None:
    back = np.flatnonzero(stamps[1:] < stamps[:-1]) + 1
    if len(back):
        raise source.error(
            "time goes back: two captures in one file; split it here",
            line=int(lines[back[0]]),
            column="elapsed",
        )


def _check_unit(source: Source, stamps: Int64s, times: Int64s) -> None:
    """Refuse an `elapsed` that is in another unit than nanoseconds."""
    if len(stamps) < 5 or not len(times):
        return
    told, span = float(times.sum()), float(stamps[-1] - stamps[0])
    if span and told > 20 * span:
        raise source.error(
            f"the frame times sum to {told / span:.3g} times the span of the stamps: "
            f"these are no nanoseconds",
            column="elapsed",
        )


def _is_sampled(stamps: Int64s, times: Int64s) -> bool:
    if len(stamps) < 5 or not len(times):
        return False
    usual = float(np.median(spread_out(times)))
    span = float(stamps[-1] - stamps[0])
    return _usual_step(stamps) > 2 * usual and float(times.sum()) < 0.6 * span


def _usual_step(stamps: Int64s) -> float:
    return float(np.median(spread_out(stamps[1:]) - spread_out(stamps[:-1])))


READER = MangoHudReader()
