"""Narrow tables of numbers whose rows are equally long: stamps, mostly.

Counters and stamps have as many digits as those before them for thousands of rows.
Such a run of rows is a rectangle of bytes: where a cell stands in one row it stands in
all, nothing needs to be searched for, and a column is read by a few array operations.
Whatever is not so plain is left to the other ways of reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_veo.readers import numbers
from pytest_veo.readers.columns import Column
from pytest_veo.readers.columns import Kind
from pytest_veo.readers.columns import Wanted
from pytest_veo.readers.reading import Growing
from pytest_veo.readers.reading import convert


if TYPE_CHECKING:
    from pytest_veo.readers.table import Sheet


WORTH_BYTES = 256 << 10
_MOST_COLUMNS = 8
_MOST_DIGITS = 18
_BLOCK_BYTES = 256 << 10
"""What a core's own cache holds."""
_SPARED = 64
"""Runs before their length counts: a counter begins with few digits."""
_FEWEST_ROWS = 64
"""Shorter runs, on average, are not worth it."""
_Raw = npt.NDArray[np.uint8]
_Cell = tuple[int, int, int]
"""Where a cell begins and ends, and where its decimal mark is (the end: nowhere)."""


def is_worth(sheet: Sheet, wanted: tuple[Wanted, ...]) -> bool:
    """Whether the table is narrow, and what is wanted of it are numbers."""
    names = {column.name for column in wanted}
    return (
        sheet.source.encoding == "utf-8"
        and sheet.source.size_bytes >= WORTH_BYTES
        and len(set(sheet.header)) == len(sheet.header) <= _MOST_COLUMNS
        and len(wanted) == len(names)
        and names <= set(sheet.header)
        and not any(c.kind in (Kind.TEXT, Kind.DATE_TIME) for c in wanted)
    )


def read_columns(
    sheet: Sheet, wanted: tuple[Wanted, ...]
) -> tuple[list[Column], npt.NDArray[np.int32]] | None:
    """The wanted columns and the line of each row, or None: read it another way."""
    columns = {column.name: column for column in wanted}
    kinds = [columns[n].kind if n in columns else None for n in sheet.header]
    grown = [Growing() for _ in kinds]
    runs = rows = 0
    for block in _blocks(sheet):
        if not block.endswith(b"\n"):
            return None
        start = numbers.PAD
        raw = np.frombuffer(b"0" * start + block, np.uint8)
        while start < len(raw):
            found = _rectangle(raw, start, sheet)
            if found is None:
                return None
            grid, cells = found
            expected = sheet.source.size_bytes // grid.shape[1] + 16
            for (begin, end, mark), kind, values in zip(
                cells, kinds, grown, strict=True
            ):
                read = _column(raw, start, grid.shape, (begin, end, mark), kind)
                if read is None:
                    return None
                if kind is not None:
                    values.add(read, expected)
            start += grid.size
            rows += grid.shape[0]
            runs += 1
            if runs > _SPARED and rows < runs * _FEWEST_ROWS:
                return None
    if not rows:
        return None
    none = np.zeros(rows, np.bool_)
    by_name = dict(zip(sheet.header, grown, strict=True))
    read_all = [Column(c.name, by_name[c.name].done(), none) for c in wanted]
    first = sheet.header_line + 2
    return read_all, np.arange(first, first + rows, dtype=np.int32)


def _blocks(sheet: Sheet) -> Iterator[bytes]:
    """Whole lines below the header, a cache full at a time."""
    with sheet.source.path.open("rb") as file:
        for _ in range(sheet.header_line + 1):
            file.readline()
        while block := file.read(_BLOCK_BYTES):
            yield block if block.endswith(b"\n") else block + file.readline()


def _rectangle(raw: _Raw, start: int, sheet: Sheet) -> tuple[_Raw, list[_Cell]] | None:
    """The rows from `start` on that are as long as the first, and where cells stand.

    Returns:
        Bytes of shape (rows, length of a row), and the places of the cells.
    """
    ahead = raw[start : start + 1024].tobytes()
    width = ahead.find(b"\n") + 1
    if not width:
        return None
    count = (len(raw) - start) // width
    grid = raw[start : start + count * width].reshape(count, width)
    same = grid[:, width - 1] == 0x0A
    cells = _cells(ahead[:width], sheet)
    if cells is None:
        return None
    mark, point = ord(sheet.delimiter), ord(sheet.point)
    for begin, end, decimal in cells:
        if begin:
            same &= grid[:, begin - 1] == mark
        if decimal < end:
            same &= grid[:, decimal] == point
    last = cells[-1][1]
    if last < width - 1:
        same &= grid[:, last] == 0x0D
    rows = count if same.all() else int(np.argmin(same))
    return (grid[:rows], cells) if rows else None


def _cells(line: bytes, sheet: Sheet) -> list[_Cell] | None:
    texts = line.removesuffix(b"\n").removesuffix(b"\r").split(sheet.delimiter.encode())
    if len(texts) != len(sheet.header):
        return None
    cells = []
    begin = 0
    for text in texts:
        mark = text.find(sheet.point.encode())
        end = begin + len(text)
        cells.append((begin, end, end if mark < 0 else begin + mark))
        begin = end + 1
    return cells


def _column(
    raw: _Raw, start: int, shape: tuple[int, ...], cell: _Cell, kind: Kind | None
) -> npt.NDArray[Any] | None:
    """One column of a rectangle; None where a cell is no plain number.

    Without a kind, the column is not wanted: its cells are only seen to be numbers,
    so that no separator or quote hides in them.
    """
    begin, end, mark = cell
    decimals = max(end - mark - 1, 0)
    if not 0 < (mark - begin) + decimals <= _MOST_DIGITS:
        return None
    digits: npt.NDArray[Any] | None = None
    for first, last, power in ((end - decimals, end, 0), (begin, mark, decimals)):
        while last > first:
            length = min(8, last - first)
            words = np.ndarray(
                (shape[0],),
                np.dtype("<u8"),
                buffer=raw.data,
                offset=start + last - 8,
                strides=(shape[1],),
            )
            value, doubts = numbers.digits_of(words, length)
            if not numbers.are_digits(doubts):
                return None
            last -= length
            if kind is None:
                continue
            value = numbers.join_digits(value, length)
            if power:
                value *= np.uint64(10**power)
            digits = value if digits is None else np.add(digits, value, out=digits)
            power += length
    if kind is None:
        return np.zeros(0, np.int64)
    assert digits is not None
    return _converted(digits.view(np.int64), (mark - begin) + decimals, decimals, kind)


def _converted(
    digits: npt.NDArray[np.int64], count: int, decimals: int, kind: Kind
) -> npt.NDArray[Any] | None:
    """`count` digits, of which `decimals` stand behind the mark, as a column."""
    exponent = 0 if kind is Kind.INTEGER else kind.value
    if isinstance(exponent, int) and 0 <= exponent - decimals <= _MOST_DIGITS - count:
        # Eighteen digits are within 2**61 ns.
        if exponent > decimals:
            digits *= 10 ** (exponent - decimals)
        return digits
    none = np.zeros(len(digits), np.bool_)
    places = np.full(len(digits), decimals, np.int64)
    values, bad = convert(numbers.Decimals(digits, places, none, none), kind)
    return None if bad.any() else values
