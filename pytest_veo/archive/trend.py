"""A test's figures over all runs, and the commits at which they took a step."""

from __future__ import annotations

import fnmatch
import json
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

from pytest_veo.archive.baseline import DEVICE_WIDE
from pytest_veo.archive.baseline import margins
from pytest_veo.archive.compare import DURATION
from pytest_veo.archive.environment_match import decisive
from pytest_veo.archive.steps import find_steps
from pytest_veo.archive.track import no_track
from pytest_veo.errors import ArchiveError


if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Sequence

    from pytest_veo.archive.baseline import Limit
    from pytest_veo.archive.query import Engine
    from pytest_veo.archive.steps import Step
    from pytest_veo.archive.track import Track


class RunPoint(NamedTuple):
    """What a trend tells of a run."""

    run_id: str
    started_at: str
    """ISO 8601, UTC."""
    commit: str
    environment: tuple[tuple[str, str], ...]


class Turn(NamedTuple):
    """A step, with the runs on either side of it."""

    step: Step
    last_before: RunPoint
    first_after: RunPoint
    earliest: RunPoint
    """The first run that the step may as well have begun with."""
    latest: RunPoint
    changed: tuple[str, ...]
    """What of the environment changed with it: `module.torch 2.13.0, now 2.14.1`."""


class Trend(NamedTuple):
    """One figure over the runs that have it."""

    nodeid: str
    counter: str
    device: str
    unit: str
    runs: tuple[RunPoint, ...]
    values: tuple[float, ...]
    turns: tuple[Turn, ...]


class Trends(NamedTuple):
    """What was asked for."""

    branch: str
    """Empty: all branches."""
    trends: tuple[Trend, ...]
    notes: tuple[str, ...]
    """Runs that were left out."""


def trends_of(
    engine: Engine,
    test: str,
    counters: Sequence[str] = (),
    *,
    branch: str | None = None,
    limit: Limit | None = None,
    track: Track = no_track,
) -> Trends:
    """The trends of a test, or of all that fit a pattern.

    Args:
        engine: of the archive.
        test: a node id, or a pattern with `*` in it.
        counters: patterns; none: all but `test.duration`.
        branch: whose runs; None: the branch with the most; `*`: all.
        limit: steps that are smaller are not told.
        track: shows how far it has come.

    Raises:
        ArchiveError: no run, no such branch, test or counter.
    """
    points, name, notes = _runs(engine, branch)
    series = list(_series(engine, test, counters, points))
    if not series:
        among = f" on branch {name!r}" if name else ""
        named = f" and counter {' '.join(counters)!r}" if counters else ""
        raise ArchiveError(
            f"{engine.url!r} has no figures of the test {test!r}{named}{among}"
        )
    found = []
    for (nodeid, counter, device, unit), runs, values in track(series, "finding steps"):
        edges = [
            place == 0 or runs[place].commit != runs[place - 1].commit
            for place in range(len(runs))
        ]
        steps = find_steps(values, edges, series=len(series))
        turns = tuple(_turn(step, runs) for step in steps if _counts(step, unit, limit))
        found.append(Trend(nodeid, counter, device, unit, runs, values, turns))
    return Trends(name, tuple(found), notes)


def _counts(step: Step, unit: str, limit: Limit | None) -> bool:
    if limit is None:
        return True
    percent, amount = margins(limit, unit)
    return abs(step.change) > max(abs(step.before) * percent / 100, amount)


def _runs(
    engine: Engine, branch: str | None
) -> tuple[dict[str, RunPoint], str, tuple[str, ...]]:
    rows = engine.sql(
        'SELECT run_id, started_at, "commit", branch, gpu, driver, environment '
        "FROM runs ORDER BY started_at, run_id"
    )
    if not rows:
        raise ArchiveError(f"the archive {engine.url!r} has no runs yet")
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row[3] or ""] = sizes.get(row[3] or "", 0) + 1
    if branch == "*":
        chosen = None
    else:
        chosen = max(sizes, key=sizes.__getitem__) if branch is None else branch
        if chosen not in sizes:
            known = ", ".join(sorted(name for name in sizes if name)) or "none"
            raise ArchiveError(
                f"{engine.url!r} has no run on branch {chosen!r}, it has {known}"
            )
    kept = [row for row in rows if chosen is None or (row[3] or "") == chosen]
    # Figures of another card are no trend.
    card = kept[-1][4] or ""
    points = {
        row[0]: RunPoint(row[0], row[1].isoformat(), row[2] or "", _environment(row))
        for row in kept
        if (row[4] or "") == card
    }
    notes = []
    if len(kept) < len(rows):
        notes.append(f"{len(rows) - len(kept)} runs are on other branches (--branch)")
    if len(points) < len(kept):
        notes.append(
            f"{len(kept) - len(points)} runs are on another GPU than {card or 'none'}"
        )
    return points, chosen or "", tuple(notes)


