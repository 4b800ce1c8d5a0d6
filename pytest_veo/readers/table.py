"""Text tables of any size: the columns a reader asks for, and nothing else.

A table goes through in blocks, so memory holds the wanted columns and one block. What
is tolerated is counted and told (`Table.notes`); all else is one error with line and
column.

Tolerated: blank lines, blanks around cells, quotes, CRLF, a byte-order mark, UTF-16,
cells that say "no value", short rows that still have every wanted column (OCAT writes
its hardware columns once), empty cells beyond the header, a last line cut in writing.
Refused: a wanted cell that is no number or is not there, more cells than the header
has names, a header that appears again, a wanted name that appears twice with different
values, a quote that never closes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pytest_veo.readers import arrow_table
from pytest_veo.readers import even_rows
from pytest_veo.readers.columns import Table
from pytest_veo.readers.columns import Wanted
from pytest_veo.readers.reading import Reading
from pytest_veo.readers.rows import split_rows
from pytest_veo.readers.source import Source


DELIMITERS = (",", ";", "\t")
_SAYS_NOTHING = ("sep=", '"sep=', "# ", "#\t")


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table whose header is known and whose rows are still to be read."""

    source: Source
    header: tuple[str, ...]
    header_line: int
    """From 0."""
    delimiter: str
    point: str

    def has(self, *names: str) -> bool:
        """Whether the header names all of these columns."""
        return all(name in self.header for name in names)

    def first_of(self, *names: str) -> str | None:
        """The header's spelling of the first of these names that it has.

        Case decides only where the header has two names that differ by it alone.
        """
        for name in names:
            if name in self.header:
                return name
            for given in self.header:
                if given.lower() == name.lower():
                    return given
        return None

    def read(self, wanted: Iterable[Wanted]) -> Table:
        """Read the columns named in `wanted` from every row.

        Raises:
            CaptureError: see the module's rules.
        """
        columns = tuple(wanted)
        for column in columns:
            if column.name not in self.header:
                raise self.source.error(
                    f"no column `{column.name}`", line=self.header_line + 1
                )
        read = None
        if even_rows.is_worth(self, columns):
            read = even_rows.read_columns(self, columns)
        if read is None and arrow_table.is_worth(self.source):
            read = arrow_table.read_columns(self, columns)
        if read is not None:
            found, lines = read
            return Table(self.source, tuple(found), len(lines), lines, ())
        return Reading(self, columns).run()


def split_line(line: str, delimiter: str) -> list[str]:
    """The cells of one line, without blanks and quotes around them."""
    rows = split_rows(line.encode("utf-8", "replace"), delimiter)
    if not len(rows.counts):
        return [""]
    return [rows.cell_text(0, index) for index in range(int(rows.counts[0]))]


def guess_delimiter(line: str) -> str:
    """The separator a header line uses: the commonest of comma, semicolon, tab."""
    return max(DELIMITERS, key=line.count)


def open_sheet(source: Source, header_line: int | None = None) -> Sheet:
    """Read a table's header and tell its separators.

    Args:
        source: a text file.
        header_line: the header's line, from 0. None: the first line that says
            anything; `sep=;`, which spreadsheets put first, does not, nor do
            comments (`# recorded on ...`).
    """
    if header_line is None:
        said = (
            number
            for number, line in enumerate(source.head)
            if line.strip() and not line.lower().startswith(_SAYS_NOTHING)
        )
        header_line = next(said, 0)
    line = source.head[header_line]
    delimiter = guess_delimiter(line)
    header = tuple(split_line(line, delimiter))
    sample = source.head[header_line + 1 : header_line + 20]
    point = "," if delimiter != "," and _has_decimal_comma(sample, delimiter) else "."
    return Sheet(source, header, header_line, delimiter, point)


def _has_decimal_comma(lines: Iterable[str], delimiter: str) -> bool:
    for line in lines:
        for cell in split_line(line, delimiter):
            before, comma, after = cell.partition(",")
            if comma and before.lstrip("-").isdigit() and after.isdigit():
                return True
    return False
