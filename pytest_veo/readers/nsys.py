"""Nsight Systems exports: SQLite (`nsys export`) and CSV (`nsys stats -f csv`).

All times are nanoseconds since the session began. Frames are told by calls that
present, and by NVTX ranges that come again and again.

A SQLite file is opened read-only and only ordinary tables are read: a view in a file
from elsewhere could hold any query.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import ClassVar

import numpy as np

from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import Int64s
from pytest_veo.readers.capture import Capture
from pytest_veo.readers.capture import CapturedSeries
from pytest_veo.readers.capture import whole
from pytest_veo.readers.columns import Kind
from pytest_veo.readers.columns import Wanted
from pytest_veo.readers.present_checks import LONGEST_FRAME_NS
from pytest_veo.readers.source import Source
from pytest_veo.readers.table import Sheet
from pytest_veo.readers.table import open_sheet


_MAGIC = b"SQLite format 3\0"
_API_TABLES = (
    "DX11_API",
    "DX12_API",
    "DXGI_API",
    "VULKAN_API",
    "OPENGL_API",
    "OPENXR_API",
    "WDDM_PRESENT_EVENTS",
)
_PRESENTS = re.compile(r"Present(?!ation|ModeS)|SwapBuffers|xrEndFrame")
_NVTX_RANGES = (59, 60)
"""Event types of push/pop and start/end ranges."""
_FEWEST = 3
"""A range that came less often is no frame."""
_MOST_STEPS = 2_000_000_000
_START = re.compile(
    r"start(?:[ _]?\(?(nsec|ns|usec|us|\u00b5s|\u03bcs|msec|ms|sec|s)\)?)?",
    re.IGNORECASE,
)
_UNITS = {
    "ns": Kind.NANOSECONDS,
    "nsec": Kind.NANOSECONDS,
    "us": Kind.MICROSECONDS,
    "usec": Kind.MICROSECONDS,
    "\u00b5s": Kind.MICROSECONDS,
    "\u03bcs": Kind.MICROSECONDS,
    "ms": Kind.MILLISECONDS,
    "msec": Kind.MILLISECONDS,
    "s": Kind.SECONDS,
    "sec": Kind.SECONDS,
}
_SUMMARY = {"Instances", "Num Calls", "Count"}
_SEARCHED_LINES = 20
_ABOVE = (
    *("Processing", "Generating", "Exporting", "[", " **", "**", "NOTICE", "WARNING"),
)
_NAMES = ("Name", "Range", "name", "text")


class NsysReader:
    """Exports of Nsight Systems."""

    name: ClassVar[str] = "nsys"

    def claims(self, source: Source) -> bool:
        """A SQLite database, or a CSV with `Start (ns)` and names."""
        if source.magic.startswith(_MAGIC):
            return True
        if not source.is_text:
            return False
        return _sheet(source) is not None or _is_summary(source)

    def read(self, source: Source) -> Capture:
        """A series for each presenting call and each repeated range."""
        if source.magic.startswith(_MAGIC):
            return _read_database(source)
        sheet = _sheet(source)
        if sheet is None:
            raise source.error(
                "a summary of Nsight Systems: it holds no times of frames; export a "
                "trace (nsys stats -r nvtx_pushpop_trace, or nsys export -t sqlite)"
            )
        return _read_csv(source, sheet)


def _sheet(source: Source) -> Sheet | None:
    """The table of a trace; `nsys stats` prints a line or two above it."""
    for number, line in enumerate(source.head[:_SEARCHED_LINES]):
        sheet = open_sheet(source, number) if "art" in line else None
        if sheet and _start_of(sheet) and any(n in sheet.header for n in _NAMES):
            return sheet
        if not (number == 0 or not line.strip() or line.startswith(_ABOVE)):
            return None
    return None


def _start_of(sheet: Sheet) -> str | None:
    return next((name for name in sheet.header if _START.fullmatch(name)), None)


def _is_summary(source: Source) -> bool:
    header = set(open_sheet(source).header)
    times = any(name.startswith("Total Time (") for name in header)
    return times and bool(_SUMMARY & header)


def _series(source: Source, name: str, stamps: Int64s) -> CapturedSeries:
    # Rows of several threads are not in order; calls of one name are one stream.
    is_ordered = not bool((stamps[1:] < stamps[:-1]).any())
    ordered = stamps if is_ordered else np.sort(stamps)
    steps = np.diff(ordered)
    if bool((steps >= LONGEST_FRAME_NS).any()):
        hours = int(steps.max()) / 3.6e12
        raise source.error(f"{name}: a frame of {hours:.1f} hours")
    event = Event.PRESENT if _PRESENTS.search(name) else Event.FRAME
    return CapturedSeries(
        t_ns=ordered,
        event=event,
        clock=Clock.TOOL,
        name=name,
        source=source.name,
        tool="nsys",
        resolution_ns=1,
    )


def _capture(
    source: Source, version: str, found: dict[str, Int64s], notes: list[str]
) -> Capture:
    series = [
        _series(source, name, stamps)
        for name, stamps in found.items()
        if len(stamps) >= _FEWEST
    ]
    if not series:
        raise source.error(
            f"no call that presents and no NVTX range that came {_FEWEST} times: trace "
            f"with -t dx12,vulkan,opengl,nvtx"
        )
    series.sort(key=lambda s: s.event is not Event.PRESENT)
    return Capture(
        file=source.name,
        format="nsys",
        version=version,
        series=tuple(series),
        notes=tuple(notes),
    )


def _read_database(source: Source) -> Capture:
    address = f"{source.path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            steps = iter(range(_MOST_STEPS // 100_000))
            # A damaged index can make a query run for ever.
            database.set_progress_handler(lambda: next(steps, None) is None, 100_000)
            database.execute("PRAGMA trusted_schema = OFF")
            database.text_factory = _text
            found: dict[tuple[str, str], list[int]] = {}
            tables = _tables(database)
            for name, thread, stamp in _calls(source, database, tables):
                found.setdefault((name, _process(thread)), []).append(stamp)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # The words of an error may quote the damage.
        raise source.error(f"no SQLite database that can be read: {error}") from error
    except OverflowError as error:
        raise source.error(f"a number beyond 64 bits: {error}") from error
    arrays = {key: whole(stamps) for key, stamps in found.items()}
    return _capture(source, "sqlite", _named(arrays), [])


def _process(thread: object) -> str:
    """The process of a `globalTid`: the 24 bits above the thread's own."""
    return str(thread >> 24 & 0xFFFFFF) if isinstance(thread, int) else ""


