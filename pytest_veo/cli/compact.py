"""`veo compact ARCHIVE`: gather runs into tables that are quick to ask."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Iterator
from typing import Any

from pytest_veo.archive.compact import Compacted
from pytest_veo.archive.compact import compact
from pytest_veo.cli.answer import answer
from pytest_veo.cli.progress import track
from pytest_veo.units import counted


def add_parser(subparsers: Any) -> None:
    """Add `compact` to the `veo` command.

    Args:
        subparsers: what `ArgumentParser.add_subparsers` returned.
    """
    parser = subparsers.add_parser(
        "compact",
        help="gather an archive's runs into tables",
        description="Gathers finished runs into sorted Parquet tables, a month each. "
        "The runs stay as they are.",
    )
    parser.add_argument("archive", metavar="ARCHIVE", help="a folder or a URL")
    parser.add_argument(
        "--all",
        action="store_true",
        help="gather runs without an end, too: those that were killed today",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Gather, and tell what was.

    Returns:
        0.

    Raises:
        ArchiveError: no archive, or one that cannot be written.
        CommandError: some of it could not be read; the rest is gathered.
    """
    now = datetime.datetime.now(tz=datetime.UTC)
    found = compact(args.archive, now=now, takes_all=args.all, track=track)
    answer(args, found._asdict, _lines(found), found.unread)
    return 0


def _lines(found: Compacted) -> Iterator[str]:
    months = f" of {', '.join(found.months)}" if found.months else ""
    yield f"gathered {counted(found.runs, 'run')}{months}"
    if found.waiting:
        yield f"not finished, left alone (--all takes them): {len(found.waiting)}"
    yield from (f"  {run_id}" for run_id in found.waiting)
