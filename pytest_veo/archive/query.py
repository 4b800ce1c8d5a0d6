"""Questions to an archive in SQL: DuckDB over its tables, or Dask over many of them."""

from __future__ import annotations

from collections.abc import Callable
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
from pytest_veo.archive.rows import frame_of
from pytest_veo.archive.store import list_runs
from pytest_veo.archive.table import Table
from pytest_veo.archive.track import Track
from pytest_veo.archive.track import no_track
from pytest_veo.archive.writer import RECORDS
from pytest_veo.errors import ArchiveError
from pytest_veo.errors import MissingDependency


if TYPE_CHECKING:
    import pandas as pd


EngineName = Literal["duckdb", "dask"]
ENGINES: tuple[EngineName, ...] = ("duckdb", "dask")
_RUNS_READ_SINGLY = 64
"""So many wanted runs are read from their own folders, whatever is gathered..."""
_BYTES_READ_SINGLY = 1 << 20
"""...but for a folder's whose lines are longer: a table takes no longer than these."""
_LOOKS = 3
"""Times that tables which move are looked at."""
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
        track: shows how far it has come.

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
        track: Track = no_track,
    ) -> None:
        if engine not in ENGINES:
            raise ArchiveError(f"there is no engine {engine!r}, only duckdb and dask")
        if scheduler is not None and engine != "dask":
            raise ArchiveError("a scheduler's address is for the engine 'dask' only")
        self._place = Place(url)
        self.url = self._place.url
        self.unread: list[str] = []
        self._track = track
        self._wanted = None if runs is None else tuple(runs)
        self._manifest = self._read_manifest()
        self._whole = self._partition()
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

    def _partition(self) -> Partition:
        url = str(self._place.folder or self._place.url)
        known = list_runs(self._place)
        wanted, manifest = self._wanted, self._manifest
        gathered = manifest.runs
        if wanted is None:
            loose = [run for run in known if run not in gathered]
            return Partition(url, manifest.months, tuple(loose))
        there = frozenset(known)
        for run_id in wanted:
            if run_id not in there:
                raise ArchiveError(f"there is no run {run_id!r} in {self._place.url!r}")
        if len(wanted) <= _RUNS_READ_SINGLY and self._are_small(wanted):
            return Partition(url, (), wanted)
        months = [m for m in manifest.months if not set(wanted).isdisjoint(m.runs)]
        loose = [run for run in wanted if run not in gathered]
        return Partition(url, tuple(months), tuple(loose), only=wanted)

    def _are_small(self, wanted: Iterable[str]) -> bool:
        # A run in a bucket has its own tables.
        folder = self._place.folder
        if folder is None:
            return True
        lines = (folder / "runs" / run_id / RECORDS for run_id in wanted)
        sizes = (path.stat().st_size for path in lines if path.is_file())
        return sum(sizes) <= _BYTES_READ_SINGLY

    def _read_manifest(self) -> Manifest:
        try:
            return read_manifest(self._place)
        except ArchiveError as error:
            self._note([f"{error}; all runs were read one by one"])
            return Manifest()

    def _steadily(self, look: Callable[[], tuple[Any, list[str]]]) -> Any:
        """Look again where what was to be read was gathered anew meanwhile."""
        for _ in range(_LOOKS):
            found, unread = look()
            if not unread or not self._has_moved():
                break
        self._note(unread)
        return found

    def _has_moved(self) -> bool:
        manifest = self._read_manifest()
        if manifest == self._manifest:
            return False
        self._manifest = manifest
        self._whole = self._partition()
        self._source = None
        return True

    def _own_source(self) -> Source:
        if self._source is None:
            self._source = Source(self._whole, self._track)
        return self._source

    def table(self, table: Table, where: str | None = None) -> pd.DataFrame:
        """All rows of a table, or those that meet a condition in SQL.

        Raises:
            ArchiveError: the condition means nothing.
            MissingDependency: DuckDB is not installed and there is a condition.
        """
        found: pd.DataFrame
        if where is not None:
            found = self.frame(f"SELECT * FROM {table} WHERE {where}")
        else:
            found = self._steadily(lambda: self._load(table))
        found.attrs["unread"] = list(self.unread)
        return found

    def _load(self, table: Table) -> tuple[pd.DataFrame, list[str]]:
        source = self._own_source()
        if is_there():
            return pandas_of(_all_of(source, table)), source.unread
        return frame_of(table, source.lines().tables[table]), source.unread

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
        found = self._steadily(lambda: self._ask(text, params))
        return found if reduce is None else gather([found], reduce)

    def _ask(self, text: str, params: tuple[Any, ...]) -> tuple[Any, list[str]]:
        if self._cluster is None:
            return ask_source(self._own_source(), text, params)
        asked = self._cluster.ask(_split(self._whole), text, params, self._track)
        unread = [line for _, lines in asked for line in lines]
        return gather([table for table, _ in asked], "FROM mapped"), unread

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
        self,
        partitions: list[Partition],
        text: str,
        params: tuple[Any, ...],
        track: Track,
    ) -> list[tuple[Any, list[str]]]:
        futures = self._client.map(
            ask, partitions, text=text, params=params, pure=False
        )
        return [future.result() for future in track(futures, "asking")]

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
