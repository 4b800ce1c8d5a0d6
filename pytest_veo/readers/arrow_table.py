"""Large clean tables through pyarrow, when it is installed.

Arrow reads two threads wide and refuses what it does not understand. It is asked
first for large files; on any refusal the table is read again by our own reader, which
tolerates more and names the line and column of what it does not.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from collections.abc import Iterator
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_veo.readers import numbers
from pytest_veo.readers.columns import Column
from pytest_veo.readers.columns import Kind
from pytest_veo.readers.columns import Wanted
from pytest_veo.readers.dates import parse_date_times
from pytest_veo.readers.numbers import Positions
from pytest_veo.readers.reading import spelled_missing
from pytest_veo.readers.rows import trim
from pytest_veo.readers.source import Source
from pytest_veo.readers.words import Vocabulary


if TYPE_CHECKING:
    from pytest_veo.readers.table import Sheet


WORTH_BYTES = 4 << 20
"""From here on arrow's start-up pays, when it is loaded already."""
WORTH_IMPORT_BYTES = 32 << 20
"""From here on even importing it does."""

_WHOLE = (Kind.NANOSECONDS, Kind.INTEGER)
"""Kinds of cells that arrow reads as whole numbers, which are quicker."""
_PADDING = np.full(numbers.PAD, 0x0A, np.uint8)
_MISSING = tuple(
    dict.fromkeys(
        form
        for text in numbers.MISSING
        for form in (text, text.upper(), text.title(), "NaN", "-NaN")
    )
)


def is_worth(source: Source) -> bool:
    """Whether arrow is here and the file large enough for it."""
    if source.encoding != "utf-8" or source.size_bytes < WORTH_BYTES:
        return False
    if "pyarrow" in sys.modules:
        return True
    large = source.size_bytes >= WORTH_IMPORT_BYTES
    return large and importlib.util.find_spec("pyarrow") is not None


def read_columns(
    sheet: Sheet, wanted: tuple[Wanted, ...]
) -> tuple[list[Column], npt.NDArray[np.int32]] | None:
    """The wanted columns and the line of each row, or None: read it the careful way."""
    if not _ends_with_newline(sheet.source):
        return None
    try:
        table = _read(sheet, wanted)
        rows = table.num_rows
        columns = []
        for column in wanted:
            read = _column(table[column.name], column)
            table = table.drop_columns([column.name])
            # Arrow keeps what is free for itself: ten million rows are a gibibyte.
            _pyarrow().default_memory_pool().release_unused()
            if read is None:
                return None
            columns.append(read)
    except (ValueError, KeyError, OSError):
        # ArrowInvalid is a ValueError. The careful reader says what is wrong.
        return None
    first = sheet.header_line + 2
    lines = first + rows - 1
    if not rows or _has_blank_row(columns) or not _is_read_alike(sheet, wanted, lines):
        return None
    # There are no blank lines, so that rows are lines.
    return columns, np.arange(first, first + rows, dtype=np.int32)


def _has_blank_row(columns: list[Column]) -> bool:
    """Whether some row has no value at all: to arrow, a blank line is one."""
    if not all(bool(column.missing.any()) for column in columns):
        return False
    return bool(np.logical_and.reduce([column.missing for column in columns]).any())


def _is_read_alike(sheet: Sheet, wanted: tuple[Wanted, ...], lines: int) -> bool:
    """Whether arrow and the careful reader mean the same by every byte.

    To arrow a lone carriage return ends a line, a quote within a cell is text, and
    `0x10` is a whole number.
    """
    whole = any(kind in _WHOLE for kind in _kinds(wanted))
    refused = (b'"', b"x", b"X") if whole else (b'"',)
    returns = header = 0
    with sheet.source.path.open("rb") as file:
        for _ in range(sheet.header_line + 1):
            header += len(file.readline())
        file.seek(header)
        while block := file.read(1 << 20):
            # One byte is looked for at the speed of memory.
            if any(byte in block for byte in refused):
                return False
            if b"\r" in block:
                returns += block.count(b"\r")
    return returns in (0, lines - sheet.header_line - 1)


def _ends_with_newline(source: Source) -> bool:
    with source.path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"


def _read(sheet: Sheet, wanted: tuple[Wanted, ...]) -> Any:
    csv = importlib.import_module("pyarrow.csv")
    names = list(sheet.header)
    for column in wanted:
        if names.count(column.name) != 1:
            raise KeyError(column.name)
    used = {column.name for column in wanted}
    # Names that are not wanted may repeat; arrow needs them different.
    unique = [n if n in used else f"{i}\n" for i, n in enumerate(names)]
    return csv.read_csv(
        str(sheet.source.path),
        read_options=csv.ReadOptions(
            column_names=unique, skip_rows=sheet.header_line + 1, block_size=4 << 20
        ),
        parse_options=csv.ParseOptions(
            delimiter=sheet.delimiter, ignore_empty_lines=False
        ),
        convert_options=csv.ConvertOptions(
            include_columns=[column.name for column in wanted],
            column_types={
                column.name: _type(kind)
                for column, kind in zip(wanted, _kinds(wanted), strict=True)
            },
            null_values=list(_MISSING),
            decimal_point=sheet.point,
        ),
    )


