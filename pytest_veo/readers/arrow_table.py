"""Large clean tables through pyarrow, when it is installed.

Arrow reads two threads wide and refuses what it does not understand. It is asked
first for large files; on any refusal the table is read again by our own reader, which
tolerates more and names the line and column of what it does not.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_veo.readers import numbers
from pytest_veo.readers.columns import Column
from pytest_veo.readers.columns import Kind
from pytest_veo.readers.columns import Wanted
from pytest_veo.readers.dates import parse_date_times
from pytest_veo.readers.rows import trim
from pytest_veo.readers.source import Source


if TYPE_CHECKING:
    from pytest_veo.readers.table import Sheet


WORTH_BYTES = 4 << 20
"""From here on arrow's start-up pays, when it is loaded already."""
WORTH_IMPORT_BYTES = 32 << 20
"""From here on even importing it does."""

_WHOLE = (Kind.NANOSECONDS, Kind.INTEGER)
"""Kinds of cells that arrow reads as whole numbers, which are quicker."""
_BLANKS = "".join(map(chr, range(33)))
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


def _type(kind: Kind) -> Any:
    pyarrow = importlib.import_module("pyarrow")
    if kind is Kind.TEXT:
        return pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    if kind is Kind.DATE_TIME:
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
    values = chunks.fill_null(0).to_numpy() if missing.any() else chunks.to_numpy()
    if values.dtype.kind == "f":
        return _float_column(values, missing, wanted)
    # Two times must add up within 63 bits; a number that is none need not.
    limit = 1 << 61
    is_time = wanted.kind is Kind.NANOSECONDS
    if is_time and not -limit < int(values.min()) <= int(values.max()) < limit:
        return None
    return _make(wanted.name, np.asarray(values, np.int64), missing)


def _float_column(
    values: npt.NDArray[Any], missing: npt.NDArray[np.bool_], wanted: Wanted
) -> Column | None:
    if wanted.kind is Kind.REAL:
        values = values.copy()
        values[missing] = np.nan
        usable = bool(((np.abs(values) < 2.0**63) | missing).all())
        return _make(wanted.name, values, missing) if usable else None
    power = 0 if wanted.kind is Kind.INTEGER else wanted.kind.value
    assert isinstance(power, int)
    if wanted.kind is Kind.INTEGER and not bool((values == np.rint(values)).all()):
        return None
    # Beyond 2**53 ns a float no longer holds whole nanoseconds; NaN is no number.
    limit = 2.0**53 / 10**power
    if not -limit < float(values.min()) <= float(values.max()) < limit:
        return None
    scaled = values * 10.0**power
    return _make(wanted.name, np.rint(scaled, out=scaled).astype(np.int64), missing)


def _nulls(chunks: Any) -> npt.NDArray[np.bool_]:
    if chunks.null_count == 0:
        return np.zeros(len(chunks), np.bool_)
    return np.asarray(chunks.is_null().to_numpy(), np.bool_)


def _text_column(chunks: Any, name: str) -> Column | None:
    unified = chunks.unify_dictionaries()
    if not unified.num_chunks:
        return None
    words = unified.chunk(0).dictionary.to_pylist()
    # The careful reader strips blanks, and everything below, from a cell.
    if any(word != word.strip(_BLANKS) for word in words):
        return None
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in unified.chunks])
    missing = np.isin(
        codes, [i for i, word in enumerate(words) if word.lower() in numbers.MISSING]
    )
    return _make(name, codes.astype(np.int32, copy=False), missing, tuple(words))


def _date_column(chunks: Any, name: str) -> Column | None:
    parts = []
    for chunk in chunks.chunks:
        # Offsets of 32 bits and the bytes they point into: no cell becomes an object.
        _, offsets, cells = chunk.buffers()
        given = np.frombuffer(offsets, np.int32)[chunk.offset :][: len(chunk) + 1]
        pad = b"\n" * numbers.PAD
        raw = np.frombuffer(pad + cells.to_pybytes() + pad, np.uint8)
        at = given.astype(np.int64) + numbers.PAD
        read = parse_date_times(raw, *trim(raw, at[:-1], at[1:]))
        if read is None:
            return None
        parts.append(read)
    values = np.concatenate(parts)
    return _make(name, values, np.zeros(len(values), np.bool_))


def _make(
    name: str,
    values: npt.NDArray[Any],
    missing: npt.NDArray[np.bool_],
    words: tuple[str, ...] = (),
) -> Column:
    return Column(name, values, missing, words)
