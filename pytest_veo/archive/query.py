"""Questions to an archive in SQL: DuckDB over its tables."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import Literal

from pytest_veo.archive.place import Place
from pytest_veo.archive.store import list_runs
from pytest_veo.archive.store import read_raw
from pytest_veo.archive.table import COLUMNS
from pytest_veo.archive.table import Rows
from pytest_veo.archive.table import Table
from pytest_veo.archive.table import frame_of
from pytest_veo.archive.table import rows_of
from pytest_veo.errors import ArchiveError
from pytest_veo.errors import MissingDependency


if TYPE_CHECKING:
    import pandas as pd


class Engine:
    """Asks an archive.

    Args:
        url: a folder, or any URL that fsspec knows.
        engine: `duckdb` or `dask`.
        scheduler: address of a Dask scheduler; none: a cluster of this machine.
        runs: ids of the only runs that are asked; all of them if not given.

    Raises:
        ArchiveError: no archive at this place, or no such run.
    """

    def __init__(
        self,
        url: str | Path,
        engine: Literal["duckdb", "dask"] = "duckdb",
        scheduler: str | None = None,
        runs: Iterable[str] | None = None,
    ) -> None:
        self.place = Place(url)
        self.unread: list[str] = []
        """What could not be read, as `<run_id>/records.jsonl:12: why`."""
        known = list_runs(self.place)
        wanted = known if runs is None else list(runs)
        for run_id in wanted:
            if run_id not in known:
                raise ArchiveError(f"there is no run {run_id!r} in {self.place.url!r}")
        self._rows: Rows = {table: [] for table in COLUMNS}
        for run_id in wanted:
            self._read(run_id)

    def _read(self, run_id: str) -> None:
        try:
            raw = read_raw(self.place, run_id)
        except ArchiveError as error:
            self.unread.append(f"{run_id}: {error}")
            return
        for table, rows in rows_of(run_id, raw).items():
            self._rows[table] += rows
        self.unread += [f"{run_id}/{line}" for line in raw.unread]

    def table(self, table: Table, where: str | None = None) -> pd.DataFrame:
        """All rows of a table, or those that meet a condition."""
        if where is not None:
            found = self.frame(f"SELECT * FROM {table} WHERE {where}")
        else:
            found = frame_of(table, self._rows[table])
        found.attrs["unread"] = list(self.unread)
        return found

    def sql(self, text: str, *params: Any) -> list[tuple[Any, ...]]:
        """The rows that a query gives.

        Args:
            text: SQL over the views `runs`, `records`, `counters` and `frames`.
            params: values for its `?`.

        Raises:
            ArchiveError: the query cannot be run, and why.
        """
        return list(self._ask(text, params).fetchall())

    def frame(self, text: str, *params: Any) -> pd.DataFrame:
        """The same as a DataFrame."""
        found: pd.DataFrame = self._ask(text, params).df()
        return found

    def _ask(self, text: str, params: tuple[Any, ...]) -> Any:
        try:
            import duckdb
        except ImportError:
            raise MissingDependency(
                "duckdb", "archive", "SQL over an archive"
            ) from None
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        for table in COLUMNS:
            connection.register(table, frame_of(table, self._rows[table]))
        try:
            return connection.execute(text, params)
        except duckdb.Error as error:
            raise ArchiveError(f"the query cannot be run: {error}") from error
