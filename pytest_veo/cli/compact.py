"""`veo compact ARCHIVE`: gather runs into tables that are quick to ask."""

from __future__ import annotations

import argparse
import datetime
import json
from typing import Any

from pytest_veo.archive.compact import compact
from pytest_veo.cli.progress import track
from pytest_veo.cli.unread import complain


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
    if args.json:
        print(json.dumps(found._asdict(), indent=1))
    else:
        months = f" of {', '.join(found.months)}" if found.months else ""
        print(f"gathered {found.runs} run{'' if found.runs == 1 else 's'}{months}")
        if found.waiting:
            print(f"not finished, left alone (--all takes them): {len(found.waiting)}")
            print("\n".join(f"  {run_id}" for run_id in found.waiting))
    complain(found.unread)
    return 0
