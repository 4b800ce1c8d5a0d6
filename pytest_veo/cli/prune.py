"""`veo prune ARCHIVE`: remove old runs."""

from __future__ import annotations

import argparse
import datetime
import re
from collections.abc import Iterator
from typing import Any

from pytest_veo.archive.retention import Limits
from pytest_veo.archive.retention import Pruned
from pytest_veo.archive.retention import prune
from pytest_veo.cli.answer import answer
from pytest_veo.cli.progress import track
from pytest_veo.errors import CommandError
from pytest_veo.units import counted


_AGE = re.compile(r"(\d+)\s*(d|w)")
_DAYS = {"d": 1, "w": 7}
_MOST_DAYS = 365_000
"""A thousand years; dates end somewhere beyond."""


def add_parser(subparsers: Any) -> None:
    """Add `prune` to the `veo` command.

    Args:
        subparsers: what `ArgumentParser.add_subparsers` returned.
    """
    parser = subparsers.add_parser(
        "prune",
        help="remove old runs from an archive",
        description="Removes runs, from the tables too. With both limits a run goes "
        "only if neither keeps it.",
    )
    parser.add_argument("archive", metavar="ARCHIVE", help="a folder or a URL")
    parser.add_argument(
        "--keep", metavar="N", type=_count, help="keep the newest N runs"
    )
    parser.add_argument(
        "--older-than", metavar="AGE", type=_age, help="keep younger runs: 90d, 12w"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only say what would be removed"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.set_defaults(run=run)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of runs")
    return int(text)


def _age(text: str) -> datetime.timedelta:
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no age, write e.g. 90d or 12w")
    days = int(match[1]) * _DAYS[match[2]]
    if days > _MOST_DAYS:
        raise argparse.ArgumentTypeError(f"{text!r} is more than any run's age")
    return datetime.timedelta(days=days)


def run(args: argparse.Namespace) -> int:
    """Remove, and tell what was.

    Returns:
        0.

    Raises:
        ArchiveError: no archive, or one that cannot be written.
        CommandError: no limit was given, or some runs could not be read or removed.
    """
    limits = Limits(keep=args.keep, older_than=args.older_than)
    if limits == Limits():
        raise CommandError("say what is kept: --keep N, --older-than AGE, or both")
    now = datetime.datetime.now(tz=datetime.UTC)
    found = prune(args.archive, limits, now=now, is_trial=args.dry_run, track=track)
    document = {**found._asdict(), "dry_run": args.dry_run}
    lines = _lines(found, is_trial=args.dry_run)
    answer(args, lambda: document, lines, found.unread)
    return 0


def _lines(found: Pruned, *, is_trial: bool) -> Iterator[str]:
    verb = "would remove" if is_trial else "removed"
    yield f"{verb} {counted(len(found.removed), 'run')}, kept {found.kept}"
    if is_trial:
        yield from (f"  {run_id}" for run_id in found.removed)
