"""A series against earlier runs of the same test.

Earlier runs are plain numbers, oldest first. A statistic fails when its lower bound
is above both limits, the ratio and the scatter: a ratio alone would fail a test whose
runs differ by nature, a scatter alone one run in forty that is like the others.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_veo.errors import FramesError
from pytest_veo.frames.budget import BASELINE_STATISTICS
from pytest_veo.frames.budget import BaselineStatistic
from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.case import MS
from pytest_veo.frames.case import Case
from pytest_veo.frames.stats import FrameStats
from pytest_veo.frames.time_rules import QUANTILES
from pytest_veo.frames.time_rules import judge_mad
from pytest_veo.frames.time_rules import judge_max
from pytest_veo.frames.time_rules import judge_quantile
from pytest_veo.frames.verdict import Finding


History = Mapping[str, Sequence[float]]
"""Statistics of earlier runs in milliseconds, oldest first: `p95_ms` and so on."""

RUNS_KEPT = 256
"""How many runs of each series a baseline file holds."""

_SHARES = dict(QUANTILES)


def compare_with_baseline(
    case: Case, history: History
) -> tuple[list[Finding], list[str]]:
    """Findings on the statistics held to a baseline, and a note where none is there."""
    found, notes = [], []
    for statistic in case.budget.baseline:
        runs = list(history.get(statistic, ()))[-case.budget.baseline_runs :]
        if not runs:
            notes.append(f"no baseline of {statistic} yet: nothing to compare with")
            continue
        limit_ns = baseline_limit_ms(case.budget, runs) * MS
        found.append(_judge(case, statistic, limit_ns))
    return found, notes


def baseline_limit_ms(budget: JitterBudget, runs: Sequence[float]) -> float:
    """The larger of ratio times the median run, and the mean plus so many sigma."""
    by_ratio = budget.baseline_ratio * statistics.median(runs)
    if len(runs) < 2:
        return by_ratio
    scatter = budget.baseline_sigma * statistics.stdev(runs)
    return max(by_ratio, statistics.fmean(runs) + scatter)


def history_entry(stats: FrameStats) -> dict[BaselineStatistic, float]:
    """What one run adds to the history, in milliseconds."""
    spread = stats.spread
    if spread is None:
        return {}
    return {
        "p50_ms": spread.p50_ns / MS,
        "p95_ms": spread.p95_ns / MS,
        "p99_ms": spread.p99_ns / MS,
        "max_ms": spread.max_ns / MS,
        "mad_ms": spread.mad_ns / MS,
    }


def entry_from_record(record: Mapping[str, Any]) -> dict[BaselineStatistic, float]:
    """The same from the plain record of a series."""
    spread = record["stats"]["spread"]
    if spread is None:
        return {}
    return {
        statistic: spread[statistic.replace("_ms", "_ns")] / MS
        for statistic in BASELINE_STATISTICS
    }


def read_history(path: Path, key: str) -> dict[str, list[float]]:
    """The history of one test's series in a baseline file; empty when it has none.

    The file is JSON: `{"schema": 1, "series": {key: {"p95_ms": [16.9, 17.0]}}}`.

    Args:
        path: the file.
        key: `nodeid::series`.

    Raises:
        FramesError: the file is there and is no such file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise FramesError(f"{path}: the baseline cannot be read: {error}") from error
    return {
        statistic: [float(value) for value in values]
        for statistic, values in _series_of(path, text, key).items()
    }


def add_to_history(
    path: Path, entries: Mapping[str, Mapping[BaselineStatistic, float]], keep: int
) -> None:
    """Append one run's figures to a baseline file, and put the new file in its place.

    Args:
        path: the file; made when it is not there.
        entries: figures in milliseconds, by `nodeid::series`.
        keep: how many runs of each series stay in the file.

    Raises:
        FramesError: the file is there and is no such file, or cannot be written.
    """
    document: dict[str, Any] = {"schema": 1, "series": {}}
    if path.exists():
        for key in entries:
            read_history(path, key)
        document = json.loads(path.read_text(encoding="utf-8"))
    for key, figures in entries.items():
        series = document["series"].setdefault(key, {})
        for statistic, value in figures.items():
            series[statistic] = [*series.get(statistic, ()), value][-keep:]
    new = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps(document, indent=1), encoding="utf-8")
        new.replace(path)
    except OSError as error:
        raise FramesError(f"{path}: the baseline cannot be written: {error}") from error


def _series_of(path: Path, text: str, key: str) -> dict[str, list[float]]:
    try:
        document = json.loads(text)
        series = document["series"].get(key, {})
        usable = document["schema"] == 1 and all(
            statistic in BASELINE_STATISTICS
            and all(isinstance(value, int | float) for value in values)
            for statistic, values in series.items()
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FramesError(f"{path}: no frame baseline: {error!r}") from error
    if not usable:
        raise FramesError(
            f'{path}: no frame baseline of schema 1: "series" must map {key!r} to '
            f"lists of numbers under {', '.join(BASELINE_STATISTICS)}"
        )
    found: dict[str, list[float]] = series
    return found


def _judge(case: Case, statistic: BaselineStatistic, limit_ns: float) -> Finding:
    rule = f"baseline {statistic}"
    if statistic == "max_ms":
        return judge_max(case, rule, limit_ns)
    if statistic == "mad_ms":
        return judge_mad(case, rule, limit_ns)
    return judge_quantile(case, rule, _SHARES[statistic], limit_ns)
