"""Two runs, or two sets of runs, beside each other: what grew, shrank, is new, is gone.

The sums are done in SQL, so that a million figures take a second or two; what remains,
the figures that differ, is put in words here.
"""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

from pytest_veo.archive import baseline
from pytest_veo.archive import baseline_file
from pytest_veo.archive.baseline import DEVICE_WIDE
from pytest_veo.archive.baseline import PER_RUN
from pytest_veo.archive.baseline import SIGMAS
from pytest_veo.archive.baseline import SIGMAS_FEW
from pytest_veo.archive.baseline import SPREAD_RUNS
from pytest_veo.archive.baseline import Difference
from pytest_veo.archive.baseline import Key
from pytest_veo.archive.baseline import Outcome
from pytest_veo.archive.baseline import Past
from pytest_veo.archive.environment_match import differences
from pytest_veo.archive.figures import HOST
from pytest_veo.archive.figures import short_devices
from pytest_veo.archive.partition import open_duckdb
from pytest_veo.archive.query import Engine
from pytest_veo.archive.reference import choose
from pytest_veo.archive.reference import environment_of
from pytest_veo.archive.track import no_track
from pytest_veo.errors import ArchiveError


if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_veo.archive.baseline import Limit
    from pytest_veo.archive.reference import Reference
    from pytest_veo.archive.track import Track


DURATION = "test.duration"
"""How long a test took: compared only where it is asked for."""
_STATISTICS = ("p50_ns", "p95_ns", "p99_ns", "max_ns", "mad_ns")
"""What is compared of frames."""

_FIGURES = f"""
WITH figures AS (
  SELECT nodeid, counter, device, unit, growth::DOUBLE AS value FROM counters
   WHERE verdict <> 'not judged' AND NOT counter GLOB '{DEVICE_WIDE}'
  UNION ALL
  SELECT nodeid, counter || '{PER_RUN}', device, unit, per_run FROM counters
   WHERE per_run IS NOT NULL
  UNION ALL
  SELECT nodeid, 'frames.' || series || '.' || statistic, '{HOST}', unit, value
    FROM frames WHERE statistic IN {_STATISTICS!r}
  UNION ALL
  SELECT nodeid, '{DURATION}', '{HOST}', 'ns', duration_ns::DOUBLE FROM records
   WHERE test_outcome = 'passed'
)
"""
_SIDE = (
    _FIGURES
    + f"""
SELECT nodeid, counter, device, any_value(unit) AS unit, median(value) AS usual,
       CASE WHEN count(*) >= {SPREAD_RUNS} THEN greatest(
         1.4826 * mad(value),
         (quantile_cont(value, 0.75) - quantile_cont(value, 0.25)) / 1.349)
       ELSE 0::DOUBLE END AS spread,
       max(value) AS most, count(*) AS runs, list(value) AS "values"
  FROM figures GROUP BY nodeid, counter, device
"""
)
_SINGLE = (
    _FIGURES
    + """
SELECT nodeid, counter, device, unit, value AS usual, 0::DOUBLE AS spread,
       value AS most, 1::BIGINT AS runs, NULL::DOUBLE[] AS "values"
  FROM figures
"""
)


class Side(NamedTuple):
    """One of the two."""

    name: str
    table: Any
    """Arrow: nodeid, counter, device, unit, usual, spread, most, runs, values."""
    environment: tuple[tuple[str, str], ...]
    runs: int
    notes: tuple[str, ...] = ()


class Comparison(NamedTuple):
    """What lies between two sides."""

    before: str
    after: str
    grew: tuple[Difference, ...]
    moved: tuple[Difference, ...]
    """Grew, but no more than what other tests no longer keep."""
    shrank: tuple[Difference, ...]
    new: tuple[str, ...]
    """Tests."""
    gone: tuple[str, ...]
    same: int
    """Figures."""
    foreign: tuple[str, ...]
    """What of the environments differs and decides about sizes."""
    notes: tuple[str, ...]