def _named(found: dict[tuple[str, str], Int64s]) -> dict[str, Int64s]:
    """Calls and ranges by name, and by process where several have one."""
    processes = Counter(name for name, _ in found)
    return {
        name if processes[name] == 1 else f"{name}[{process}]": stamps
        for (name, process), stamps in found.items()
    }


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _tables(database: sqlite3.Connection) -> dict[str, set[str]]:
    """The ordinary tables and their columns."""
    names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    wanted = {*_API_TABLES, "NVTX_EVENTS", "StringIds"}
    return {
        name: {row[1] for row in database.execute(f"PRAGMA table_info({name})")}
        for (name,) in names.fetchall()
        if name in wanted
    }


def _calls(
    source: Source, database: sqlite3.Connection, tables: dict[str, set[str]]
) -> Iterator[tuple[str, object, int]]:
    """Name, thread and stamp of each call and range."""
    strings = _strings(database, tables)
    for table in _API_TABLES:
        if not {"start", "nameId"} <= tables.get(table, set()):
            continue
        wanted = [k for k, text in strings.items() if _PRESENTS.search(text)]
        for identity in wanted[:100]:
            thread = _thread(tables[table])
            query = f"SELECT start, {thread} FROM {table} WHERE nameId = ?"
            for start, where in database.execute(query, (identity,)):
                yield strings[identity], where, _stamp(source, table, start)
    if {"start", "text", "eventType"} <= tables.get("NVTX_EVENTS", set()):
        yield from _ranges(source, database, tables["NVTX_EVENTS"], strings)


def _strings(
    database: sqlite3.Connection, tables: dict[str, set[str]]
) -> dict[int, str]:
    if not {"id", "value"} <= tables.get("StringIds", set()):
        return {}
    rows = database.execute("SELECT id, value FROM StringIds LIMIT 2000000")
    return {key: text for key, text in rows if isinstance(text, str)}


def _ranges(
    source: Source,
    database: sqlite3.Connection,
    columns: set[str],
    strings: dict[int, str],
) -> Iterator[tuple[str, object, int]]:
    identity = "textId" if "textId" in columns else "NULL"
    query = (
        f"SELECT start, text, {identity}, {_thread(columns)} FROM NVTX_EVENTS "
        f"WHERE eventType IN (?, ?) AND start IS NOT NULL"
    )
    for start, text, key, where in database.execute(query, _NVTX_RANGES):
        name = text if isinstance(text, str) else strings.get(key, "")
        if name:
            yield name, where, _stamp(source, "NVTX_EVENTS", start)


def _thread(columns: set[str]) -> str:
    return "globalTid" if "globalTid" in columns else "NULL"


def _stamp(source: Source, table: str, start: object) -> int:
    if not isinstance(start, int):
        raise source.error(f"{str(start)[:40]!r} is no time", column=f"{table}.start")
    return start


def _read_csv(source: Source, sheet: Sheet) -> Capture:
    start = _start_of(sheet)
    assert start is not None
    found_unit = _START.fullmatch(start)
    unit = found_unit[1] if found_unit else None
    kind = _UNITS[unit.lower()] if unit else Kind.NANOSECONDS
    label = next(name for name in _NAMES if name in sheet.header)
    process = sheet.first_of("PID")
    texts = [Wanted(name, Kind.TEXT) for name in (label, process) if name]
    table = sheet.read([Wanted(start, kind, required=True), *texts])
    names, stamps, of = table[label], table[start].values, table.get(process)
    words = of.vocabulary if of else ("",)
    if len(names.vocabulary) == len(words) == 1:
        found = {names.vocabulary[0]: stamps}
        return _capture(source, "csv", found, list(table.notes))
    keys = names.values.astype(np.int64) * len(words) + (of.values if of else 0)
    order = np.argsort(keys, kind="stable")
    codes, first = np.unique(keys[order], return_index=True)
    parts = np.split(stamps[order], first[1:])
    several = {
        (names.vocabulary[code // len(words)], words[code % len(words)]): part
        for code, part in zip(codes.tolist(), parts, strict=True)
    }
    return _capture(source, "csv", _named(several), list(table.notes))


READER = NsysReader()
