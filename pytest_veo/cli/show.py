"""`veo show ARCHIVE [RUN]`: what an archived run found."""

from __future__ import annotations

import argparse
from collections import Counter as Tally
from typing import TYPE_CHECKING
from typing import Any

from pytest_veo.archive.store import load_run
from pytest_veo.cli.answer import answer
from pytest_veo.cli.progress import track
from pytest_veo.cli.run_named import add_run
from pytest_veo.cli.run_named import run_named
from pytest_veo.report.failure import headline
from pytest_veo.units import Unit
from pytest_veo.units import counted
from pytest_veo.units import format_ns
from pytest_veo.units import format_value
from pytest_veo.verdict import Outcome


if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Sequence

    from pytest_veo.archive.record import CounterRecord
    from pytest_veo.archive.record import Record
    from pytest_veo.archive.record import RunHeader
    from pytest_veo.archive.store import Run
    from pytest_veo.verdict import Verdict


_LARGEST = 3
"""Tests shown for each counter."""
_LISTED = {
    Outcome.LEAK: "leaks",
    Outcome.OVER_BUDGET: "over budget",
    Outcome.ALLOWED: "allowed leaks",
    Outcome.COLLECTABLE: "freed by the cyclic collector only",
    Outcome.RETENTION: "retention",
    Outcome.UNCONFIRMED: "suspected, not confirmed",
    Outcome.NOT_JUDGED: "not judged",
}


def add_parser(subparsers: Any) -> None:
    """Add `show` to the `veo` command.

    Args:
        subparsers: what `ArgumentParser.add_subparsers` returned.
    """
    parser = subparsers.add_parser(
        "show",
        help="print an archived run",
        description="Prints the last run of an archive, or the one that is named.",
    )
    add_run(parser)
    parser.add_argument(
        "--json", action="store_true", help="print all of it as one JSON object"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read the run and print it.

    Returns:
        0.

    Raises:
        ArchiveError: no archive, no such run, or no header that can be read.
        CommandError: some records could not be read; the others are printed.
    """
    archive, run_id = run_named(args.archive, args.run_id)
    found = load_run(archive, run_id, track=track)
    answer(args, lambda: _document(found), lines(found), found.unread)
    return 0


def _document(found: Run) -> dict[str, Any]:
    return {
        "run": found.header.to_dict(),
        "records": [record.to_dict() for record in found.records],
        "unread": list(found.unread),
    }


def lines(found: Run) -> Iterator[str]:
    """The run for people."""
    yield from _head(found.header)
    yield _totals(found.records)
    for outcome, title in _LISTED.items():
        rows = [r for r in found.records if r.verdict.outcome is outcome]
        if rows:
            yield f"{title}: {len(rows)}"
            yield from (f"  {_told(record)}" for record in sorted(rows, key=_size))
    if found.header.fixtures:
        yield f"fixtures that did not give back: {len(found.header.fixtures)}"
    for name, verdict in found.header.fixtures:
        yield f"  {_line(name, verdict)}"
    yield from _measured(found.header)
    yield from _growth(found.records)


def _head(header: RunHeader) -> Iterator[str]:
    end = header.finished_at or "never: it was ended from outside, or still runs"
    yield f"run {header.run_id}"
    yield f"  started {header.started_at}, finished {end}"
    known = dict(header.environment)
    where = [known[name] for name in ("system", "machine") if name in known]
    if "python" in known:
        where.append(f"Python {known['python']}")
    yield f"  on {', '.join(where) or 'a machine that was not described'}"


def _totals(records: Sequence[Record]) -> str:
    if not records:
        return "no test has finished"
    tally = Tally(record.verdict.outcome for record in records)
    parts = [
        f"{tally[outcome]} {outcome.value}" for outcome in Outcome if tally[outcome]
    ]
    took = format_ns(sum(record.duration_ns for record in records))
    return f"{counted(len(records), 'test')} in {took}: {', '.join(parts)}"


def _size(record: Record) -> tuple[float, str]:
    findings = record.verdict.findings
    return -max((f.growth for f in findings), default=0), record.nodeid


def _told(record: Record) -> str:
    return _line(record.nodeid, record.verdict)


def _line(name: str, verdict: Verdict) -> str:
    if not verdict.findings:
        return f"{name}: {verdict.reason or verdict.outcome.value}"
    reason = f", {verdict.reason}" if verdict.reason else ""
    return f"{name}: {headline(verdict)}{reason}"


def _measured(header: RunHeader) -> Iterator[str]:
    if header.watched:
        yield f"watched: {', '.join(header.watched)}"
    elif header.finished_at:
        yield "watched: NOTHING"
    if header.not_watched:
        yield f"not watched: {len(header.not_watched)}"
        yield from (f"  {trouble}" for trouble in header.not_watched)


def _growth(records: Sequence[Record]) -> Iterator[str]:
    rows: dict[tuple[str, str], list[tuple[CounterRecord, str]]] = {}
    for record in records:
        for counter in record.counters:
            if counter.growth > 0:
                key = counter.counter, counter.device
                rows.setdefault(key, []).append((counter, record.nodeid))
    if rows:
        yield "largest growth over a test's first run:"
    for (name, device), grown in sorted(rows.items()):
        yield f"  {name}" if device == "host" else f"  {name} on {device}"
        grown.sort(key=lambda row: (-row[0].growth, row[1]))
        for counter, nodeid in grown[:_LARGEST]:
            amount = format_value(counter.growth, Unit(counter.unit), signed=True)
            yield f"    {amount:>10}  {nodeid}"
