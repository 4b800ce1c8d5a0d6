"""One pass over the rows of a table: the wanted columns, block by block."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from dataclasses import field
from typing import TYPE_CHECKING
from typing import Any
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from pytest_veo.errors import CaptureError
from pytest_veo.readers import numbers
from pytest_veo.readers.columns import Column
from pytest_veo.readers.columns import Kind
from pytest_veo.readers.columns import Table
from pytest_veo.readers.columns import Wanted
from pytest_veo.readers.dates import parse_date_time
from pytest_veo.readers.dates import parse_date_times
from pytest_veo.readers.rows import BLANKS
from pytest_veo.readers.rows import Rows
from pytest_veo.readers.rows import split_rows
from pytest_veo.readers.words import Vocabulary


if TYPE_CHECKING:
    from pytest_veo.readers.table import Sheet


_WORTH_THREADS = 4 << 20
_THREADS = 3
_Split = tuple[Rows | None, bytes, int]
"""A block's rows (None where it has none), its text, and lines skipped before it."""


@dataclass(slots=True)
class Growing:
    """An array that takes blocks one after another, sized ahead from the first."""

    size: int = 0
    array: npt.NDArray[Any] | None = None

    def add(self, block: npt.NDArray[Any], expected: int) -> None:
        """Append `block`; `expected` entries are made room for at first."""
        needed = self.size + len(block)
        if self.array is None:
            self.array = np.empty(max(expected, needed), block.dtype)
        elif needed > len(self.array):
            room = max(needed, len(self.array) * 5 // 4)
            grown = np.empty(room, block.dtype)
            grown[: self.size] = self.array[: self.size]
            self.array = grown
        self.array[self.size : needed] = block
        self.size = needed

    def done(self) -> npt.NDArray[Any]:
        """What was added. Room that was never touched costs no memory."""
        return np.zeros(0, np.int64) if self.array is None else self.array[: self.size]


@dataclass(slots=True)
class Pieces:
    """A wanted column while its blocks are read."""

    wanted: Wanted
    places: tuple[int, ...]
    """Where the header has it; more than one when the name appears twice."""
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    values: Growing = field(default_factory=Growing)
    missing: list[tuple[int, npt.NDArray[np.bool_]]] = field(default_factory=list)
    """Blocks in which a value is missing, with the row where each begins."""

    def add(
        self, values: npt.NDArray[Any], missing: npt.NDArray[np.bool_], expected: int
    ) -> None:
        """Append one block's cells."""
        if missing.any():
            self.missing.append((self.values.size, missing))
        self.values.add(values, expected)

    def join(self) -> Column:
        """The whole column."""
        values = self.values.done()
        missing = np.zeros(len(values), np.bool_)
        for begin, block in self.missing:
            missing[begin : begin + len(block)] = block
        self.missing.clear()
        words = tuple(self.vocabulary.values)
        name = self.wanted.name
        return Column(name, values, missing, words)


class Reading:
    """One pass over the rows of a sheet."""

    def __init__(self, sheet: Sheet, wanted: tuple[Wanted, ...]) -> None:
        self.sheet = sheet
        self.source = sheet.source
        self.pieces = [self._pieces(column) for column in wanted]
        self.last_place = max((p for w in self.pieces for p in w.places), default=0)
        self.lines = Growing()
        self.expected = 0
        self.short_rows = 0
        self.first_short: int | None = None
        self.notes: list[str] = []
        self.width = 0
        self.previous_tail = ""

    def _pieces(self, column: Wanted) -> Pieces:
        header = self.sheet.header
        places = tuple(i for i, name in enumerate(header) if name == column.name)
        return Pieces(column, places)

    def run(self) -> Table:
        """Read every row; raises `CaptureError` by the rules of `table`."""
        if self.source.size_bytes < _WORTH_THREADS:
            self._run(self._split(), map)
        else:
            # numpy lets go of the interpreter's lock: one thread splits the next block
            # while others read the columns of this one.
            with ThreadPoolExecutor(_THREADS, "veo-reader") as pool:
                self._run(_ahead(self._split(), pool), pool.map)
        self._tell_short_rows()
        return self._table()

    def _run(self, splits: Iterator[_Split], spread: Callable[..., Any]) -> None:
        line = 0
        for rows, block, before in splits:
            line += before
            if rows is not None:
                self._take(rows, block, line, spread)
                line += rows.line_count

    def _split(self) -> Iterator[_Split]:
        """The blocks below the header, found cells and all."""
        skip = self.sheet.header_line + 1
        for block in self.source.blocks():
            start = before = 0
            while skip and (end := block.find(b"\n", start)) >= 0:
                start, skip, before = end + 1, skip - 1, before + 1
            body = block[start:] if start else block
            if skip or not body.strip():
                yield None, b"", before + body.count(b"\n")
            else:
                yield split_rows(body, self.sheet.delimiter), body, before

    def _table(self) -> Table:
        columns = tuple(pieces.join() for pieces in self.pieces)
        lines = self.lines.done()
        if not len(lines):
            line = self.sheet.header_line + 1
            raise self.source.error("a header and no rows", line=line)
        return Table(self.source, columns, len(lines), lines, tuple(self.notes))

    def _take(
        self, rows: Rows, block: bytes, line: int, spread: Callable[..., Any]
    ) -> None:
        """Read the rows of one block, `line` lines below the top of the file."""
        if rows.open_quote is not None:
            where = line + rows.open_quote + 1
            raise self.source.error("a quote is opened and not closed", line=where)
        lines = (rows.lines + line + 1).astype(np.int32)
        self._check_long(rows, lines)
        if not self.expected:
            share = self.source.size_bytes / max(len(block), 1)
            self.expected = int(len(lines) * share * 1.02) + 16
        keep = len(lines) - self._cut_rows(rows, lines, block)
        self._check_short(rows, lines, keep)

        def read(pieces: Pieces) -> None:
            self._read_column(pieces, rows, lines, keep)

        # Columns do not know each other; the first one's error is the one that counts.
        for _ in spread(read, self.pieces):
            pass
        self.lines.add(lines[:keep], self.expected)

    def _check_long(self, rows: Rows, lines: npt.NDArray[np.int32]) -> None:
        width = len(self.sheet.header)
        nothing = b'"' + BLANKS + self.sheet.delimiter.encode()
        for row in np.flatnonzero(rows.counts > width).tolist():
            if rows.beyond(row, width).strip(nothing):
                raise self.source.error(
                    f"{rows.counts[row]} cells under a header of {width} names; a "
                    f"comma inside a cell needs quotes, and numbers with a decimal "
                    f"comma need another separator",
                    line=int(lines[row]),
                )

    def _cut_rows(self, rows: Rows, lines: npt.NDArray[np.int32], block: bytes) -> int:
        """How many rows at the end were cut in writing: 0 or 1."""
        if not len(lines):
            return 0
        usual = int(rows.counts[-2]) if len(lines) > 1 else self.width
        self.width = int(rows.counts[-1])
        before = rows.text(len(lines) - 2) if len(lines) > 1 else self.previous_tail
        last = rows.text(len(lines) - 1)
        self.previous_tail = last
        if block.endswith(b"\n") or not looks_cut(last, before, self.width, usual):
            return 0
        self.notes.append(
            f"line {lines[-1]}: the last line has no end and may be cut in the middle "
            f"of a number; it is left out"
        )
        return 1

    def _check_short(self, rows: Rows, lines: npt.NDArray[np.int32], keep: int) -> None:
        counts = rows.counts[:keep]
        short = np.flatnonzero(counts < len(self.sheet.header))
        if not len(short):
            return
        if self.first_short is None:
            self.first_short = int(lines[short[0]])
        self.short_rows += len(short)
        lacking = np.flatnonzero(counts <= self.last_place)
        if len(lacking):
            row = int(lacking[0])
            if self._is_preamble(rows.text(row)):
                raise self._twice(int(lines[row]))
            missing = next(
                pieces.wanted.name
                for pieces in self.pieces
                if max(pieces.places) >= counts[row]
            )
            raise self.source.error(
                f"the row ends after {counts[row]} of {len(self.sheet.header)} cells",
                line=int(lines[row]),
                column=missing,
            )

    def _tell_short_rows(self) -> None:
        if self.short_rows:
            self.notes.append(
                f"{self.short_rows} rows are shorter than the header, from line "
                f"{self.first_short} on; the columns that are read are all there"
            )

    def _read_column(
        self,
        pieces: Pieces,
        rows: Rows,
        lines: npt.NDArray[np.int32],
        keep: int,
    ) -> None:
        first, *twins = [
            self._read_cells(pieces, rows, lines, keep, place)
            for place in pieces.places
        ]
        for twin in twins:
            same = (first[0] == twin[0]) | (first[1] & twin[1])
            if not same.all():
                row = int(np.argmin(same))
                raise self.source.error(
                    "two columns have this name and different values",
                    line=int(lines[row]),
                    column=pieces.wanted.name,
                )
        pieces.add(*first, self.expected)

    def _read_cells(
        self,
        pieces: Pieces,
        rows: Rows,
        lines: npt.NDArray[np.int32],
        keep: int,
        place: int,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        start, end = rows.cell(place)
        start, end = start[:keep], end[:keep]
        wanted = pieces.wanted
        if wanted.kind is Kind.TEXT:
            return self._read_text(pieces, rows, start, end)
        if wanted.kind is Kind.DATE_TIME:
            return self._read_dates(wanted, rows, lines, start, end, place)
        point = ord(self.sheet.point)
        read = numbers.parse_decimals(rows.raw, start, end, point)
        values, bad = convert(read, wanted.kind)
        bad |= read.bad
        if wanted.required:
            bad |= read.missing
        if bad.any():
            self._refuse(wanted, rows, lines, int(np.argmax(bad)), place)
        return values, read.missing

    def _read_text(
        self, pieces: Pieces, rows: Rows, start: Any, end: Any
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        try:
            codes = pieces.vocabulary.encode(rows.raw, start, end)
        except OverflowError as error:
            raise self.source.error(str(error), column=pieces.wanted.name) from error
        return codes, spelled_missing(pieces.vocabulary, codes)

    def _read_dates(
        self,
        wanted: Wanted,
        rows: Rows,
        lines: npt.NDArray[np.int32],
        start: Any,
        end: Any,
        place: int,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        none = np.zeros(len(start), np.bool_)
        alike = parse_date_times(rows.raw, start, end)
        if alike is not None:
            return alike, none
        values = np.zeros(len(start), np.int64)
        for row, (begin, stop) in enumerate(zip(start, end, strict=True)):
            read = parse_date_time(rows.raw[begin:stop].tobytes())
            if read is None:
                self._refuse(wanted, rows, lines, row, place)
            values[row] = read
        return values, none

    def _is_preamble(self, text: str) -> bool:
        """Whether a row is what stands above the values, or the header itself."""
        above = self.source.head[: self.sheet.header_line + 1]
        return text.strip() in {line.strip() for line in above}

    def _twice(self, line: int) -> CaptureError:
        return self.source.error(
            "the header appears again: two captures in one file; split it here",
            line=line,
        )

    def _refuse(
        self,
        wanted: Wanted,
        rows: Rows,
        lines: npt.NDArray[np.int32],
        row: int,
        place: int,
    ) -> NoReturn:
        text = rows.cell_text(row, place)
        line = int(lines[row])
        if text == wanted.name or self._is_preamble(rows.text(row)):
            raise self._twice(line)
        noun = "date and time" if wanted.kind is Kind.DATE_TIME else "number"
        reason = f"{text[:40]!r} is no {noun}"
        if wanted.required and text.lower() in numbers.MISSING:
            reason = f"{text!r}: a value is missing that every row must have"
        raise self.source.error(reason, line=line, column=wanted.name)


def _ahead(splits: Iterator[_Split], pool: ThreadPoolExecutor) -> Iterator[_Split]:
    """The same blocks, the next one being split while one is read."""
    coming = pool.submit(next, splits, None)
    while (split := coming.result()) is not None:
        coming = pool.submit(next, splits, None)
        yield split


def spelled_missing(
    vocabulary: Vocabulary, codes: npt.NDArray[Any]
) -> npt.NDArray[np.bool_]:
    """Which cells of a text column say "no value"."""
    wanted = [
        code
        for code, text in enumerate(vocabulary.values)
        if text.lower() in numbers.MISSING
    ]
    return np.isin(codes, wanted) if wanted else np.zeros(len(codes), np.bool_)


def looks_cut(last: str, before: str, width: int, usual: int) -> bool:
    """Whether a last line without line end may be cut, beside the line before it."""
    if width < usual:
        return True
    if not before:
        return False
    tail, earlier = last[-24:], before[-24:].rstrip("\r")
    # As many characters after the last mark that is no digit: nothing was cut off.
    return _digits_at_end(tail) < _digits_at_end(earlier)


def _digits_at_end(text: str) -> int:
    return len(text) - len(text.rstrip("0123456789"))


def convert(
    read: numbers.Decimals, kind: Kind
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Numbers as a column of this kind, and which of them do not fit."""
    if kind is Kind.REAL:
        return numbers.to_floats(read), np.zeros(len(read.digits), np.bool_)
    exponent = 0 if kind is Kind.INTEGER else int(kind.value)
    values, overflow = numbers.scale(read, exponent)
    if kind is not Kind.INTEGER:
        # Two times must add up within 63 bits; 2**61 ns after 1970 is the year 2043.
        overflow |= np.abs(values) >= 1 << 61
    if kind is Kind.INTEGER and bool(read.decimals.any()):
        power = 10 ** np.clip(read.decimals, 0, 18)
        overflow |= values * power != read.digits
    return values, overflow
