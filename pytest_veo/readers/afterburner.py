"""MSI Afterburner's hardware log: one row a second, whatever the frame rate.

The first cell is the row's kind: 0 begins a session, 1 names the GPUs, 2 the columns,
3 describes a column, 80 holds values. Dates are local, to the second.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field
from typing import ClassVar

import numpy as np

from pytest_veo.errors import CaptureError
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import Int64s
from pytest_veo.readers.capture import Capture
from pytest_veo.readers.capture import CapturedSeries
from pytest_veo.readers.capture import whole
from pytest_veo.readers.columns import Kind
from pytest_veo.readers.columns import Table
from pytest_veo.readers.columns import Wanted
from pytest_veo.readers.dates import parse_date_time
from pytest_veo.readers.numbers import MISSING
from pytest_veo.readers.numbers import parse_unusual
from pytest_veo.readers.present_checks import LONGEST_FRAME_NS
from pytest_veo.readers.reading import looks_cut
from pytest_veo.readers.source import Source
from pytest_veo.readers.table import Sheet
from pytest_veo.readers.table import guess_delimiter
from pytest_veo.readers.table import split_line


_TIMES = ("Frametime", "Framerate")
"""Columns that tell a frame time, the better one first."""
_TITLE = re.compile(r"hardware monitoring log *[\w.]*", re.IGNORECASE)
_HEADS = ("0", "00", "1", "01", "2", "02")
"""Kinds of the rows that begin a session."""
_SEARCHED_LINES = 400
"""Where the first row of values must stand: there is a row of kind 3 a column."""
_FIRST_VALUE = 2
"""The first two cells are the kind and the date, in rows of names as well."""


@dataclass(frozen=True, slots=True, eq=False)
class _Samples:
    """The rows of a session that tell a frame time: three arrays of shape (n,)."""

    stamps_ns: Int64s
    frame_times_ns: Int64s
    lines: Int64s


@dataclass(slots=True)
class _Session:
    """What one start of the log wrote."""

    gpu: str = ""
    names: list[str] = field(default_factory=list)
    stamps_ns: list[int] = field(default_factory=list)
    frame_times_ns: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    at_once: _Samples | None = None
    """The same three, where the file was read as a table."""
    without: int = 0
    """Rows without a frame time: no program ran."""
    cut: bool = False
    """Whether the last row was cut in writing and is left out."""

    def samples(self) -> _Samples:
        """The rows as arrays."""
        return self.at_once or _Samples(
            whole(self.stamps_ns), whole(self.frame_times_ns), whole(self.lines)
        )


class AfterburnerReader:
    """`HardwareMonitoring.hml`, also saved as CSV."""

    name: ClassVar[str] = "afterburner"

    def claims(self, source: Source) -> bool:
        """The title in the first row; or its kind and date, where a copy lost it."""
        if not source.is_text:
            return False
        kind, *rest = split_line(source.head[0], guess_delimiter(source.head[0]))
        if _TITLE.search(source.head[0]):
            return True
        is_row = kind in _HEADS and len(rest) > 1
        return is_row and parse_date_time(rest[0].encode()) is not None

    def read(self, source: Source) -> Capture:
        """One sampled series a session."""
        notes: list[str] = []
        at_once = _session_at_once(source)
        found = iter([at_once]) if at_once else _sessions(source)
        sessions = [session for session in found if len(session.samples().lines)]
        if not sessions:
            raise source.error("no row of values (kind 80)")
        if len(sessions) > 1:
            notes.append(f"{len(sessions)} sessions in one file: a series for each")
        series = tuple(
            _series(source, session, number, len(sessions), notes)
            for number, session in enumerate(sessions, 1)
        )
        notes.append(
            "rows are samples about a second apart, not frames: nothing can be said "
            "about jitter"
        )
        title = _TITLE.search(source.head[0])
        gpus = dict.fromkeys(session.gpu for session in sessions if session.gpu)
        return Capture(
            file=source.name,
            format=self.name,
            version=title[0] if title else "",
            series=series,
            notes=tuple(notes),
            facts=tuple(("GPU", gpu) for gpu in gpus),
        )


def _session_at_once(source: Source) -> _Session | None:
    """A file of one session, its rows read as a table; None: go row by row."""
    mark = guess_delimiter(source.head[0])
    kinds = [line.partition(mark)[0].strip() for line in source.head[:_SEARCHED_LINES]]
    if "80" not in kinds:
        return None
    first = kinds.index("80")
    above = [
        [cell.strip() for cell in split_line(line, mark)]
        for line in source.head[:first]
    ]
    names = next(
        (c for k, c in zip(kinds, above, strict=False) if k in ("2", "02")), []
    )
    asked: list[str] = [n for n in _TIMES if n in names]
    if not asked:
        return None
    header = ("kind", "date", *names[_FIRST_VALUE:])
    sheet = Sheet(source, header, first - 1, mark, "." if mark == "," else ",")
    wanted = [
        Wanted("kind", Kind.INTEGER, required=True),
        Wanted("date", Kind.DATE_TIME, required=True),
        *[Wanted(name, Kind.REAL) for name in asked],
    ]
    try:
        table = sheet.read(wanted)
    except CaptureError:
        # A second session, or damage: the way row by row knows which, and where.
        return None
    return None if table.notes else _from_table(table, asked, above, kinds, names)


def _from_table(
    table: Table,
    asked: list[str],
    above: list[list[str]],
    kinds: list[str],
    names: list[str],
) -> _Session | None:
    stamps = table["date"].values
    if (table["kind"].values != 80).any() or (stamps[1:] < stamps[:-1]).any():
        return None
    frame_ns = np.zeros(table.rows)
    for name in reversed(asked):
        values = np.nan_to_num(table[name].values)
        if (values < 0).any():
            return None
        with np.errstate(divide="ignore"):
            told = values * 1e6 if name == "Frametime" else 1e9 / values
        frame_ns = np.where(values > 0, np.rint(told), frame_ns)
    if (frame_ns >= LONGEST_FRAME_NS).any():
        return None
    has = frame_ns > 0
    gpu = next((c for k, c in zip(kinds, above, strict=False) if k in ("1", "01")), [])
    return _Session(
        gpu=", ".join(cell for cell in gpu[_FIRST_VALUE:] if cell),
        names=names,
        at_once=_Samples(
            stamps[has],
            frame_ns[has].astype(np.int64),
            table.lines[has].astype(np.int64),
        ),
        without=int((~has).sum()),
    )


def _sessions(source: Source) -> Iterator[_Session]:
    session = _Session()
    # Spreadsheets write it anew with semicolons, and commas in the numbers.
    mark = guess_delimiter(source.head[0])
    before = ""
    for number, line, lacks_end in source.numbered_lines():
        if not line.strip():
            continue
        widths = line.count(mark), before.count(mark)
        if lacks_end and looks_cut(line, before, *widths):
            session.cut = True
            continue
        before = line
        cells = [cell.strip() for cell in _split(source, line, mark, number)]
        if mark != ",":
            cells = [cell.replace(",", ".") for cell in cells]
        kind = cells[0]
        if kind == "0" or kind == "00":
            if session.stamps_ns or session.names:
                yield session
            session = _Session()
        elif kind in ("1", "01"):
            session.gpu = ", ".join(cell for cell in cells[_FIRST_VALUE:] if cell)
        elif kind in ("2", "02"):
            session.names = cells
        elif kind == "80":
            _take_row(source, session, cells, number)
        elif kind not in ("3", "03"):
            raise source.error(f"a row of the unknown kind {kind[:20]!r}", line=number)
    yield session


def _split(source: Source, line: str, mark: str, number: int) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=mark, skipinitialspace=True))
    except (csv.Error, StopIteration) as error:
        raise source.error(f"no row of cells: {error}", line=number) from error


def _take_row(source: Source, session: _Session, cells: list[str], line: int) -> None:
    if not session.names:
        raise source.error("values before the row of names (kind 2)", line=line)
    if len(cells) < _FIRST_VALUE + 1:
        raise source.error("a row of values without values", line=line)
    if any(cells[len(session.names) :]):
        raise source.error(
            f"{len(cells)} cells under a row of {len(session.names)} names; numbers "
            f"with a decimal comma need another separator",
            line=line,
        )
    stamp = parse_date_time(cells[1].encode())
    if stamp is None:
        raise source.error(f"{cells[1][:40]!r} is no date and time", line=line)
    if session.stamps_ns and stamp < session.stamps_ns[-1]:
        raise source.error("time goes back within a session", line=line)
    frame_ns = _frame_time_ns(source, session, cells, line)
    if frame_ns is None:
        session.without += 1
        return
    session.stamps_ns.append(stamp)
    session.frame_times_ns.append(frame_ns)
    session.lines.append(line)


def _frame_time_ns(
    source: Source, session: _Session, cells: list[str], line: int
) -> int | None:
    """The frame time of a row, from `Frametime` or else from `Framerate`."""
    for name in _TIMES:
        values = {
            value
            for column, text in zip(session.names, cells, strict=False)
            if column == name and (value := _number(source, text, name, line))
        }
        if len(values) > 1:
            raise source.error(
                "two columns have this name and different values",
                line=line,
                column=name,
            )
        if values:
            value = values.pop()
            frame_ns = round(value * 1e6 if name == "Frametime" else 1e9 / value)
            if frame_ns < LONGEST_FRAME_NS:
                return frame_ns
            hours = frame_ns / 3.6e12
            raise source.error(f"a frame of {hours:.1f} hours", line=line, column=name)
    if not {"Frametime", "Framerate"} & set(session.names):
        raise source.error(
            "neither `Frametime` nor `Framerate` is logged: switch them on in "
            "Afterburner's monitoring settings",
            line=line,
        )
    return None


def _number(source: Source, text: str, name: str, line: int) -> float | None:
    if text.lower() in MISSING:
        return None
    read = parse_unusual(text.encode())
    if read is None or read[0] < 0:
        raise source.error(f"{text[:40]!r} is no number", line=line, column=name)
    value = read[0] / 10 ** read[1]
    # 0 frames a second: no program was running.
    return value if value > 0 else None


def _series(
    source: Source, session: _Session, number: int, count: int, notes: list[str]
) -> CapturedSeries:
    name = "samples" if count == 1 else f"session {number}"
    if session.cut:
        notes.append(f"{name}: the last line has no end and may be cut: it is left out")
    if session.without:
        notes.append(f"{name}: {session.without} rows have no frame time: left out")
    if "Frametime" not in session.names:
        notes.append(f"{name}: frame times are told by `Framerate`")
    samples = session.samples()
    return CapturedSeries(
        t_ns=samples.stamps_ns,
        event=Event.PRESENT,
        clock=Clock.REALTIME,
        name=name,
        source=source.name,
        tool="afterburner",
        sampled=True,
        resolution_ns=10**9,
        frame_times_ns=samples.frame_times_ns,
        rows=samples.lines,
    )


READER = AfterburnerReader()
