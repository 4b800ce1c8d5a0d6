"""`veo merge A B -o C`: bring the runs of several archives together."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from pytest_veo.archive.merge import Merged
from pytest_veo.archive.merge import merge
from pytest_veo.cli.answer import answer
from pytest_veo.cli.progress import track


def add_parser(subparsers: Any) -> None:
    """Add `merge` to the `veo` command.

    Args:
        subparsers: what `ArgumentParser.add_subparsers` returned.
    """
    parser = subparsers.add_parser(
        "merge",
        help="bring the runs of several archives together in one",
        description="Copies every run; a run that is there already gets the records "
        "that it lacks.",
    )
    parser.add_argument(
        "archives", metavar="ARCHIVE", nargs="+", help="folders or URLs"
    )
    parser.add_argument(
        "-o", "--output", metavar="ARCHIVE", required=True, help="where they go"
    )
    parser.add_argument(
        "--join-shards",
        action="store_true",
        help="make one run of the shards of one suite: those whose commit, branch, CI "
        "job and number of shards agree",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Copy, and tell what was.

    Returns:
        0.

    Raises:
        ArchiveError: a source is no archive, or the target cannot be written.
        CommandError: some runs could not be read; the others are copied.
    """
    found = merge(
        args.archives, args.output, joins_shards=args.join_shards, track=track
    )
    answer(args, found._asdict, _lines(found), found.refused)
    return 0


def _lines(found: Merged) -> Iterator[str]:
    yield (
        f"{len(found.added)} added, {len(found.completed)} completed, "
        f"{found.same} were there already"
    )
    yield from (f"joined of shards: {run_id}" for run_id in found.joined)
    yield from (f"not joined: {reason}" for reason in found.apart)
