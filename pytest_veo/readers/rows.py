"""Where the cells of a block of lines begin and end.

Cells are found for all rows at once. Quotes follow RFC 4180, except that a quoted
cell ends with its line: no tool writes line ends into a cell, and a quote that never
closes would otherwise swallow the rest of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pytest_veo.readers.numbers import PAD
from pytest_veo.readers.numbers import Mask
from pytest_veo.readers.numbers import Positions
from pytest_veo.readers.numbers import words_of


_NEWLINE = 0x0A
_QUOTE = 0x22
_BLANK = 0x20
BLANKS = bytes(range(_BLANK + 1))
_EIGHTBLANKS = np.uint64(0x2020202020202020)

_MOST_PASSES = 32
"""Over all cells, one blank each; what is left is stripped cell by cell."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one block of lines; blank lines are left out."""

    raw: npt.NDArray[np.uint8]
    """The block, padded on both sides."""
    ends: Positions
    """Where every cell of the block ends."""
    first: Positions
    """For each row the index in `ends` of its first cell."""
    counts: npt.NDArray[np.int64]
    """For each row the number of its cells."""
    begins: Positions
    """Where each row begins."""
    lines: npt.NDArray[np.int64]
    """For each row its line within the block, from 0."""
    line_count: int
    grid: npt.NDArray[np.int64] | None
    """`ends` as rows by cells, where every row has the same number of cells."""
    has_quotes: bool
    open_quote: int | None
    """The line within the block of a quote that is not closed."""

    def cell(self, index: int) -> tuple[Positions, Positions]:
        """Where cell `index` of each row begins and ends, without blanks or quotes.

        Both are equal where the row is too short to have it.
        """
        start, end = trim(self.raw, *self._place(index))
        if self.has_quotes:
            quoted = (self.raw[start] == _QUOTE) & (end - start >= 2)
            quoted &= self.raw[end - 1] == _QUOTE
            start, end = trim(self.raw, start + quoted, end - quoted)
        return start, end

    def _place(self, index: int) -> tuple[Positions, Positions]:
        if self.grid is not None and index < self.grid.shape[1]:
            end = np.ascontiguousarray(self.grid[:, index])
            return self.begins if index == 0 else self.grid[:, index - 1] + 1, end
        has = self.counts > index
        place = np.minimum(self.first + index, len(self.ends) - 1)
        end = self.ends[place]
        start = self.begins if index == 0 else self.ends[np.maximum(place - 1, 0)] + 1
        return np.where(has, start, PAD), np.where(has, end, PAD)

    def text(self, row: int) -> str:
        """A row as it stands in the file."""
        text = self.raw[self.begins[row] : self._end(row)].tobytes()
        return text.decode("utf-8", "replace")

    def beyond(self, row: int, index: int) -> bytes:
        """What stands in a row from cell `index` on, separators and all."""
        start = self.ends[self.first[row] + index - 1]
        return self.raw[start : self._end(row)].tobytes()

    def _end(self, row: int) -> int:
        return int(self.ends[self.first[row] + self.counts[row] - 1])

    def cell_text(self, row: int, index: int) -> str:
        """A cell as it stands in the file, without blanks around it."""
        start, end = self.cell(index)
        return self.raw[start[row] : end[row]].tobytes().decode("utf-8", "replace")


def trim(
    raw: npt.NDArray[np.uint8], start: Positions, end: Positions
) -> tuple[Positions, Positions]:
    """Cells without the blanks around their text."""
    # Blanks, tabs and carriage returns are the characters up to 32 within a line.
    words = words_of(raw)
    for _ in range(_MOST_PASSES):
        blank = (raw[start] <= _BLANK) & (start < end)
        if not blank.any():
            break
        start = start + blank
    else:
        start = start + _blanks(raw, start, end, bytes.lstrip)
    for _ in range(_MOST_PASSES):
        blank = (raw[end - 1] <= _BLANK) & (start < end)
        if not blank.any():
            break
        # Tools that pad their cells pad them by many blanks.
        padded = blank & (words[end - 8] == _EIGHTBLANKS) & (end - start >= 8)
        end = end - np.where(padded, 8, blank)
    else:
        end = end - _blanks(raw, start, end, bytes.rstrip)
    return start, end


def _blanks(
    raw: npt.NDArray[np.uint8],
    start: Positions,
    end: Positions,
    strip: Callable[[bytes, bytes], bytes],
) -> Positions:
    """How many blanks `strip` takes from each cell."""
    cells = (raw[s:e].tobytes() for s, e in zip(start, end, strict=True))
    return np.array([len(cell) - len(strip(cell, BLANKS)) for cell in cells])


def split_rows(block: bytes, delimiter: str) -> Rows:
    """Find the rows and cells of a block of whole lines.

    Args:
        block: UTF-8 text, each line ended by a newline, the last perhaps not.
        delimiter: one ASCII character.
    """
    if not block.endswith(b"\n"):
        block += b"\n"
    pad = b"\n" * PAD
    raw = np.frombuffer(pad + block + pad, np.uint8)
    body = raw[PAD : PAD + len(block)]
    mark = ord(delimiter)
    newline = body == _NEWLINE
    separator = newline | (body == mark)
    open_quote = None
    has_quotes = b'"' in block
    if has_quotes:
        inside, open_quote = _inside_quotes(body, newline)
        separator &= ~inside | newline
    ends = np.flatnonzero(separator) + PAD
    line_count = int(np.count_nonzero(newline))
    grid = _grid(raw, ends, line_count)
    if grid is not None:
        width = grid.shape[1]
        last = np.arange(width - 1, len(ends), width)
    else:
        last = np.flatnonzero(raw[ends] == _NEWLINE)
    first = np.concatenate(([0], last[:-1] + 1))
    begins = np.concatenate(([PAD], ends[last[:-1]] + 1))
    counts = last - first + 1
    lines = np.arange(len(last))
    wide = grid is not None and grid.shape[1] > 1
    alone = last[:0] if wide else np.flatnonzero(counts == 1)
    if len(alone):
        start, end = trim(raw, begins[alone], ends[last[alone]])
        keep = np.ones(len(last), np.bool_)
        keep[alone[start == end]] = False
        first, begins, counts = first[keep], begins[keep], counts[keep]
        lines = lines[keep]
        grid = None
    return Rows(
        raw=raw,
        ends=ends,
        first=first,
        counts=counts,
        begins=begins,
        lines=lines,
        line_count=line_count,
        grid=grid,
        has_quotes=has_quotes,
        open_quote=open_quote,
    )


def _grid(
    raw: npt.NDArray[np.uint8], ends: Positions, line_count: int
) -> npt.NDArray[np.int64] | None:
    """The ends of cells as rows by cells, when all rows have as many as the first."""
    width, rest = divmod(len(ends), line_count)
    if rest or not bool((raw[ends[width - 1 :: width]] == _NEWLINE).all()):
        return None
    # As many line ends as there are rows, each at the end of one: none is elsewhere.
    return ends.reshape(line_count, width)


def _inside_quotes(
    body: npt.NDArray[np.uint8], newline: Mask
) -> tuple[Mask, int | None]:
    """Which bytes lie inside quotes, and the first line whose quotes are odd."""
    seen = np.cumsum(body == _QUOTE, dtype=np.int64)
    at_end = seen[newline]
    before = np.concatenate(([0], at_end[:-1]))
    odd = np.flatnonzero((at_end - before) & 1)
    return (seen & 1).astype(np.bool_), int(odd[0]) if len(odd) else None
