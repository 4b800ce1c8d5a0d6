"""From a run's records to the rows of its tables, a column at a time.

A million rows are too many to be made one by one; what is the same all over a run is
kept once.
"""

from __future__ import annotations

import itertools
import json
import operator
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

from pytest_veo.archive.record import CounterRecord
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.store import PLACE
from pytest_veo.archive.store import RawRun
from pytest_veo.archive.store import records_of
from pytest_veo.archive.table import COLUMNS
from pytest_veo.archive.table import RUN
from pytest_veo.archive.table import Kind
from pytest_veo.archive.table import Table


if TYPE_CHECKING:
    import pandas as pd


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
_COUNTER = operator.itemgetter(*CounterRecord._fields)
_NO_FRAMES = (AttributeError, KeyError, OverflowError, TypeError, ValueError)

RunKey = tuple[str, str, str, str]
"""What tables begin with: the run's id, its start, commit and branch."""


class Columns:
    """Rows of one table.

    Attributes:
        runs: of each run its four columns and the number of its rows; none in the table
            `runs`, whose rows are runs.
        own: a list for each of the other columns, in order.
    """

    def __init__(self, table: Table) -> None:
        self.runs: list[tuple[RunKey, int]] = []
        self.own: list[list[Any]] = [
            [] for name in COLUMNS[table] if table == "runs" or name not in RUN
        ]

    def __len__(self) -> int:
        return len(self.own[0])

    def add(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows, without the columns of their run."""
        for column, values in zip(self.own, zip(*rows, strict=True), strict=False):
            column += values


Tables = dict[Table, Columns]


def no_rows() -> Tables:
    """Every table, empty."""
    return {table: Columns(table) for table in COLUMNS}


def add_run(tables: Tables, run_id: str, raw: RawRun) -> None:
    """Add a run's rows; what cannot be read is named in `raw.unread`.

    Args:
        tables: what they are added to.
        run_id: the name of its folder.
        raw: what lies in it.
    """
    header = raw.header
    before = {table: len(columns) for table, columns in tables.items()}
    tally: dict[str, int] = {}
    records = []
    for data in records_of(raw):
        outcome = data["verdict"]["outcome"]
        tally[outcome] = tally.get(outcome, 0) + 1
        records.append(_record_row(data))
        _add_counters(tables["counters"].own, data)
        if data.get("frames"):
            tables["frames"].add(_readable_frames(data, raw))
    tables["records"].add(records)
    tables["runs"].add([run_row(run_id, header, tally)])
    run = key_of(run_id, header)
    for table, columns in tables.items():
        if table != "runs":
            columns.runs.append((run, len(columns) - before[table]))


def key_of(run_id: str, header: RunHeader) -> RunKey:
    """What the rows of a run begin with."""
    return run_id, header.started_at, header.commit, header.branch


def run_row(
    run_id: str, header: RunHeader, tally: Mapping[str, int]
) -> tuple[Any, ...]:
    """A run's row in the table `runs`.

    Args:
        run_id: the name of its folder.
        header: its own.
        tally: how many of its tests have each verdict.
    """
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


def _record_row(data: Mapping[str, Any]) -> tuple[Any, ...]:
    verdict = data["verdict"]
    return (
        data["nodeid"],
        data["worker"],
        data["started_at"],
        data["duration_ns"],
        data["test_outcome"],
        verdict["outcome"],
        verdict["reason"],
        data.get("environment", ""),
    )


def _add_counters(own: list[list[Any]], data: Mapping[str, Any]) -> None:
    verdict = data["verdict"]
    outcome = verdict["outcome"]
    rows = data["counters"]
    nodeids, *measured, per_runs, verdicts = own
    nodeids += itertools.repeat(data["nodeid"], len(rows))
    for column, values in zip(
        measured, zip(*map(_COUNTER, rows), strict=True), strict=False
    ):
        column += values
    others = "not judged" if outcome == "not judged" else "clean"
    if not verdict["findings"]:
        per_runs += itertools.repeat(None, len(rows))
        verdicts += itertools.repeat(others, len(rows))
        return
    found = {(row["counter"], row["device"]): row for row in verdict["findings"]}
    for row in rows:
        finding = found.get((row["counter"], row["device"]))
        per_run = None if finding is None else finding["per_run"]
        per_runs.append(per_run if verdict["runs"] else None)
        verdicts.append(others if finding is None else outcome)


def _readable_frames(data: Mapping[str, Any], raw: RawRun) -> list[tuple[Any, ...]]:
    found = []
    for place, series in enumerate(data["frames"], start=1):
        try:
            found += list(_frame_rows(data["nodeid"], series))
        except _NO_FRAMES as error:
            why = f"{type(error).__name__} {error}"
            raw.unread.append(f"{data.get(PLACE)}: frames {place}: {why}")
    return found


def _frame_rows(nodeid: str, data: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    series = data.get("series")
    if not isinstance(series, str):
        return  # a sweep's or a comparison's table: its series have rows of their own
    for name, value in _numbers(data.get("stats") or {}):
        yield (nodeid, series, name, _unit(name), value, *(None,) * 4)
    for finding in data.get("findings", ()):
        yield (
            nodeid,
            series,
            str(finding["rule"]),
            str(finding["measure"]),
            *(
                None if finding[name] is None else float(finding[name])
                for name in ("estimate", "low", "high", "limit")
            ),
            str(finding["outcome"]),
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


def frame_of(table: Table, columns: Columns) -> pd.DataFrame:
    """Rows as a DataFrame with every column, of its kind, rows or none."""
    import pandas as pd

    kinds = COLUMNS[table]
    found: dict[str, Any] = {}
    if table != "runs":
        counts = [count for _, count in columns.runs]
        for place, (name, kind) in enumerate(RUN.items()):
            column = _series(kind, [run[place] for run, _ in columns.runs])
            found[name] = column.repeat(counts).reset_index(drop=True)
    others = [name for name in kinds if name not in found]
    for name, own in zip(others, columns.own, strict=True):
        found[name] = _series(kinds[name], own)
    return pd.DataFrame(found)


def _series(kind: Kind, values: Sequence[Any]) -> Any:
    import pandas as pd

    if kind == "time":
        times = pd.to_datetime(
            pd.Series(values, dtype="object"),
            utc=True,
            errors="coerce",
            format="ISO8601",
        )
        return times.astype("datetime64[us, UTC]")
    # What this pandas makes of text by itself: objects, or strings since its version 3.
    text = pd.Series([""]).dtype
    dtypes: dict[str, Any] = {"text": text, "int": "int64", "float": "float64"}
    return pd.Series(values, dtype=dtypes[kind])
