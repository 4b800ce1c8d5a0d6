"""Gathers runs into tables: `tables/<table>/month=YYYY-MM/part-*.parquet`.

One file for each table and month, sorted so that a question about one test reads a
small part of it. The folders' names are what Hive, Spark, Athena and Trino take for
partitions. DuckDB sorts, with a disk's help where memory is short.
"""

from __future__ import annotations

import contextlib
import datetime
import secrets
import tempfile
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from typing import NamedTuple

from pytest_veo.archive.lines import Lines
from pytest_veo.archive.lock import locked
from pytest_veo.archive.manifest import Manifest
from pytest_veo.archive.manifest import Month
from pytest_veo.archive.manifest import read_manifest
from pytest_veo.archive.manifest import write_manifest
from pytest_veo.archive.parquet import ROW_GROUP_ROWS
from pytest_veo.archive.parquet import is_there
from pytest_veo.archive.parquet import parquet_bytes
from pytest_veo.archive.parquet import time_of
from pytest_veo.archive.place import Place
from pytest_veo.archive.store import list_runs
from pytest_veo.archive.store import read_header
from pytest_veo.archive.table import COLUMNS
from pytest_veo.archive.table import Table
from pytest_veo.archive.track import Track
from pytest_veo.archive.track import no_track
from pytest_veo.errors import ArchiveError
from pytest_veo.errors import MissingDependency


ORDER: dict[Table, str] = {
    "runs": "started_at, run_id",
    "records": "nodeid, started_at, run_id",
    "counters": "nodeid, counter, device, started_at, run_id",
    "frames": "nodeid, series, statistic, started_at, run_id",
}
_ROWS_AT_ONCE = 200_000
"""Rows that wait in memory before they are written."""
_MEMORY = "1GB"
_DEAD_AFTER = datetime.timedelta(days=1)
"""A run that has not finished by then was killed."""


class Compacted(NamedTuple):
    """What was gathered."""

    runs: int
    months: tuple[str, ...]
    """Those that were written anew."""
    waiting: tuple[str, ...]
    """Runs that are not finished, and may still go on."""
    unread: tuple[str, ...]
    """What could not be read, as `<run_id>/records.jsonl:12: why`."""


def compact(
    url: str | Path,
    *,
    now: datetime.datetime,
    takes_all: bool = False,
    track: Track = no_track,
) -> Compacted:
    """Gather every run that lies in no table yet.

    Args:
        url: a folder, or any URL that fsspec knows.
        now: tells runs that were killed from runs that go on.
        takes_all: take what is not finished, too.
        track: shows how far it has come.

    Raises:
        ArchiveError: no archive, one that cannot be written, or another is at it.
        MissingDependency: pyarrow or DuckDB is not installed.
    """
    place = Place(url)
    require_tables()
    list_runs(place)  # before the lock makes a folder where no archive is
    with locked(place, "veo compact"):
        return _compact(place, now, takes_all, track)


def require_tables() -> None:
    """Refuse to go on without what writes tables.

    Raises:
        MissingDependency: pyarrow or DuckDB is not installed.
    """
    if not is_there():
        raise MissingDependency("pyarrow", "archive", "gathering runs into tables")
    try:
        import duckdb  # noqa: F401
    except ImportError:
        raise MissingDependency(
            "duckdb", "archive", "gathering runs into tables"
        ) from None


def _compact(
    place: Place, now: datetime.datetime, takes_all: bool, track: Track
) -> Compacted:
    unread: list[str] = []
    manifest = _readable_manifest(place, unread)
    fresh: dict[str, list[str]] = {}
    waiting: list[str] = []
    gathered = manifest.runs
    loose = [run for run in list_runs(place) if run not in gathered]
    for run_id in track(loose, "looking"):
        try:
            header = read_header(place, run_id)
        except ArchiveError as error:
            unread.append(f"{run_id}: {error}")
            continue
        started = time_of(header.started_at)
        is_over = started is None or now - started > _DEAD_AFTER
        if header.finished_at or is_over or takes_all:
            fresh.setdefault(month_of(header.started_at), []).append(run_id)
        else:
            waiting.append(run_id)
    gathered_runs, months = 0, []
    for month, runs in sorted(fresh.items()):
        old = next((each for each in manifest.months if each.month == month), None)
        new, count = _gather(place, month, old, runs, unread, track)
        gathered_runs += count
        if count:
            manifest = _swap(place, manifest, old, new)
            months.append(month)
    return Compacted(
        runs=gathered_runs,
        months=tuple(months),
        waiting=tuple(waiting),
        unread=tuple(unread),
    )


def month_of(started_at: str) -> str:
    """`2026-11`; `unknown` where the text is no time."""
    started = time_of(started_at)
    if started is None:
        return "unknown"
    return f"{started.astimezone(datetime.UTC):%Y-%m}"


