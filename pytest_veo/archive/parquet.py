"""Tables as Arrow and Parquet."""

from __future__ import annotations

import datetime
import functools
import importlib.util
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_veo.archive.place import Place
from pytest_veo.archive.rows import Columns
from pytest_veo.archive.rows import RunKey
from pytest_veo.archive.rows import add_run
from pytest_veo.archive.rows import no_rows
from pytest_veo.archive.store import read_raw
from pytest_veo.archive.table import COLUMNS
from pytest_veo.archive.table import RUN
from pytest_veo.archive.table import Kind
from pytest_veo.archive.table import Table
from pytest_veo.errors import ArchiveError


ROW_GROUP_ROWS = 40_960
"""Of a sorted table, a question about one test reads a few of these."""
_COMPRESSION = "zstd"


def is_there() -> bool:
    """Whether pyarrow is installed."""
    try:
        return importlib.util.find_spec("pyarrow") is not None
    except ValueError:
        return False  # something stands in its place that cannot say


@functools.cache
def schema_of(table: Table) -> Any:
    """A table's columns as an Arrow schema."""
    import pyarrow as pa

    types = _types()
    return pa.schema([(name, types[kind]) for name, kind in COLUMNS[table].items()])


@functools.cache
def _types() -> dict[Kind, Any]:
    import pyarrow as pa

    return {
        "text": pa.string(),
        "time": pa.timestamp("us", tz="UTC"),
        "int": pa.int64(),
        "float": pa.float64(),
    }


def arrow_of(table: Table, columns: Columns) -> Any:
    """Rows as an Arrow table with every column, rows or none."""
    import pyarrow as pa

    kinds = COLUMNS[table]
    found = [] if table == "runs" else run_columns(columns.runs)
    others = list(kinds.values())[len(found) :]
    found += map(_array, others, columns.own)
    return pa.table(found, schema=schema_of(table))


def run_columns(runs: Sequence[tuple[RunKey, int]]) -> list[Any]:
    """What tables begin with, for runs of so many rows each."""
    import numpy as np
    import pyarrow as pa

    if not runs:
        return [_array(kind, ()) for kind in RUN.values()]
    places = pa.array(np.repeat(np.arange(len(runs)), [count for _, count in runs]))
    values = zip(*(run for run, _ in runs), strict=True)
    return [
        _array(kind, column).take(places)
        for kind, column in zip(RUN.values(), values, strict=True)
    ]


def _array(kind: Kind, values: Sequence[Any]) -> Any:
    import pyarrow as pa

    if kind == "time":
        values = [time_of(text) for text in values]
    return pa.array(values, type=_types()[kind])


@functools.lru_cache(maxsize=4096)
def time_of(text: object) -> datetime.datetime | None:
    """An ISO 8601 time; None where the text is no time."""
    try:
        time = datetime.datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return time.replace(tzinfo=time.tzinfo or datetime.UTC)


def write_run_tables(place: Place, run_id: str) -> None:
    """Put a finished run's tables into its folder; nothing without pyarrow.

    Raises:
        ArchiveError: they cannot be written; the run is whole without them.
    """
    if not is_there():
        return
    tables = no_rows()
    add_run(tables, run_id, read_raw(place, run_id))
    for table, columns in tables.items():
        place.write(run_table(run_id, table), parquet_bytes(arrow_of(table, columns)))


def run_table(run_id: str, table: Table) -> str:
    """The name of a run's own Parquet file."""
    return f"runs/{run_id}/{table}.parquet"


def parquet_bytes(table: Any) -> bytes:
    """An Arrow table as the content of a Parquet file."""
    import pyarrow.parquet as pq

    content = io.BytesIO()
    pq.write_table(
        table, content, compression=_COMPRESSION, row_group_size=ROW_GROUP_ROWS
    )
    return content.getvalue()


def read_parquet(
    place: Place, name: str, table: Table, runs: Sequence[str] | None = None
) -> Any:
    """A Parquet file as an Arrow table with this version's columns.

    Args:
        place: the archive.
        name: the file's.
        table: which it holds.
        runs: whose rows are wanted; all if not given.

    Raises:
        ArchiveError: it is not there, or cannot be read as this table.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = None if runs is None else [("run_id", "in", list(runs))]
    try:
        with _native(place, name) as file:
            return _conformed(pq.read_table(file, filters=wanted), table)
    except (OSError, pa.ArrowException) as error:
        raise ArchiveError(
            f"cannot read {place.shown(name)}: {_line(error)}"
        ) from error


def _native(place: Place, name: str) -> Any:
    """A file that Arrow's threads read without Python.

    A read that fails leaves others under way; where they call a Python file while the
    interpreter ends, the process is aborted.
    """
    import pyarrow as pa

    if place.folder is not None:
        return pa.OSFile(os.fsencode(place.folder / name))
    return pa.BufferReader(place.read(name))


def check_parquet(place: Place, name: str) -> None:
    """Look at the end of a Parquet file, which tells what is in it.

    Raises:
        ArchiveError: it is not there, or is no Parquet file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with _opened(place, name) as file:
            pq.read_metadata(file)
    except (OSError, pa.ArrowException) as error:
        raise ArchiveError(
            f"cannot read {place.shown(name)}: {_line(error)}"
        ) from error


def _opened(place: Place, name: str) -> Any:
    if place.folder is not None:
        return (Path(place.folder) / name).open("rb")
    return place.filesystem.open(place.full(name), "rb")


def _conformed(found: Any, table: Table) -> Any:
    """With this version's columns in their order: those of a later one fall away."""
    import pyarrow as pa

    schema = schema_of(table)
    columns = [
        found[field.name].cast(field.type)
        if field.name in found.column_names
        else pa.nulls(len(found), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