def _environment(row: tuple[Any, ...]) -> tuple[tuple[str, str], ...]:
    rows = json.loads(row[6] or "{}")
    for name, value in (("gpu", row[4]), ("driver", row[5])):
        if value:
            rows[name] = value
    return tuple(sorted(rows.items()))


_COUNTERS = """
SELECT nodeid, counter, device, unit, run_id, started_at, growth::DOUBLE AS value
  FROM counters WHERE verdict <> 'not judged' AND {test} AND {counter}
"""
_FRAMES = """
SELECT nodeid, 'frames.' || series || '.' || statistic, 'host', unit, run_id,
       started_at, value FROM frames WHERE {test} AND value IS NOT NULL
"""
_DURATIONS = """
SELECT nodeid, 'test.duration', 'host', 'ns', run_id, started_at, duration_ns::DOUBLE
  FROM records WHERE test_outcome = 'passed' AND {test}
"""

Figure = tuple[str, str, str, str]
"""Node id, counter, device, unit."""


def _series(
    engine: Engine, test: str, counters: Sequence[str], points: dict[str, RunPoint]
) -> Iterator[tuple[Figure, tuple[RunPoint, ...], tuple[float, ...]]]:
    # Equality lets the reader skip whole row groups of sorted tables.
    condition = "nodeid GLOB ?" if _is_pattern(test) else "nodeid = ?"
    pattern = _glob(test) if _is_pattern(test) else test
    parts, params = [], []
    if _may_be(counters, "frames."):
        parts.append(_FRAMES.format(test=condition))
        params.append(pattern)
    if any(fnmatch.fnmatchcase(DURATION, each) for each in counters):
        parts.append(_DURATIONS.format(test=condition))
        params.append(pattern)
    exact = counters and not any(_is_pattern(each) for each in counters)
    names = ", ".join("?" for _ in counters)
    only = f"counter IN ({names})" if exact else f"NOT counter GLOB '{DEVICE_WIDE}'"
    parts.append(_COUNTERS.format(test=condition, counter=only))
    params += [pattern, *(counters if exact else ())]
    # A column at a time: a million tuples would cost more than the query.
    table = engine.arrow(
        "SELECT * FROM (" + " UNION ALL ".join(f"({part})" for part in parts) + ") "
        "ORDER BY 1, 2, 3, started_at, run_id",
        *params,
    )
    columns = [column.to_pylist() for column in table.columns]
    nodeids, names_, devices, units, run_ids, _, values = columns
    start = 0
    for end in range(1, len(nodeids) + 1):
        if end < len(nodeids) and (nodeids[end], names_[end], devices[end]) == (
            nodeids[start],
            names_[start],
            devices[start],
        ):
            continue
        figure = nodeids[start], names_[start], devices[start], units[start]
        rows = [place for place in range(start, end) if run_ids[place] in points]
        start = end
        wanted = not counters or any(
            fnmatch.fnmatchcase(figure[1], each) for each in counters
        )
        if rows and wanted:
            yield (
                figure,
                tuple(points[run_ids[place]] for place in rows),
                tuple(float(values[place]) for place in rows),
            )


def _is_pattern(text: str) -> bool:
    # Brackets are those of a parametrised test's id.
    return "*" in text or "?" in text


def _glob(pattern: str) -> str:
    return pattern.replace("[", "[[]")


def _may_be(counters: Sequence[str], prefix: str) -> bool:
    return not counters or any(each.startswith((prefix, "*", "?")) for each in counters)


def _turn(step: Step, runs: Sequence[RunPoint]) -> Turn:
    before, after = runs[step.place - 1], runs[step.place]
    return Turn(
        step=step,
        last_before=before,
        first_after=after,
        earliest=runs[step.first],
        latest=runs[step.last],
        changed=_changed(before, after),
    )


def _changed(before: RunPoint, after: RunPoint) -> tuple[str, ...]:
    then, now = dict(before.environment), dict(after.environment)
    deciding = dict(decisive(after.environment)) | dict(decisive(before.environment))
    return tuple(
        f"{name} {then.get(name, 'none')}, now {now.get(name, 'none')}"
        for name in sorted(then.keys() | now.keys())
        if then.get(name) != now.get(name)
        and (name in deciding or name.startswith(("module.", "libc")))
    )
