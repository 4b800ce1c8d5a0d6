"""The rows of many runs from their own lines."""

from __future__ import annotations

from typing import Any

from pytest_veo.archive.parquet import arrow_of
from pytest_veo.archive.parquet import is_there
from pytest_veo.archive.place import Place
from pytest_veo.archive.plain_lines import tables_of
from pytest_veo.archive.rows import Tables
from pytest_veo.archive.rows import add_run
from pytest_veo.archive.rows import no_rows
from pytest_veo.archive.store import Contents
from pytest_veo.archive.store import read_contents
from pytest_veo.archive.table import COLUMNS
from pytest_veo.archive.table import Table
from pytest_veo.errors import ArchiveError


class Lines:
    """Reads runs line by line, or all lines at once where Arrow is there to do it.

    Attributes:
        tables: the rows that were read line by line.
        unread: what could not be read, as `<run_id>/records.jsonl:12: why`.
        rows: how many there are.
    """

    def __init__(self) -> None:
        self.tables: Tables = no_rows()
        self.unread: list[str] = []
        self.rows = 0
        self._has_arrow = is_there()
        self._arrow: dict[Table, list[Any]] = {table: [] for table in COLUMNS}

    def read(self, place: Place, run_id: str) -> bool:
        """Read a run's lines; whether all of them could be had, sense or nonsense."""
        try:
            contents = read_contents(place, run_id)
        except ArchiveError as error:
            self.unread.append(f"{run_id}: {error}")
            return False
        found: dict[Table, Any] = {}
        if self._has_arrow and not contents.unread:
            everything = b"".join(content for _, content in contents.files)
            found = tables_of(run_id, contents.header, everything)
        for table, rows in found.items():
            self._arrow[table].append(rows)
            self.rows += len(rows)
        if not found:
            self._read_singly(run_id, contents)
        return contents.is_whole

    def _read_singly(self, run_id: str, contents: Contents) -> None:
        raw = contents.parsed()
        before = sum(map(len, self.tables.values()))
        add_run(self.tables, run_id, raw)
        self.rows += sum(map(len, self.tables.values())) - before
        self.unread += [f"{run_id}/{line}" for line in raw.unread]

    def arrow(self, table: Table) -> Any:
        """A table's rows as an Arrow table."""
        import pyarrow as pa

        slow = arrow_of(table, self.tables[table])
        return pa.concat_tables([*self._arrow[table], slow])
