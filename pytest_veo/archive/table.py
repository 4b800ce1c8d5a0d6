"""Runs as tables: one row for each run, test, counter or frame statistic.

`COLUMNS` is what every reader may count on, in this order; docs/archive.md tells what
each column means.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Literal

from pytest_veo.errors import ArchiveError


if TYPE_CHECKING:
    import pandas as pd


Table = Literal["runs", "records", "counters", "frames"]
Kind = Literal["text", "time", "int", "float"]

RUN: dict[str, Kind] = {
    "run_id": "text",
    "started_at": "time",
    "commit": "text",
    "branch": "text",
}
"""What every table but `runs` begins with."""
COLUMNS: dict[Table, dict[str, Kind]] = {
    "runs": {
        "run_id": "text",
        "started_at": "time",
        "finished_at": "time",
        "commit": "text",
        "branch": "text",
        "ci": "text",
        "ci_job": "text",
        "ci_url": "text",
        "shard": "text",
        "gpu": "text",
        "driver": "text",
        "python": "text",
        "environment": "text",
        "tests": "int",
        "clean": "int",
        "leaks": "int",
        "retentions": "int",
        "collectable": "int",
        "unconfirmed": "int",
        "allowed": "int",
        "over_budget": "int",
        "not_judged": "int",
        "schema": "int",
    },
    "records": {
        **RUN,
        "nodeid": "text",
        "worker": "text",
        "test_started_at": "time",
        "duration_ns": "int",
        "test_outcome": "text",
        "verdict": "text",
        "reason": "text",
        "environment": "text",
    },
    "counters": {
        **RUN,
        "nodeid": "text",
        "counter": "text",
        "device": "text",
        "unit": "text",
        "before": "int",
        "after": "int",
        "growth": "int",
        "per_run": "float",
        "verdict": "text",
    },
    "frames": {
        **RUN,
        "nodeid": "text",
        "series": "text",
        "statistic": "text",
        "unit": "text",
        "value": "float",
        "low": "float",
        "high": "float",
        "budget": "float",
        "verdict": "text",
    },
}


def load(
    url: str | Path,
    table: Table = "counters",
    runs: Iterable[str] | None = None,
    where: str | None = None,
) -> pd.DataFrame:
    """An archive as a tidy table.

    Args:
        url: a folder, or any URL that fsspec knows, as given to `--veo-archive`.
        table: `counters` (one row for each run, test and counter), `records` (each
            run and test), `frames` (each run, test, series and statistic) or `runs`.
        runs: ids of the runs that are wanted; all of them if not given.
        where: a condition in SQL over the table's columns, such as
            `"nodeid LIKE '%decode%' AND growth > 0"`; needs DuckDB.

    Returns:
        The table's columns in documented order (docs/archive.md), its rows in none.
        What could not be read is named in `DataFrame.attrs["unread"]`.

    Raises:
        ArchiveError: no archive, no such run or table, a condition without meaning.
        MissingDependency: `where` without DuckDB, a URL without fsspec.
    """
    from pytest_veo.archive.query import Engine

    if table not in COLUMNS:
        raise ArchiveError(f"there is no table {table!r}, only {', '.join(COLUMNS)}")
    return Engine(url, runs=runs).table(table, where)