def _kinds(wanted: tuple[Wanted, ...]) -> list[Kind]:
    """How arrow is to read each column.

    Beside texts, such as addresses, a whole number is read as a float: where `x` is
    common it could not be told whether one was hexadecimal.
    """
    beside_text = any(column.kind is Kind.TEXT for column in wanted)
    return [
        Kind.REAL if beside_text and column.kind is Kind.INTEGER else column.kind
        for column in wanted
    ]


def _pyarrow() -> Any:
    return importlib.import_module("pyarrow")


def _type(kind: Kind) -> Any:
    pyarrow = _pyarrow()
    if kind in (Kind.TEXT, Kind.DATE_TIME):
        return pyarrow.binary()
    # Not decimal128: a huge exponent crashes arrow 26.
    return pyarrow.int64() if kind in _WHOLE else pyarrow.float64()


def _column(chunks: Any, wanted: Wanted) -> Column | None:
    if wanted.kind is Kind.TEXT:
        return _text_column(chunks, wanted.name)
    if wanted.kind is Kind.DATE_TIME:
        return _date_column(chunks, wanted.name)
    missing = _nulls(chunks)
    if wanted.required and missing.any():
        return None
    is_real = wanted.kind is Kind.REAL
    values = np.empty(len(chunks), np.float64 if is_real else np.int64)
    start = 0
    # Piece by piece: what is between lies in the cache.
    for chunk in chunks.chunks:
        end = start + len(chunk)
        empty = missing[start:end] if chunk.null_count else None
        told = (chunk if empty is None else chunk.fill_null(0)).to_numpy()
        if not _convert(told, values[start:end], wanted.kind):
            return None
        if is_real and empty is not None:
            values[start:end][empty] = np.nan
        start = end
    return _make(wanted.name, values, missing)


def _convert(told: npt.NDArray[Any], values: npt.NDArray[Any], kind: Kind) -> bool:
    """Write arrow's numbers as this kind has them; False: one does not fit."""
    least, most = told.min(initial=0), told.max(initial=0)
    if kind is Kind.REAL or told.dtype.kind == "i":
        # Two times must add up within 63 bits; a number that is none need not.
        limit = {Kind.REAL: 2.0**63, Kind.NANOSECONDS: 1 << 61}.get(kind, 1 << 64)
        values[:] = told
        return bool(-limit < least and most < limit)
    if kind is Kind.INTEGER:
        # Infinite and NaN are no whole numbers, and must not be made some.
        if not abs(least) + abs(most) < 2.0**53:
            return False
        values[:] = told
        return bool((values == told).all())
    assert isinstance(kind.value, int)
    # Beyond 2**53 ns a float no longer holds whole nanoseconds; NaN is no number.
    limit = 2.0**53 / 10**kind.value
    if not (-limit < least and most < limit):
        return False
    scaled = told * 10.0**kind.value
    values[:] = np.rint(scaled, out=scaled)
    return True


def _nulls(chunks: Any) -> npt.NDArray[np.bool_]:
    if chunks.null_count == 0:
        return np.zeros(len(chunks), np.bool_)
    return np.asarray(chunks.is_null().to_numpy(), np.bool_)


def _text_column(chunks: Any, name: str) -> Column | None:
    vocabulary = Vocabulary()
    codes = np.empty(len(chunks), np.int32)
    first = 0
    try:
        for text, at in _cells_of(chunks):
            # One program, its one swapchain: every cell is the one before.
            told = at[:2] if _are_one(text, at) else at
            last = first + len(at) - 1
            codes[first:last] = vocabulary.encode(*_padded(text, told))
            first = last
    except OverflowError:
        return None
    return _make(name, codes, spelled_missing(vocabulary, codes), vocabulary.values)


def _are_one(text: npt.NDArray[np.uint8], at: npt.NDArray[np.int32]) -> bool:
    """Whether all cells, which follow each other, have the bytes of the first."""
    start, second, end = int(at[0]), int(at[1]), int(at[-1])
    length = second - start
    if not length or not bool((np.diff(at) == length).all()):
        return False
    return bool((text[second:end] == text[start : end - length]).all())


def _date_column(chunks: Any, name: str) -> Column | None:
    parts = []
    for text, at in _cells_of(chunks):
        read = parse_date_times(*_padded(text, at))
        if read is None:
            return None
        parts.append(read)
    values = np.concatenate(parts)
    return _make(name, values, np.zeros(len(values), np.bool_))


def _cells_of(
    chunks: Any,
) -> Iterator[tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]]:
    """The text of each chunk of a binary column, and where each cell begins in it.

    The last place is the end. No cell becomes an object.
    """
    for chunk in chunks.chunks:
        _, offsets, cells = chunk.buffers()
        at = np.frombuffer(offsets, np.int32)[chunk.offset :][: len(chunk) + 1]
        yield np.frombuffer(cells or b"", np.uint8), at


def _padded(
    text: npt.NDArray[np.uint8], at: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.uint8], Positions, Positions]:
    """Cells as `numbers` and `words` take them: padded, without blanks around them."""
    first = int(at[0])
    raw = np.concatenate((_PADDING, text[first : int(at[-1])], _PADDING))
    places = at.astype(np.int64) + (numbers.PAD - first)
    return raw, *trim(raw, places[:-1], places[1:])


def _make(
    name: str,
    values: npt.NDArray[Any],
    missing: npt.NDArray[np.bool_],
    words: Iterable[str] = (),
) -> Column:
    return Column(name, values, missing, tuple(words))