def side(reference: Reference, *, but: str = "", track: Track = no_track) -> Side:
    """Read what a reference means.

    Args:
        reference: as it was given.
        but: id of a run that it does not mean: the one it is compared with.
        track: shows how far it has come.

    Raises:
        ArchiveError: it is not there, or has no run yet.
        MissingDependency: DuckDB or pyarrow is not installed.
    """
    if reference.file is not None:
        return _side_of_file(reference)
    chosen = choose(reference, None, but=but, track=track)
    if not chosen.headers:
        what = f"{reference.many} {f'beside {but}' if but else 'yet'}"
        raise ArchiveError(f"{reference.text!r}: {reference.archive!r} has no {what}")
    newest = chosen.headers[-1]
    ids = [header.run_id for header in chosen.headers]
    with Engine(str(reference.archive), runs=ids, track=track) as engine:
        table = engine.arrow(_SIDE if len(ids) > 1 else _SINGLE)
        notes = tuple(engine.unread)
    count = f" ({len(ids)} runs)" if len(ids) > 1 else ""
    return Side(
        name=f"{newest.run_id}{count}",
        table=table,
        environment=environment_of(newest),
        runs=len(ids),
        notes=notes,
    )


def _side_of_file(reference: Reference) -> Side:
    open_duckdb().close()  # asks for it by name where it is missing
    import pyarrow as pa

    assert reference.file is not None
    found = baseline_file.read(reference.file)
    rows = dict(found.figures)
    for nodeid in found.tests:
        for name in found.counters:
            key = baseline_file.key_of(nodeid, name)
            past = found.past(key)
            if past is not None:
                rows[key] = past
    columns: dict[str, Any] = {
        "nodeid": pa.array([key.nodeid for key in rows], pa.string()),
        "counter": pa.array([key.counter for key in rows], pa.string()),
        "device": pa.array([key.device for key in rows], pa.string()),
        "unit": pa.array([past.unit for past in rows.values()], pa.string()),
        "usual": pa.array([past.usual for past in rows.values()], pa.float64()),
        "spread": pa.array([past.spread for past in rows.values()], pa.float64()),
        "most": pa.array([past.most for past in rows.values()], pa.float64()),
        "runs": pa.array([past.runs for past in rows.values()], pa.int64()),
        "values": pa.nulls(len(rows), pa.list_(pa.float64())),
    }
    table = pa.table(columns)
    return Side(reference.text, table, found.environment, 1)


_JOIN = """
WITH pairs AS (
  SELECT a.nodeid, a.counter, a.device, a.unit, a.usual, a.spread, a.most, a.runs,
         b.usual AS now, l.quantile,
         a."values", greatest(abs(a.usual) * l.percent / 100, l.amount) AS margin
    FROM a JOIN b USING (nodeid, counter, device)
    JOIN limits l ON l.counter = a.counter
), judged AS (
  SELECT *, greatest(usual + margin, usual + (? + ? / runs) * spread,
    CASE WHEN runs > 1 AND quantile IS NULL THEN 2 * most - usual
         ELSE usual END) AS allowed,
    usual - greatest(margin, (? + ? / runs) * spread) AS least
    FROM pairs
)
"""


def compare(
    before: Side, after: Side, limits: Sequence[Limit], counters: Sequence[str] = ()
) -> Comparison:
    """Set two sides beside each other.

    Args:
        before: what is compared with.
        after: what is compared.
        limits: how much more is still the same.
        counters: patterns of those that are looked at; none: all but `test.duration`.

    Raises:
        ArchiveError: no figure of either side fits `counters`.
    """
    connection = open_duckdb()
    try:
        _register(connection, before, after, limits, counters)
        same, rows = _judged(connection)
        new = _tests(connection, "b", "a")
        gone = _tests(connection, "a", "b")
        lost = _figures_of(connection, gone)
    finally:
        connection.close()
    found = [_difference(row, limits) for row in rows]
    moved = baseline.moved(found, lost, limits)
    worse = [each for each in found if each.outcome is Outcome.WORSE]
    sure = [each for each in worse if _is_sure(each, moved)]
    return Comparison(
        before=before.name,
        after=after.name,
        grew=_sorted(sure),
        moved=_sorted([each for each in worse if each not in set(sure)]),
        shrank=_sorted([d for d in found if d.outcome is Outcome.BETTER]),
        new=new,
        gone=gone,
        same=same + sum(each.outcome is Outcome.SAME for each in found),
        foreign=differences(before.environment, after.environment),
        notes=tuple(dict.fromkeys((*before.notes, *after.notes))),
    )


def _is_sure(each: Difference, moved: dict[tuple[str, str], float]) -> bool:
    return each.now - each.allowed > moved.get(baseline.pool(each.key), 0.0)


def _sorted(found: Sequence[Difference]) -> tuple[Difference, ...]:
    return tuple(sorted(found, key=lambda each: (-abs(each.change), each.key)))


