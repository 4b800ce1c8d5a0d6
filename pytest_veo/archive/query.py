"""Questions to an archive in SQL: DuckDB over its tables, or Dask over many of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING
from typing import Any
from typing import Literal
from typing import Self

from pytest_veo.archive.manifest import Manifest
from pytest_veo.archive.manifest import read_manifest
from pytest_veo.archive.parquet import is_there
from pytest_veo.archive.partition import Partition
from pytest_veo.archive.partition import Source
from pytest_veo.archive.partition import ask
from pytest_veo.archive.partition import ask_source
from pytest_veo.archive.partition import gather
from pytest_veo.archive.partition import open_duckdb
from pytest_veo.archive.place import Place
from pytest_veo.archive.store import list_runs
from pytest_veo.archive.table import Table
from pytest_veo.archive.table import frame_of
from pytest_veo.errors import ArchiveError
from pytest_veo.errors import MissingDependency


if TYPE_CHECKING:
    import pandas as pd


EngineName = Literal["duckdb", "dask"]
ENGINES: tuple[EngineName, ...] = ("duckdb", "dask")
_RUNS_READ_SINGLY = 64
"""So many wanted runs are read from their own folders, whatever is gathered."""
_RUNS_A_PARTITION = 100
"""Single runs that one task of Dask reads."""


class Engine:
    """Asks an archive. A context manager: Dask's cluster ends with it.

    Args:
        url: a folder, or any URL that fsspec knows.
        engine: `duckdb` or `dask`.
        scheduler: address of a Dask scheduler, whose workers must reach the archive
            and have `pytest-veo[archive]`; none: a cluster on this machine.
        runs: ids of the only runs that are asked; all of them if not given.

    Attributes:
        unread: what could not be read, as `<run_id>/records.jsonl:12: why`.

    Raises:
        ArchiveError: no archive at this place, no such run or engine.
        MissingDependency: Dask is asked for and not installed.
    """

    def __init__(
        self,
        url: str | Path,
        engine: EngineName = "duckdb",
        scheduler: str | None = None,
        runs: Iterable[str] | None = None,
    ) -> None:
        if engine not in ENGINES:
            raise ArchiveError(f"there is no engine {engine!r}, only duckdb and dask")
        if scheduler is not None and engine != "dask":
            raise ArchiveError("a scheduler's address is for the engine 'dask' only")
        self._place = Place(url)
        self.url = self._place.url
        self.unread: list[str] = []
        self._whole = self._partition(None if runs is None else tuple(runs))
        self._source: Source | None = None
        self._cluster = _Dask(scheduler) if engine == "dask" else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the cluster, if one was started."""
        if self._cluster is not None:
            self._cluster.close()

    def _partition(self, wanted: tuple[str, ...] | None) -> Partition:
        url = str(self._place.folder or self._place.url)
        known = list_runs(self._place)
        manifest = self._manifest()
        if wanted is None:
            loose = [run for run in known if run not in manifest.runs]
            return Partition(url, manifest.months, tuple(loose))
        for run_id in wanted:
            if run_id not in known:
                raise ArchiveError(f"there is no run {run_id!r} in {self._place.url!r}")
        if len(wanted) <= _RUNS_READ_SINGLY:
            return Partition(url, (), wanted)
        months = [m for m in manifest.months if not set(wanted).isdisjoint(m.runs)]
        loose = [run for run in wanted if run not in manifest.runs]
        return Partition(url, tuple(months), tuple(loose), only=wanted)

    def _manifest(self) -> Manifest:
        try:
            return read_manifest(self._place)
        except ArchiveError as error:
            self.unread.append(f"{error}; all runs were read one by one")
            return Manifest()

    def _own_source(self) -> Source:
        if self._source is None:
            self._source = Source(self._whole)
        return self._source

    def table(self, table: Table, where: str | None = None) -> pd.DataFrame:
        """All rows of a table, or those that meet a condition in SQL.

        Raises:
            ArchiveError: the condition means nothing.
            MissingDependency: DuckDB is not installed and there is a condition.
        """
        if where is not None:
            found = self.frame(f"SELECT * FROM {table} WHERE {where}")
        elif is_there():
            source = self._own_source()
            found = pandas_of(_all_of(source, table))
            self._note(source.unread)
        else:
            source = self._own_source()
            found = frame_of(table, source.lines()[table])
            self._note(source.unread)
        found.attrs["unread"] = list(self.unread)
        return found

    def sql(
        self, text: str, *params: Any, reduce: str | None = None
    ) -> list[tuple[Any, ...]]:
        """The rows that a query gives.

        Args:
            text: SQL over the views `runs`, `records`, `counters` and `frames`. With
                Dask it is run on each month by itself, and on single runs.
            params: values for its `?`.
            reduce: SQL over the view `mapped`, all that `text` gave together: what
                sorts, counts or sums across months.

        Raises:
            ArchiveError: the query cannot be run, and why.
            MissingDependency: DuckDB or pyarrow is not installed.
        """
        found = self.arrow(text, *params, reduce=reduce)
        columns = [column.to_pylist() for column in found.columns]
        return list(zip(*columns, strict=True))

    def frame(self, text: str, *params: Any, reduce: str | None = None) -> pd.DataFrame:
        """As `sql`, a DataFrame."""
        return pandas_of(self.arrow(text, *params, reduce=reduce))

    def arrow(self, text: str, *params: Any, reduce: str | None = None) -> Any:
        """As `sql`, an Arrow table."""
        open_duckdb().close()  # asks for it by name where it is missing
        if self._cluster is not None:
            asked = self._cluster.ask(_split(self._whole), text, params)
            for _, unread in asked:
                self._note(unread)
            return gather([table for table, _ in asked], reduce or "FROM mapped")
        found, unread = ask_source(self._own_source(), text, params)
        self._note(unread)
        return found if reduce is None else gather([found], reduce)

    def _note(self, unread: Iterable[str]) -> None:
        self.unread += [line for line in unread if line not in self.unread]


