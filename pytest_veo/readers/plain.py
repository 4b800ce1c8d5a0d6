"""Plain tables of stamps or frame times, told by the names of their columns.

A column's name must say its unit (`t_ns`, `frame_ms`, `Time (s)`, `timestampUs`): a
number alone tells none, and a guess would be a wrong number one day. What the name
says besides decides the event: `present`, `display`, `gpu_end`, `recv`, `pts`, ...
"""

from __future__ import annotations

import dataclasses
from typing import Any
from typing import ClassVar

import numpy as np

from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import Int64s
from pytest_veo.readers.capture import Capture
from pytest_veo.readers.capture import CapturedSeries
from pytest_veo.readers.clock_pairs import holds_pairs
from pytest_veo.readers.columns import Column
from pytest_veo.readers.columns import Kind
from pytest_veo.readers.columns import Table
from pytest_veo.readers.columns import Wanted
from pytest_veo.readers.plain_names import Stamps
from pytest_veo.readers.plain_names import stamps_of
from pytest_veo.readers.present_checks import check_steps
from pytest_veo.readers.presents import Meaning
from pytest_veo.readers.sampled import APART
from pytest_veo.readers.sampled import frames_apart
from pytest_veo.readers.source import Source
from pytest_veo.readers.table import Sheet
from pytest_veo.readers.table import open_sheet


_SEQUENCES = (
    "frame_index",
    "frame",
    "index",
    "sequence",
    "seq",
    "frame_id",
    "presentid",
)
_MOST_BACK = 0.2
"""Stamps that go back more often are none."""
_GROUPS = ("series", "name", "stream", "event")


def _columns(sheet: Sheet) -> list[Stamps]:
    """Columns of stamps; those of frame times only where there are none."""
    found = [s for name in dict.fromkeys(sheet.header) if (s := stamps_of(name))]
    stamps = [one for one in found if not one.is_interval]
    return stamps or found[:1]


class PlainReader:
    """Tables of one's own making."""

    name: ClassVar[str] = "plain"

    def claims(self, source: Source) -> bool:
        """A header with a column of stamps or frame times that says its unit."""
        if not source.is_text:
            return False
        sheet = open_sheet(source)
        return holds_pairs(sheet) or bool(_columns(sheet))

    def read(self, source: Source) -> Capture:
        """A series for each column of stamps, and each name in a column of names."""
        sheet = open_sheet(source)
        if holds_pairs(sheet):
            raise source.error(
                "pairs of two clocks' stamps, and no frames: read them with "
                "pytest_veo.readers.clock_pairs.read_clock_fit",
                line=sheet.header_line + 1,
            )
        columns = _columns(sheet)
        names = [column.name for column in columns]
        sequence = sheet.first_of(*_SEQUENCES)
        sequence = None if sequence in names else sequence
        group = sheet.first_of(*_GROUPS)
        wanted = [Wanted(column.name, column.kind) for column in columns]
        wanted += [Wanted(sequence, Kind.INTEGER)] if sequence else []
        wanted += [Wanted(group, Kind.TEXT)] if group else []
        table = sheet.read(wanted)
        notes = list(table.notes)
        if group is None:
            columns = _ordered(table, columns, notes)
        series = [
            one
            for column in columns
            for one in _series(source, table, column, sequence, group, notes)
        ]
        if not series:
            raise source.error("no column has two stamps", line=sheet.header_line + 1)
        if group is None:
            series = [_proven(sheet, one, columns, notes) for one in series]
        return Capture(
            file=source.name, format=self.name, series=tuple(series), notes=tuple(notes)
        )


