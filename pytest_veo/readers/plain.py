"""Plain tables of stamps or frame times, told by the names of their columns.

A column's name must say its unit (`t_ns`, `frame_ms`, `Time (s)`, `timestampUs`): a
number alone tells none, and a guess would be a wrong number one day. What the name
says besides decides the event: `present`, `display`, `gpu_end`, `recv`, `pts`, ...
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any
from typing import ClassVar

import numpy as np

from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import Int64s
from pytest_veo.readers.capture import Capture
from pytest_veo.readers.capture import CapturedSeries
from pytest_veo.readers.columns import Column
from pytest_veo.readers.columns import Kind
from pytest_veo.readers.columns import Table
from pytest_veo.readers.columns import Wanted
from pytest_veo.readers.present_checks import check_steps
from pytest_veo.readers.presents import Meaning
from pytest_veo.readers.sampled import APART
from pytest_veo.readers.sampled import frames_apart
from pytest_veo.readers.source import Source
from pytest_veo.readers.table import Sheet
from pytest_veo.readers.table import open_sheet


_UNITS = {
    "ns": Kind.NANOSECONDS,
    "nsec": Kind.NANOSECONDS,
    "nanoseconds": Kind.NANOSECONDS,
    "us": Kind.MICROSECONDS,
    "usec": Kind.MICROSECONDS,
    "microseconds": Kind.MICROSECONDS,
    "ms": Kind.MILLISECONDS,
    "msec": Kind.MILLISECONDS,
    "milliseconds": Kind.MILLISECONDS,
    "s": Kind.SECONDS,
    "sec": Kind.SECONDS,
    "secs": Kind.SECONDS,
    "seconds": Kind.SECONDS,
}
_INTERVALS = {
    ("frame",),
    ("frame", "time"),
    ("frame", "times"),
    ("frametime",),
    ("frametimes",),
    ("frame", "interval"),
    ("frame", "duration"),
    ("interval",),
    ("delta",),
    ("dt",),
}
_EVENTS = (
    (("actual", "present"), Event.DISPLAY),
    (("displayed",), Event.DISPLAY),
    (("display",), Event.DISPLAY),
    (("scanout",), Event.DISPLAY),
    (("pixel", "out"), Event.DISPLAY),
    (("pixel", "visible"), Event.DISPLAY),
    (("operations", "end"), Event.GPU_END),
    (("dequeued",), Event.PRESENT),
    (("vblank",), Event.VSYNC),
    (("vsync",), Event.VSYNC),
    (("present",), Event.PRESENT),
    (("presented",), Event.PRESENT),
    (("gpu", "start"), Event.GPU_START),
    (("gpu", "begin"), Event.GPU_START),
    (("gpu", "end"), Event.GPU_END),
    (("gpu", "done"), Event.GPU_END),
    (("cpu", "start"), Event.CPU_START),
    (("submit",), Event.SUBMIT),
    (("enqueue",), Event.ENQUEUE),
    (("decode",), Event.DECODE),
    (("pts",), Event.PTS),
    (("send",), Event.SEND),
    (("sent",), Event.SEND),
    (("recv",), Event.RECEIVE),
    (("receive",), Event.RECEIVE),
    (("received",), Event.RECEIVE),
    (("arrival",), Event.RECEIVE),
    (("time",), Event.FRAME),
    (("timestamp",), Event.FRAME),
    (("stamp",), Event.FRAME),
    (("elapsed",), Event.FRAME),
    (("t",), Event.FRAME),
    (("frame",), Event.FRAME),
)
_VULKAN = {
    "actualpresenttime": Event.DISPLAY,
    "imagefirstpixelout": Event.DISPLAY,
    "imagefirstpixelvisible": Event.DISPLAY,
    "queueoperationsend": Event.GPU_END,
    "requestdequeued": Event.PRESENT,
}
"""Names of Vulkan's present timing, in nanoseconds by its specification."""
_NOT_STAMPS = frozenset(
    {
        "desired",
        "target",
        "expected",
        "budget",
        "margin",
        "latency",
        "busy",
        "wait",
        "delay",
        "lag",
        "age",
        "cost",
        "load",
        "total",
        "sum",
        "avg",
        "average",
        "mean",
        "min",
        "minimum",
        "max",
        "maximum",
        "med",
        "median",
        "std",
        "stddev",
        "variance",
        "duration",
        "jitter",
        "error",
        "rtt",
        "ping",
        "drift",
        "offset",
        "deviation",
        "work",
        "idle",
        "render",
        "draw",
        "update",
        "physics",
        "logic",
        "game",
        "thread",
        "process",
        "encode",
    }
)
"""Words of times that are no stamps: durations, wishes, figures."""
_EDGES = {"start", "begin", "end", "done"}
"""A `gpu_end_time` is a stamp, a `gpu_time` a duration."""
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