def without(place: Place, gone: frozenset[str]) -> None:
    """Take runs out of the tables; the caller holds the lock.

    Raises:
        ArchiveError: a table cannot be read or written; the tables are as before.
    """
    manifest = read_manifest(place)
    for month in manifest.months:
        if gone.isdisjoint(month.runs):
            continue
        left = tuple(run for run in month.runs if run not in gone)
        new = Month(month.month, (), ())
        if left:
            with _connection() as (connection, folder):
                for table in COLUMNS:
                    _take_month(connection, place, month, table, folder)
                connection.register("gone", _names(gone))
                new = _written(
                    connection,
                    place,
                    month.month,
                    left,
                    "WHERE run_id NOT IN (SELECT run_id FROM gone)",
                )
            told = [line for line in month.unread if _run_of(line) not in gone]
            new = new._replace(unread=tuple(told))
        manifest = _swap(place, manifest, month, new)


def _readable_manifest(place: Place, unread: list[str]) -> Manifest:
    """What is gathered and can be read; months that cannot are gathered anew."""
    from pytest_veo.archive.parquet import check_parquet

    try:
        manifest = read_manifest(place)
    except ArchiveError as error:
        unread.append(str(error))
        return Manifest()
    good = []
    for month in manifest.months:
        try:
            for _, name in month.files:
                check_parquet(place, name)
            good.append(month)
        except ArchiveError as error:
            unread.append(f"{error}; its runs are gathered anew")
    return Manifest(tuple(good))


def _gather(
    place: Place,
    month: str,
    old: Month | None,
    runs: Sequence[str],
    unread: list[str],
    track: Track,
) -> tuple[Month, int]:
    """The month with more runs in it, and how many."""
    with _connection() as (connection, folder):
        taken: list[str] = []
        lost: list[str] = []
        for lines in _batches(place, track(runs, f"gathering {month}"), taken, lost):
            for table in COLUMNS:
                name = folder / f"{table}-{secrets.token_hex(4)}.parquet"
                name.write_bytes(parquet_bytes(lines.arrow(table)))
        unread += lost
        before = old or Month(month, (), ())
        if not taken:
            return before, 0
        for table in COLUMNS:
            if old is not None:
                _take_month(connection, place, old, table, folder)
            _see(connection, table, folder)
        # A run that is not taken is told by whoever reads it next.
        told = [line for line in lost if _run_of(line) in set(taken)]
        everything = (*before.runs, *taken)
        new = _written(connection, place, month, everything, "")
        return new._replace(unread=(*before.unread, *told)), len(taken)


def _run_of(unread: str) -> str:
    return unread.partition("/")[0]


def _batches(
    place: Place, runs: Iterable[str], taken: list[str], unread: list[str]
) -> Iterator[Lines]:
    """Runs that can be had; one whose files cannot be read waits for better times."""
    batch = Lines()
    for run_id in runs:
        if batch.read(place, run_id):
            taken.append(run_id)
        if batch.rows >= _ROWS_AT_ONCE:
            unread += batch.unread
            yield batch
            batch = Lines()
    unread += batch.unread
    yield batch


@contextlib.contextmanager
def _connection() -> Iterator[tuple[Any, Path]]:
    import duckdb

    with tempfile.TemporaryDirectory(prefix="veo-compact-") as folder:
        connection = duckdb.connect()
        try:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(f"SET memory_limit = '{_MEMORY}'")
            connection.execute(f"SET temp_directory = '{folder}/spilled'")
            yield connection, Path(folder)
        except duckdb.Error as error:
            raise ArchiveError(f"cannot gather tables: {error}") from error
        finally:
            connection.close()


def _take_month(
    connection: Any, place: Place, month: Month, table: Table, folder: Path
) -> None:
    """Put a month's rows among those that are to be written."""
    place.fetch(month.file(table), folder / f"{table}-old.parquet")
    _see(connection, table, folder)


def _see(connection: Any, table: Table, folder: Path) -> None:
    names = _quoted(str(folder / f"{table}-*.parquet"))
    columns = ", ".join(f'"{column}"' for column in COLUMNS[table])
    connection.execute(
        f"CREATE OR REPLACE VIEW {table} AS SELECT {columns} "
        f"FROM read_parquet({names}, union_by_name = true)"
    )


def _written(
    connection: Any, place: Place, month: str, runs: Sequence[str], condition: str
) -> Month:
    """Sort each table into its new file."""
    files: list[tuple[Table, str]] = []
    for table, order in ORDER.items():
        name = f"tables/{table}/month={month}/part-{secrets.token_hex(6)}.parquet"
        with tempfile.TemporaryDirectory(prefix="veo-sorted-") as folder:
            path = Path(folder) / "part.parquet"
            connection.execute(
                f"COPY (SELECT * FROM {table} {condition} ORDER BY {order}) "
                f"TO {_quoted(str(path))} (FORMAT parquet, COMPRESSION zstd, "
                f"ROW_GROUP_SIZE {ROW_GROUP_ROWS})"
            )
            place.put(path, name)
        files.append((table, name))
    return Month(month, tuple(runs), tuple(files))


def _swap(place: Place, manifest: Manifest, old: Month | None, new: Month) -> Manifest:
    """Make the new month hold, then take the old one's files away."""
    manifest = manifest.with_month(new)
    write_manifest(place, manifest)
    for _, name in old.files if old is not None else ():
        # What stays behind is nobody's: no manifest names it.
        with contextlib.suppress(ArchiveError):
            place.remove(name)
    return manifest


def _names(runs: Iterable[str]) -> Any:
    import pyarrow as pa

    return pa.table({"run_id": pa.array(sorted(runs), type=pa.string())})


def _quoted(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"
