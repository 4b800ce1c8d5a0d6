"""A part of an archive whose tables can be asked on any machine that reaches it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from typing import NamedTuple

from pytest_veo.archive.lines import Lines
from pytest_veo.archive.manifest import Month
from pytest_veo.archive.parquet import check_parquet
from pytest_veo.archive.parquet import is_there
from pytest_veo.archive.parquet import read_parquet
from pytest_veo.archive.parquet import run_table
from pytest_veo.archive.place import Place
from pytest_veo.archive.table import COLUMNS
from pytest_veo.archive.table import Table
from pytest_veo.archive.track import Track
from pytest_veo.archive.track import no_track
from pytest_veo.errors import ArchiveError
from pytest_veo.errors import MissingDependency


MAPPED = "mapped"
"""The view of what the partitions gave, for the query that brings it together."""


class Partition(NamedTuple):
    """Gathered months and single runs."""

    url: str
    months: tuple[Month, ...] = ()
    runs: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    """Of the months, only these runs; all of them if None."""


class Source:
    """Reads a partition's tables; what cannot be read is named, the rest is there."""

    def __init__(self, partition: Partition, track: Track = no_track) -> None:
        self._partition = partition
        self._track = track
        self.place = Place(partition.url)
        self.unread: list[str] = []
        self._has_arrow = is_there()
        self._months: list[Month] = []
        self._runs = list(partition.runs)
        self._lines: Lines | None = None
        """Of the runs that have no tables of their own."""
        self._without_tables: dict[str, None] | None = None
        for month in partition.months:
            self._add_month(month)

    def _add_month(self, month: Month) -> None:
        try:
            if not self._has_arrow:
                raise MissingDependency("pyarrow", "archive", "a gathered table")
            for _, name in month.files:
                check_parquet(self.place, name)
        except (ArchiveError, MissingDependency) as error:
            if self._has_arrow:
                self.unread.append(f"{error}; its runs were read one by one")
            self._runs += self._wanted(month)
        else:
            self._months.append(month)
            wanted = set(self._wanted(month))
            self.unread += [
                line for line in month.unread if line.partition("/")[0] in wanted
            ]

    def _wanted(self, month: Month) -> list[str]:
        only = self._partition.only
        return [run for run in month.runs if only is None or run in only]

    def drop_broken_months(self) -> bool:
        """Read every gathered file whole; whether one of them cannot be."""
        months, self._months = self._months, []
        for month in self._track(months, "looking for what is broken"):
            try:
                for table, name in month.files:
                    read_parquet(self.place, name, table)
            except ArchiveError as error:
                self.unread.append(f"{error}; its runs were read one by one")
                self._runs += self._wanted(month)
                self._lines = self._without_tables = None
            else:
                self._months.append(month)
        return len(self._months) < len(months)

    def files(self, table: Table) -> list[str]:
        """The gathered files with this table's rows."""
        return [month.file(table) for month in self._months]

    def lines(self) -> Lines:
        """The runs that have no tables of their own."""
        if self._lines is None:
            self._lines = self._read(list(self._plain_runs()))
        return self._lines

    def _read(self, runs: Sequence[str]) -> Lines:
        found = Lines()
        for run_id in self._track(runs, "reading runs"):
            found.read(self.place, run_id)
        self.unread += found.unread
        return found

    def loose(self, table: Table) -> Any:
        """As an Arrow table: the rows that lie in no gathered file."""
        import pyarrow as pa

        plain = self._plain_runs()
        found = []
        for run_id in self._runs:
            if run_id in plain:
                continue
            try:
                name = run_table(run_id, table)
                found.append(read_parquet(self.place, name, table))
            except ArchiveError as error:
                self.unread.append(f"{error}; its lines were read")
                found.append(self._read([run_id]).arrow(table))
        found.append(self.lines().arrow(table))
        return pa.concat_tables(found)

    def _plain_runs(self) -> dict[str, None]:
        if self._without_tables is None:
            runs = self._track(self._runs, "looking for tables")
            self._without_tables = {run: None for run in runs if not self._has(run)}
        return self._without_tables

    def _has(self, run_id: str) -> bool:
        try:
            # The last one that is written.
            return self._has_arrow and self.place.exists(run_table(run_id, "frames"))
        except ArchiveError:
            return False  # reading its lines will tell why

    def arrow(self, table: Table) -> Any:
        """All rows of a table."""
        import pyarrow as pa

        only = self._partition.only
        gathered = [
            read_parquet(self.place, name, table, only)
            for name in self._track(self.files(table), "reading tables")
        ]
        return pa.concat_tables([*gathered, self.loose(table)])

    @contextlib.contextmanager
    def connect(self, text: str) -> Iterator[Any]:
        """A DuckDB connection with a view of every table that a query may mean.

        Raises:
            MissingDependency: DuckDB or pyarrow is not installed.
        """
        # Runs need not be read for a table that is not asked.
        loose = {table: self.loose(table) for table in COLUMNS if table in text}
        connection = open_duckdb()
        try:
            if not self.place.is_local:
                connection.register_filesystem(self.place.filesystem)
            for table, rows in loose.items():
                connection.register(f"loose_{table}", rows)
                columns = ", ".join(map(_name, COLUMNS[table]))
                connection.execute(self._view(table, columns))
            yield connection
        finally:
            connection.close()

    def _view(self, table: Table, columns: str) -> str:
        parts = [f"SELECT {columns} FROM loose_{table}"]
        names = self.files(table)
        if names:
            files = ", ".join(quoted(self._address(name)) for name in names)
            parts.append(
                f"SELECT {columns} FROM read_parquet([{files}], union_by_name = true, "
                f"hive_partitioning = false){self._condition()}"
            )
        return f"CREATE VIEW {table} AS {' UNION ALL '.join(parts)}"

    def _condition(self) -> str:
        only = self._partition.only
        if only is None:
            return ""
        return f" WHERE run_id IN ({', '.join(map(quoted, only)) or 'NULL'})"

    def _address(self, name: str) -> str:
        if self.place.is_local:
            return str(Path(self.place.full(name)).absolute())
        return str(self.place.filesystem.unstrip_protocol(self.place.full(name)))