def _register(
    connection: Any,
    before: Side,
    after: Side,
    limits: Sequence[Limit],
    counters: Sequence[str],
) -> None:
    import pyarrow as pa

    names: set[str] = set()
    for view, each in (("a", before), ("b", after)):
        connection.register(f"raw_{view}", each.table)
        found = connection.sql(
            f"SELECT DISTINCT counter, device FROM raw_{view}"
        ).fetchall()
        names |= {counter for counter, _ in found}
        _name_devices(connection, view, {device for _, device in found})
    wanted = sorted(name for name in names if _is_wanted(name, counters))
    if counters and not wanted:
        known = {name.removesuffix(PER_RUN) for name in names}
        raise ArchiveError(
            f"neither side has a figure of {' or '.join(map(repr, counters))}, "
            f"they have {', '.join(sorted(known)) or 'none'}"
        )
    held = [baseline.limit_of(Key("", name, HOST), limits) for name in wanted]
    units = dict(
        connection.sql(
            "SELECT counter, any_value(unit) FROM "
            "(SELECT counter, unit FROM a UNION ALL SELECT counter, unit FROM b) "
            "GROUP BY counter"
        ).fetchall()
    )
    margins = [
        baseline.margins(limit, units[name])
        for name, limit in zip(wanted, held, strict=True)
    ]
    table = {
        "counter": pa.array(wanted, pa.string()),
        "percent": pa.array([percent for percent, _ in margins], pa.float64()),
        "amount": pa.array([amount for _, amount in margins], pa.float64()),
        "quantile": pa.array([limit.quantile for limit in held], pa.float64()),
    }
    connection.register("limits", pa.table(table))


def _name_devices(connection: Any, view: str, devices: set[str]) -> None:
    """Make the view, its devices under names that mean the same elsewhere."""
    import pyarrow as pa

    short = short_devices(devices)
    if all(short[device] == device for device in devices):
        connection.execute(f"CREATE VIEW {view} AS FROM raw_{view}")
        return
    pairs = pa.table({"long": list(short), "short": list(short.values())})
    connection.register(f"devices_{view}", pairs)
    connection.execute(
        f"CREATE TABLE {view} AS SELECT raw.* REPLACE (d.short AS device) "
        f"FROM raw_{view} raw JOIN devices_{view} d ON d.long = raw.device"
    )


def _is_wanted(counter: str, patterns: Sequence[str]) -> bool:
    if not patterns:
        return counter != DURATION
    plain = counter.removesuffix(PER_RUN)
    return any(fnmatch.fnmatchcase(plain, pattern) for pattern in patterns)


def _judged(connection: Any) -> tuple[int, list[tuple[Any, ...]]]:
    """How many figures are the same, and the rows of the others."""
    connection.execute(
        f"CREATE TEMP TABLE judged AS {_JOIN} "
        "SELECT *, now > allowed OR now < least AS differs FROM judged",
        [SIGMAS, SIGMAS_FEW] * 2,
    )
    (same,) = connection.execute(
        "SELECT count(*) FROM judged WHERE NOT differs"
    ).fetchone()
    rows = connection.execute(
        "SELECT nodeid, counter, device, unit, usual, spread, most, runs, now, "
        '"values" FROM judged WHERE differs'
    ).fetchall()
    return int(same), rows


def _difference(row: tuple[Any, ...], limits: Sequence[Limit]) -> Difference:
    nodeid, counter, device, unit, usual, spread, most, runs, now, values = row
    key = Key(nodeid, counter, device)
    limit = baseline.limit_of(key, limits)
    quantile_value = None
    if limit.quantile is not None and values:
        quantile_value = baseline.quantile_of(values, limit.quantile)
    past = Past(usual, spread, most, runs, unit)
    return baseline.compare(key, past, now, limit, quantile_value)


def _tests(connection: Any, there: str, missing: str) -> tuple[str, ...]:
    rows = connection.sql(
        f"SELECT DISTINCT nodeid FROM {there} "
        f"WHERE nodeid NOT IN (SELECT nodeid FROM {missing}) ORDER BY nodeid"
    ).fetchall()
    return tuple(nodeid for (nodeid,) in rows)


def _figures_of(connection: Any, tests: Sequence[str]) -> dict[Key, Past]:
    if not tests:
        return {}
    rows = connection.execute(
        "SELECT nodeid, counter, device, usual, spread, most, runs, unit FROM a "
        "WHERE usual > 0 AND nodeid NOT IN (SELECT nodeid FROM b)"
    ).fetchall()
    return {Key(*row[:3]): Past(*row[3:]) for row in rows}
