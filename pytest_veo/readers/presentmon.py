"""PresentMon: every header since 1.0, and the Capture Application.

Four families of headers, told apart by the names they have:

- `v1` (1.x and `--v1_metrics`): `msBetweenPresents`, 0 for "no value", `Dropped`.
- `v2` (2.0 to 2.3.0 and `--v2_metrics`): `CPUStart...` and `FrameTime`, `NA`.
- `default` (2.3.1 and later): both, with `Ms` in front.
- `app`: the same from the Capture Application, beside columns of sensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pytest_veo.frames.series import MISSING_NS
from pytest_veo.frames.series import Bools
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import Int64s
from pytest_veo.readers.capture import Capture
from pytest_veo.readers.columns import Column
from pytest_veo.readers.columns import Kind
from pytest_veo.readers.columns import Table
from pytest_veo.readers.columns import Wanted
from pytest_veo.readers.presents import Meaning
from pytest_veo.readers.presents import Presents
from pytest_veo.readers.presents import owners_of
from pytest_veo.readers.source import Source
from pytest_veo.readers.swapchains import series_of
from pytest_veo.readers.table import Sheet
from pytest_veo.readers.table import open_sheet
from pytest_veo.readers.units_proof import pairs_of
from pytest_veo.readers.units_proof import ticks_to_ns
from pytest_veo.readers.units_proof import told_frequency_hz
from pytest_veo.readers.units_proof import told_power


_STAMPS = ("TimeInSeconds", "TimeInMs", "TimeInQPC", "TimeInDateTime")
_CPU_STARTS = (
    "CPUStartTime",
    "CPUStartTimeInMs",
    "CPUStartTimeInSeconds",
    "CPUStartQPC",
    "CPUStartQPCTime",
    "CPUStartQPCTimeInMs",
    "CPUStartDateTime",
)
_POWERS = {0: "seconds", 3: "milliseconds", 6: "microseconds", 9: "nanoseconds"}


@dataclass(frozen=True, slots=True)
class Names:
    """The columns of one table of presents, as its header spells them."""

    stamp: str
    interval: str | None
    event: Event = Event.PRESENT
    follows: bool = False
    parts: tuple[str, ...] = ()
    """2.0 has no `FrameTime`: it is the sum of these."""
    until_displayed: str | None = None
    display_change: str | None = None
    dropped: str | None = None
    frame_type: str | None = None
    zero_is_missing: bool = False
    """1.x writes 0 where there is no value."""
    holds_ms: bool = False
    """`--qpc_time_ms` writes milliseconds into `TimeInSeconds`."""


def names_of(sheet: Sheet) -> tuple[str, Names] | None:
    """The family of a header and its columns; None when it is no PresentMon table."""
    interval = sheet.first_of("MsBetweenPresents")
    stamp = sheet.first_of(*_STAMPS)
    if stamp is not None and (interval or sheet.first_of("ProcessID")):
        return _presents(sheet, stamp, interval)
    cpu_start = sheet.first_of(*_CPU_STARTS)
    if cpu_start is None or not sheet.first_of("FrameTime", "CPUBusy", "ProcessID"):
        return None
    own = sheet.first_of("FrameTime", "MsBetweenAppStart")
    parts = [sheet.first_of("CPUBusy", "MsCPUBusy"), sheet.first_of("CPUWait")]
    names = Names(
        stamp=cpu_start,
        interval=own or interval,
        parts=tuple(part for part in parts if part) if all(parts) else (),
        event=Event.CPU_START,
        follows=own is not None or interval is None,
        until_displayed=sheet.first_of("DisplayLatency"),
        display_change=sheet.first_of("DisplayedTime"),
        frame_type=sheet.first_of("FrameType"),
    )
    return "v2", names


def _presents(sheet: Sheet, stamp: str, interval: str | None) -> tuple[str, Names]:
    newer = sheet.first_of("MsBetweenAppStart", "MsCPUBusy", "PresentRuntime")
    names = Names(
        stamp=stamp,
        interval=interval,
        until_displayed=sheet.first_of("MsUntilDisplayed"),
        display_change=sheet.first_of("MsBetweenDisplayChange"),
        dropped=sheet.first_of("Dropped"),
        frame_type=sheet.first_of("FrameType"),
        zero_is_missing=newer is None,
        holds_ms=sheet.has("CPUStartQPCTimeInMs"),
    )
    if newer is None:
        return "v1", names
    return ("app" if sheet.has("CPUUtilization") else "default"), names


def wanted_of(sheet: Sheet, names: Names) -> list[Wanted]:
    """The columns to read."""
    own = names.parts if names.interval is None else (names.interval,)
    times = (*own, names.until_displayed, names.display_change)
    texts = (names.frame_type, *owner_columns(sheet))
    return [
        Wanted(names.stamp, stamp_kind(names.stamp), required=True),
        *(Wanted(name, Kind.MILLISECONDS) for name in times if name),
        *(Wanted(name, Kind.TEXT) for name in texts if name),
        *([Wanted(names.dropped, Kind.INTEGER)] if names.dropped else []),
    ]


def owner_columns(sheet: Sheet) -> tuple[str | None, str | None, str | None]:
    """The columns that tell whose frame a row is."""
    return (
        sheet.first_of("Application", "ProcessName"),
        sheet.first_of("ProcessID"),
        sheet.first_of("SwapChainAddress"),
    )


def stamp_kind(name: str) -> Kind:
    """How a column of stamps is read, before its unit is proven."""
    if name.endswith("DateTime"):
        return Kind.DATE_TIME
    return Kind.INTEGER if name.endswith("QPC") else Kind.SECONDS


def read_presents(
    source: Source, sheet: Sheet, names: Names, tool: str, version: str
) -> Capture:
    """Read a table of presents: PresentMon's own, or of a tool built on it."""
    table = sheet.read(wanted_of(sheet, names))
    notes = list(table.notes)
    columns = [table.get(name) for name in owner_columns(sheet)]
    owners, which = owners_of(table.rows, *columns)
    intervals = _intervals(table, names)
    stamps, clock = _stamps(source, table, names, intervals, which, notes)
    presents = _presents_of(table, names, stamps, intervals)
    # Ten million rows: what is not needed any more must go before series are made.
    del table, columns, stamps, intervals
    meaning = Meaning(
        tool=tool,
        event=names.event,
        clock=clock,
        stamp_column=names.stamp,
        interval_column=names.interval or "".join(names.parts[:1]),
        interval_follows=names.follows,
    )
    series = series_of(source, presents, owners, which, meaning, notes)
    return Capture(
        file=source.name,
        format=tool,
        version=version,
        series=series,
        notes=tuple(notes),
    )