@dataclass(frozen=True, slots=True)
class _Stamps:
    """A column of stamps or of frame times."""

    name: str
    kind: Kind
    event: Event
    is_interval: bool


def _words(name: str) -> list[str]:
    """`actualPresentTime (ns)` as `actual present time ns`."""
    # Microseconds: both signs, and what is left of one in another code page.
    plain = re.sub("[\u00b5\u03bc\ufffd](?=s)", "u", name)
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", plain)
    return re.findall(r"[a-z]+", spaced.lower())


def _stamps_of(name: str) -> _Stamps | None:
    vulkan = _VULKAN.get("".join(_words(name)))
    if vulkan is not None:
        return _Stamps(name, Kind.NANOSECONDS, vulkan, is_interval=False)
    if "/" in name:
        # Frames/s, 1/s, J/ms: a rate has no stamps.
        return None
    words = _words(name)
    kind = _UNITS.get(words[-1]) if words else None
    if kind is None:
        return None
    rest = words[:-1]
    if rest and rest[-1] == "in":
        rest = rest[:-1]
    if not rest:
        return _Stamps(name, kind, Event.FRAME, is_interval=False)
    if tuple(rest) in _INTERVALS:
        return _Stamps(name, kind, Event.FRAME, is_interval=True)
    if _NOT_STAMPS & set(rest):
        return None
    if rest[-1] == "time" and {"cpu", "gpu"} & set(rest) and not _EDGES & set(rest):
        return None
    for signs, event in _EVENTS:
        if all(sign in rest for sign in signs):
            return _Stamps(name, kind, event, is_interval=False)
    return None


def _columns(sheet: Sheet) -> list[_Stamps]:
    """Columns of stamps; those of frame times only where there are none."""
    found = [s for name in dict.fromkeys(sheet.header) if (s := _stamps_of(name))]
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
        pairs = {"gpu_ns", "cpu_ns"} <= set(sheet.header)
        return bool(_columns(sheet)) and not pairs

    def read(self, source: Source) -> Capture:
        """A series for each column of stamps, and each name in a column of names."""
        sheet = open_sheet(source)
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
    sheet: Sheet, series: CapturedSeries, columns: list[_Stamps], notes: list[str]
) -> CapturedSeries:
    """The series, told as samples where frame times or rates beside it say so."""
    stamps = next(column for column in columns if column.name == series.name)
    if stamps.is_interval:
        return series
    found = [s for name in sheet.header if (s := _stamps_of(name)) and s.is_interval]
    times = (found[0].name, found[0].kind) if found else None
    apart = frames_apart(sheet, (stamps.name, stamps.kind), times)
    if apart is None or apart <= APART:
        return series
    notes.append(
        f"{series.name}: rows lie {apart:.3g} frames apart by what stands beside them: "
        f"samples, not frames, so nothing can be said about jitter"
    )
    return dataclasses.replace(series, sampled=True)


def _ordered(table: Table, columns: list[_Stamps], notes: list[str]) -> list[_Stamps]:
    """The columns that can be stamps, where another tells the time.

    A `decode_time_ms` beside `t_ms` says how long decoding took.
    """
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
    stamps: _Stamps,
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
    stamps: _Stamps,
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