def ask(
    partition: Partition, text: str, params: Sequence[Any]
) -> tuple[Any, list[str]]:
    """A query's rows as an Arrow table, and what could not be read for them.

    Raises:
        ArchiveError: the query cannot be run, and why.
    """
    return ask_source(Source(partition), text, params)


def ask_source(
    source: Source, text: str, params: Sequence[Any]
) -> tuple[Any, list[str]]:
    """As `ask`, over tables that are open.

    Raises:
        ArchiveError: the query cannot be run, and why.
    """
    import duckdb

    try:
        return _run(source, text, params), source.unread
    except duckdb.Error as error:
        # Files that end as they should may still be broken in their middle.
        if not source.drop_broken_months():
            raise ArchiveError(f"the query cannot be run: {error}") from error
    try:
        return _run(source, text, params), source.unread
    except duckdb.Error as error:
        raise ArchiveError(f"the query cannot be run: {error}") from error


def _run(source: Source, text: str, params: Sequence[Any]) -> Any:
    with source.connect(text) as connection:
        return _rows(connection, text, params)


def gather(tables: Sequence[Any], text: str) -> Any:
    """Bring what partitions gave together: `text` is SQL over the view `mapped`.

    Raises:
        ArchiveError: the query cannot be run, and why.
    """
    import duckdb
    import pyarrow as pa

    connection = open_duckdb()
    try:
        connection.register(MAPPED, pa.concat_tables(tables, promote_options="default"))
        return _rows(connection, text, ())
    except duckdb.Error as error:
        raise ArchiveError(f"the query cannot be run: {error}") from error
    finally:
        connection.close()


def _rows(connection: Any, text: str, params: Sequence[Any]) -> Any:
    relation = connection.sql(text, params=list(params))
    if relation is None:
        raise ArchiveError("the query cannot be run: it gives no rows")
    return _plain_sums(relation.to_arrow_table())


def _plain_sums(found: Any) -> Any:
    """Sums of integers as integers: DuckDB gives them as wide decimals."""
    import pyarrow as pa

    for index, field in enumerate(found.schema):
        if pa.types.is_decimal(field.type) and field.type.scale == 0:
            # One that does not fit stays as it is.
            with contextlib.suppress(pa.ArrowInvalid):
                column = found.column(index).cast(pa.int64())
                found = found.set_column(index, field.name, column)
    return found


def open_duckdb() -> Any:
    """A DuckDB in memory that tells times in UTC.

    Raises:
        MissingDependency: DuckDB or pyarrow is not installed.
    """
    try:
        import duckdb
        import pyarrow  # noqa: F401
    except ImportError as error:
        missing = "pyarrow" if "pyarrow" in str(error) else "duckdb"
        raise MissingDependency(missing, "archive", "SQL over an archive") from None
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    # A name in a query means a table, never a variable of ours.
    connection.execute("SET python_enable_replacements = false")
    return connection


def quoted(text: str) -> str:
    """Text as a literal in SQL."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def _name(column: str) -> str:
    return f'"{column}"'