def _intervals(table: Table, names: Names) -> Int64s | None:
    column = table.get(names.interval)
    if column is not None:
        return column.values
    if not names.parts:
        return None
    busy, wait = (table[part].values for part in names.parts)
    return np.asarray(busy + wait, np.int64)


def _stamps(
    source: Source,
    table: Table,
    names: Names,
    intervals: Int64s | None,
    which: npt.NDArray[np.int64],
    notes: list[str],
) -> tuple[Int64s, Clock]:
    """Stamps in nanoseconds, the unit proven by the frame times."""
    stamps: Int64s = table[names.stamp].values
    if names.stamp.endswith("DateTime"):
        return stamps, Clock.REALTIME
    steps = times = stamps[:0]
    if intervals is not None:
        own: Any = slice(None)
        generated = _generated(table.get(names.frame_type))
        if generated is not None:
            # Frames that a driver put between two have no frame time of their own.
            own = ~generated
        steps, times = pairs_of(
            stamps[own], intervals[own], which[own], follows=names.follows
        )
    if names.stamp.endswith("QPC"):
        hz = told_frequency_hz(steps, times)
        if hz is None:
            raise source.error(
                "the counter's frequency cannot be told: no frame time matches its "
                "steps; record with seconds instead of --qpc_time",
                line=int(table.lines[0]),
                column=names.stamp,
            )
        notes.append(
            f"{names.stamp} counts at {hz / 1e6:g} MHz, told by the frame times"
        )
        try:
            return ticks_to_ns(stamps, hz), Clock.QPC
        except OverflowError as error:
            raise source.error(str(error), column=names.stamp) from error
    power = told_power(steps, times)
    expected = _expected_power(names.stamp)
    told_by = "frame times"
    if power is None:
        power, told_by = (3, "header") if names.holds_ms else (expected, "")
        is_open = intervals is None or len(steps) > 20
        if is_open and names.stamp == "CPUStartTime":
            raise source.error(
                "the unit cannot be told: frame times do not match its steps",
                line=int(table.lines[0]),
                column=names.stamp,
            )
    if power != expected:
        notes.append(f"{names.stamp} is in {_POWERS[power]}, told by the {told_by}")
    clock = Clock.QPC if "QPC" in names.stamp else Clock.TOOL
    return (stamps // 10**power if power else stamps), clock


def _expected_power(name: str) -> int:
    return (
        3 if name.endswith("InMs") or name in ("CPUStartTime", "CPUStartQPCTime") else 0
    )


def _presents_of(
    table: Table, names: Names, stamps: Int64s, intervals: Int64s | None
) -> Presents:
    until = table.get(names.until_displayed)
    change = table.get(names.display_change)
    dropped = table.get(names.dropped)
    lost: Bools | None = None
    if dropped is not None:
        lost = dropped.values != 0
    display: Int64s | None = None
    if until is not None:
        never = _never_displayed(until, names, lost)
        lost = never if lost is None else lost
        if not bool(never.all()):
            display = stamps + until.values
            display[never] = MISSING_NS
    return Presents(
        stamps_ns=stamps,
        lines=table.lines,
        interval_ns=intervals,
        display_ns=display,
        display_interval_ns=None if change is None else change.values,
        dropped=lost,
        generated=_generated(table.get(names.frame_type)),
    )


def _never_displayed(until: Column, names: Names, lost: Bools | None) -> Bools:
    never = until.missing
    if names.zero_is_missing:
        never = never | (until.values == 0)
    return np.asarray(never if lost is None else never | lost, np.bool_)


def _generated(frame_type: Column | None) -> Bools | None:
    """Rows of frames that the application did not present itself."""
    if frame_type is None:
        return None
    other = [
        code
        for code, word in enumerate(frame_type.vocabulary)
        if word not in ("Application", "NotSet", "Repeated", "NA", "")
    ]
    return np.isin(frame_type.values, other) if other else None


class PresentMonReader:
    """Tables of presents as PresentMon writes them."""

    name: ClassVar[str] = "presentmon"

    def claims(self, source: Source) -> bool:
        """A header with the names of one of the four families."""
        if not source.is_text:
            return False
        sheet = open_sheet(source)
        return names_of(sheet) is not None or sheet.has("ProcessID", "PresentFlags")

    def read(self, source: Source) -> Capture:
        """Presents, and displays where they were tracked."""
        sheet = open_sheet(source)
        found = names_of(sheet)
        if found is None:
            raise source.error(
                f"no column tells the time of a present: none of {', '.join(_STAMPS)} "
                f"or CPUStartTime is there",
                line=sheet.header_line + 1,
            )
        version, names = found
        return read_presents(source, sheet, names, self.name, version)


READER = PresentMonReader()
