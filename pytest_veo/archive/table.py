"""Runs as tables: one row for each run, test, counter or frame statistic.

`COLUMNS` is what every reader may count on, in this order; docs/archive.md tells what
each column means.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import Literal

from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.store import RawRun
from pytest_veo.archive.store import records_of
from pytest_veo.errors import ArchiveError


if TYPE_CHECKING:
    import pandas as pd


Table = Literal["runs", "records", "counters", "frames"]
Kind = Literal["text", "time", "int", "float"]

_RUN: dict[str, Kind] = {
    "run_id": "text",
    "started_at": "time",
    "commit": "text",
    "branch": "text",
}
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
        **_RUN,
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
        **_RUN,
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
        **_RUN,
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
_TALLIES = {
    "clean": "clean",
    "leak": "leaks",
    "retention": "retentions",
    "collectable": "collectable",
    "unconfirmed": "unconfirmed",
    "allowed": "allowed",
    "over budget": "over_budget",
    "not judged": "not_judged",
}
Rows = dict[Table, list[tuple[Any, ...]]]
"""Each row has its table's columns, in order."""


def rows_of(run_id: str, raw: RawRun) -> Rows:
    """A run's rows; what cannot be read is named in `raw.unread`.

    Args:
        run_id: the name of its folder.
        raw: what lies in it.
    """
    header = raw.header
    run = (run_id, header.started_at, header.commit, header.branch)
    rows: Rows = {"runs": [], "records": [], "counters": [], "frames": []}
    tally: dict[str, int] = {}
    for data in records_of(raw):
        verdict = data["verdict"]
        outcome = verdict["outcome"]
        tally[outcome] = tally.get(outcome, 0) + 1
        rows["records"].append(_record_row(run, data))
        rows["counters"] += _counter_rows(run, data)
        for series in data.get("frames", ()):
            rows["frames"] += _frame_rows(run, data["nodeid"], series)
    rows["runs"].append(_run_row(run_id, header, raw, tally))
    return rows


def _run_row(
    run_id: str, header: RunHeader, raw: RawRun, tally: Mapping[str, int]
) -> tuple[Any, ...]:
    known = {
        "run_id": run_id,
        "python": dict(header.environment).get("python", ""),
        "environment": json.dumps(dict(header.environment), sort_keys=True),
        "tests": sum(tally.values()),
        "schema": header.schema,
        **{column: tally.get(outcome, 0) for outcome, column in _TALLIES.items()},
    }
    return tuple(
        known[name] if name in known else getattr(header, name)
        for name in COLUMNS["runs"]
    )


def _record_row(run: tuple[str, ...], data: Mapping[str, Any]) -> tuple[Any, ...]:
    verdict = data["verdict"]
    return (
        *run,
        data["nodeid"],
        data["worker"],
        data["started_at"],
        data["duration_ns"],
        data["test_outcome"],
        verdict["outcome"],
        verdict["reason"],
        data.get("environment", ""),
    )


def _counter_rows(
    run: tuple[str, ...], data: Mapping[str, Any]
) -> Iterator[tuple[Any, ...]]:
    verdict = data["verdict"]
    nodeid = data["nodeid"]
    outcome = verdict["outcome"]
    found = {
        (finding["counter"], finding["device"]): finding
        for finding in verdict["findings"]
    }
    others = "not judged" if outcome == "not judged" else "clean"
    for row in data["counters"]:
        finding = found.get((row["counter"], row["device"]))
        yield (
            *run,
            nodeid,
            row["counter"],
            row["device"],
            row["unit"],
            row["before"],
            row["after"],
            row["growth"],
            None if finding is None or not verdict["runs"] else finding["per_run"],
            others if finding is None else outcome,
        )


def _frame_rows(
    run: tuple[str, ...], nodeid: str, data: Mapping[str, Any]
) -> Iterator[tuple[Any, ...]]:
    series = data.get("series")
    if not isinstance(series, str):
        return  # a sweep's or a comparison's table: its series have rows of their own
    for name, value in _numbers(data.get("stats") or {}):
        yield (*run, nodeid, series, name, _unit(name), value, *(None,) * 4)
    for finding in data.get("findings", ()):
        yield (
            *run,
            nodeid,
            series,
            finding["rule"],
            finding["measure"],
            finding["estimate"],
            finding["low"],
            finding["high"],
            finding["limit"],
            finding["outcome"],
        )


def _numbers(stats: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in stats.items():
        if isinstance(value, dict):
            inner = "" if name == "spread" else f"{prefix}{name}."
            yield from _numbers(value, inner)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield prefix + name, float(value)
    for drops in stats.get("drops") or ():
        yield f"{prefix}dropped.{drops['kind']}", float(drops["dropped"])


_UNITS = {
    "_ns": "ns",
    "_s": "s",
    "_ppm": "ppm",
    "_frames": "frames",
    "frames": "frames",
    "per_minute": "per minute",
    "lag1": "correlation",
}


def _unit(name: str) -> str:
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "count")


def frame_of(table: Table, rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """Rows as a DataFrame with every column, of its kind, rows or none."""
    import pandas as pd

    columns = COLUMNS[table]
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    return pd.DataFrame(
        {
            name: _column(kind, column)
            for (name, kind), column in zip(columns.items(), values, strict=True)
        }
    )


def _column(kind: Kind, values: Iterable[Any]) -> Any:
    import pandas as pd

    listed = list(values)
    if kind == "time":
        times = pd.to_datetime(
            pd.Series(listed, dtype="object"),
            utc=True,
            errors="coerce",
            format="ISO8601",
        )
        return times.astype("datetime64[us, UTC]")
    # What this pandas makes of text by itself: objects, or strings since its version 3.
    text = pd.Series([""]).dtype
    dtypes: dict[str, Any] = {"text": text, "int": "int64", "float": "float64"}
    return pd.Series(listed, dtype=dtypes[kind])


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
