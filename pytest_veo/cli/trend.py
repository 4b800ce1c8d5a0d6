"""`veo trend TEST`: a test's figures over all runs, and the commits of their steps."""

from __future__ import annotations

import argparse
import statistics
from typing import TYPE_CHECKING
from typing import Any

from pytest_veo.archive.baseline import parse_limits
from pytest_veo.archive.query import ENGINES
from pytest_veo.archive.query import Engine
from pytest_veo.archive.trend import trends_of
from pytest_veo.cli.answer import answer
from pytest_veo.cli.progress import track
from pytest_veo.errors import BadSetting
from pytest_veo.units import Unit
from pytest_veo.units import counted
from pytest_veo.units import format_value


if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Sequence

    from pytest_veo.archive.trend import RunPoint
    from pytest_veo.archive.trend import Trend
    from pytest_veo.archive.trend import Trends
    from pytest_veo.archive.trend import Turn


_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 60
_SHOWN = 60
"""Figures without a step."""
_COMMIT = 12


def add_parser(subparsers: Any) -> None:
    """Add `trend` to the `veo` command.

    Args:
        subparsers: what `ArgumentParser.add_subparsers` returned.
    """
    parser = subparsers.add_parser(
        "trend",
        help="a test's figures over all runs, and the commits of their steps",
        description="Shows how a test's figures went over an archive's runs, and at "
        "which commit they took a step.",
    )
    parser.add_argument("test", metavar="TEST", help="a node id, or a pattern with *")
    parser.add_argument("--archive", metavar="ARCHIVE", required=True)
    parser.add_argument(
        "--counter",
        action="append",
        default=[],
        metavar="PATTERN",
        help="only these, such as torch.allocated, 'frames.*' or test.duration",
    )
    parser.add_argument(
        "--branch", help="whose runs (default: the branch with the most; '*': all)"
    )
    parser.add_argument(
        "--limit", metavar="LIMIT", help="tell larger steps only: '10%%', '64 KiB'"
    )
    parser.add_argument("--engine", default="duckdb", choices=ENGINES)
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of Dask")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Find the trends and print them.

    Returns:
        0.

    Raises:
        ArchiveError: no archive, or nothing in it that fits.
        BadSetting: a limit that means nothing.
        CommandError: some runs could not be read; the rest is printed.
    """
    limits = parse_limits(args.limit or "", "--limit")
    if len(limits) > 1 or any(limit.quantile is not None for limit in limits):
        raise BadSetting(f"--limit: {args.limit!r} is not one percentage or size")
    with Engine(
        args.archive, engine=args.engine, scheduler=args.scheduler, track=track
    ) as engine:
        found = trends_of(
            engine,
            args.test,
            args.counter,
            branch=args.branch,
            limit=limits[0] if limits else None,
            track=track,
        )
        unread = list(engine.unread)
    plain = {"unread": unread}
    answer(args, lambda: document(found) | plain, lines(found), unread)
    return 0


def document(found: Trends) -> dict[str, Any]:
    """The trends as plain values."""
    return {
        "branch": found.branch,
        "notes": list(found.notes),
        "trends": [_plain(trend) for trend in found.trends],
    }


def _plain(trend: Trend) -> dict[str, Any]:
    return {
        "nodeid": trend.nodeid,
        "counter": trend.counter,
        "device": trend.device,
        "unit": trend.unit,
        "points": [
            {"run_id": run.run_id, "commit": run.commit, "value": value}
            for run, value in zip(trend.runs, trend.values, strict=True)
        ],
        "steps": [_plain_turn(turn) for turn in trend.turns],
    }


def _plain_turn(turn: Turn) -> dict[str, Any]:
    return {
        "commit": turn.first_after.commit,
        "run_id": turn.first_after.run_id,
        "commit_before": turn.last_before.commit,
        "earliest_commit": turn.earliest.commit,
        "latest_commit": turn.latest.commit,
        "before": turn.step.before,
        "after": turn.step.after,
        "noise": turn.step.noise,
        "environment_changed": list(turn.changed),
    }


def lines(found: Trends) -> Iterator[str]:
    """The trends for people: those with steps first."""
    if found.branch:
        yield f"branch {found.branch}"
    yield from found.notes
    quiet = [trend for trend in found.trends if not trend.turns]
    for trend in found.trends:
        if trend.turns:
            yield from _stepped(trend)
    if quiet:
        yield f"no step: {counted(len(quiet), 'figure')}"
    for trend in quiet[:_SHOWN]:
        yield f"  {_title(trend)}: {_usual(trend)}"
    if len(quiet) > _SHOWN:
        yield f"  and {len(quiet) - _SHOWN:,} more"


def _title(trend: Trend) -> str:
    device = "" if trend.device == "host" else f" on {trend.device}"
    return f"{trend.nodeid} {trend.counter}{device}"


def _usual(trend: Trend) -> str:
    low, high = min(trend.values), max(trend.values)
    usual = _amount(trend, statistics.median(trend.values))
    count = counted(len(trend.values), "run")
    if low == high:
        return f"always {usual}, {count}"
    return f"{usual} ({_amount(trend, low)} to {_amount(trend, high)}), {count}"


def _amount(trend: Trend, value: float, *, signed: bool = False) -> str:
    try:
        unit = Unit(trend.unit)
    except ValueError:
        return f"{value:{'+' if signed else ''}.4g} {trend.unit}"
    return format_value(value, unit, signed=signed)


def _stepped(trend: Trend) -> Iterator[str]:
    yield f"{_title(trend)}: {len(trend.runs)} runs"
    yield f"  {_strip(trend.values)}"
    for turn in trend.turns:
        step = turn.step
        yield (
            f"  {_amount(trend, step.change, signed=True)} at {_commit(turn)}: "
            f"{_amount(trend, step.before)} -> {_amount(trend, step.after)}"
            f" (noise {_amount(trend, step.noise)})"
        )
        yield f"    first run {turn.first_after.run_id}{_doubt(turn)}"
        if turn.changed:
            yield f"    with it changed: {'; '.join(turn.changed)}"


def _name(run: RunPoint) -> str:
    return run.commit[:_COMMIT] if run.commit else f"run {run.run_id}"


def _commit(turn: Turn) -> str:
    if turn.first_after.commit and turn.first_after.commit == turn.last_before.commit:
        return f"no commit, within the runs of {_name(turn.first_after)}"
    return (
        f"commit {_name(turn.first_after)}"
        if turn.first_after.commit
        else _name(turn.first_after)
    )


def _doubt(turn: Turn) -> str:
    first, last = _name(turn.earliest), _name(turn.latest)
    if first == last:
        return ""
    return f"; by its figures it may be any of {first} to {last}"


def _strip(values: Sequence[float]) -> str:
    """A bar for each stretch of runs: its median between the least and the most."""
    count = min(_WIDTH, len(values))
    means = [
        statistics.median(
            values[i * len(values) // count : (i + 1) * len(values) // count]
        )
        for i in range(count)
    ]
    low, high = min(means), max(means)
    if low == high:
        return _BARS[0] * count
    top = len(_BARS) - 1
    return "".join(_BARS[round((mean - low) / (high - low) * top)] for mean in means)