class _Dask:
    """A cluster: the one at an address, or one on this machine."""

    def __init__(self, scheduler: str | None) -> None:
        try:
            import distributed
        except ImportError:
            raise MissingDependency(
                "distributed", "dask", "the engine 'dask'"
            ) from None
        self._cluster: Any = None
        address: Any = scheduler
        try:
            if scheduler is None:
                # Threads: what reads and asks tables lets go of Python's lock, and
                # processes would run a script without `if __name__ == ...` again.
                address = self._cluster = distributed.LocalCluster(
                    n_workers=1, processes=False, dashboard_address="127.0.0.1:0"
                )
            self._client = distributed.Client(address, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise ArchiveError(
                f"cannot reach the Dask scheduler {scheduler}: {error}"
            ) from error

    def ask(
        self, partitions: list[Partition], text: str, params: tuple[Any, ...]
    ) -> list[tuple[Any, list[str]]]:
        futures = self._client.map(
            ask, partitions, text=text, params=params, pure=False
        )
        found: list[tuple[Any, list[str]]] = self._client.gather(futures)
        return found

    def close(self) -> None:
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def _split(whole: Partition) -> list[Partition]:
    """One for each month, and some for single runs; at least one."""
    parts = [whole._replace(months=(month,), runs=()) for month in whole.months]
    for start in range(0, len(whole.runs), _RUNS_A_PARTITION):
        runs = whole.runs[start : start + _RUNS_A_PARTITION]
        parts.append(whole._replace(months=(), runs=runs))
    return parts or [whole]


def _all_of(source: Source, table: Table) -> Any:
    try:
        return source.arrow(table)
    except ArchiveError:
        if not source.drop_broken_months():
            raise
        return source.arrow(table)


def pandas_of(table: Any) -> pd.DataFrame:
    """An Arrow table as a DataFrame, text and times as this pandas has them."""
    found: pd.DataFrame = table.to_pandas()
    return found