def _proven(
    sheet: Sheet, series: CapturedSeries, columns: list[Stamps], notes: list[str]
) -> CapturedSeries:
    """The series, told as samples where frame times or rates beside it say so."""
    stamps = next(column for column in columns if column.name == series.name)
    if stamps.is_interval:
        return series
    found = [s for name in sheet.header if (s := stamps_of(name)) and s.is_interval]
    times = (found[0].name, found[0].kind) if found else None
    apart = frames_apart(sheet, (stamps.name, stamps.kind), times)
    if apart is None or apart <= APART:
        return series
    notes.append(
        f"{series.name}: rows lie {apart:.3g} frames apart by what stands beside them: "
        f"samples, not frames, so nothing can be said about jitter"
    )
    return dataclasses.replace(series, sampled=True)


def _ordered(table: Table, columns: list[Stamps], notes: list[str]) -> list[Stamps]:
    """The columns that can be stamps, where another tells the time.

    A `decode_time_ms` beside `t_ms` says how long decoding took.
    """
    if len(columns) == 1:
        return columns
    kept = []
    for column in columns:
        read = table[column.name]
        values = read.values[~read.missing]
        share = (values[1:] < values[:-1]).mean() if len(values) > 2 else 0.0
        if column.is_interval or share < _MOST_BACK:
            kept.append(column)
    if not kept:
        return columns
    notes.extend(
        f"{column.name}: values that go up and down are no stamps: left out"
        for column in columns
        if column not in kept
    )
    return kept


def _series(
    source: Source,
    table: Table,
    stamps: Stamps,
    sequence: str | None,
    group: str | None,
    notes: list[str],
) -> list[CapturedSeries]:
    column = table[stamps.name]
    groups = table.get(group)
    numbers = table.get(sequence)
    made = []
    count = 1 if groups is None else len(groups.vocabulary)
    whole = groups is None and not bool(column.missing.any())
    for code in range(count):
        rows: Any = slice(None) if whole else ~column.missing
        if groups is not None:
            rows = rows & (groups.values == code)
        if len(column.values[rows]) < 2:
            continue
        name = stamps.name if groups is None else groups.vocabulary[code]
        lines = table.lines[rows]
        event = stamps.event
        if groups is not None and name in tuple(Event) and event is Event.FRAME:
            event = Event(name)
        values = column.values[rows]
        missing = int(column.missing.sum())
        if missing and groups is None:
            notes.append(f"{name}: {missing} rows without a stamp are left out")
        made.append(
            CapturedSeries(
                event=event,
                clock=Clock.MEDIA if event is Event.PTS else Clock.TOOL,
                name=name,
                source=source.name,
                tool="plain",
                rows=lines.astype(np.int64),
                sequence=None if numbers is None else _whole_numbers(numbers, rows),
                **_paced(source, stamps, name, values, lines, notes),
            )
        )
    return made


def _whole_numbers(column: Column, rows: Any) -> Int64s | None:
    return None if bool(column.missing[rows].any()) else column.values[rows]


def _paced(
    source: Source,
    stamps: Stamps,
    name: str,
    values: Int64s,
    lines: np.ndarray[Any, Any],
    notes: list[str],
) -> dict[str, Any]:
    """Stamps, and frame times where the file has those instead."""
    meaning = Meaning(
        tool="plain",
        event=stamps.event,
        clock=Clock.TOOL,
        stamp_column=stamps.name,
        interval_column=stamps.name,
    )
    if stamps.is_interval:
        if bool((values <= 0).any()):
            row = int(np.argmax(values <= 0))
            raise source.error(
                f"{values[row] / 1e6:g} ms is no frame time",
                line=int(lines[row]),
                column=stamps.name,
            )
        summed = np.cumsum(values)
        check_steps(source, summed, lines, meaning, notes)
        notes.append(f"{name}: frame times without stamps, laid end to end")
        return {"t_ns": summed, "frame_times_ns": values}
    back = values[1:] < values[:-1]
    if bool(back.any()):
        raise source.error(
            "time goes back: two captures in one file, or several series mixed (name "
            "them in a column `series`)",
            line=int(lines[int(np.argmax(back)) + 1]),
            column=stamps.name,
        )
    check_steps(source, values, lines, meaning, notes)
    return {"t_ns": values}


READER = PlainReader()
