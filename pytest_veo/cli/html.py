"""`veo html ARCHIVE [RUN] -o FILE`: an archived run as one page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from pytest_veo.archive.store import load_run
from pytest_veo.cli.answer import complain
from pytest_veo.cli.progress import track
from pytest_veo.cli.run_named import add_run
from pytest_veo.cli.run_named import run_named
from pytest_veo.errors import CommandError
from pytest_veo.units import counted


if TYPE_CHECKING:
    from pytest_veo.archive.store import Run
    from pytest_veo.report.html.page import Compared
    from pytest_veo.report.html.past import Past


_PAGE = "veo-report.html"


def add_parser(subparsers: Any) -> None:
    """Add `html` to the `veo` command.

    Args:
        subparsers: what `ArgumentParser.add_subparsers` returned.
    """
    parser = subparsers.add_parser(
        "html",
        help="write an archived run as one page",
        description="Writes the last run of an archive, or the one that is named, as "
        "one file that needs nothing else.",
    )
    add_run(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default=_PAGE,
        help=f"the page (default: {_PAGE})",
    )
    parser.add_argument(
        "--past",
        metavar="N",
        type=int,
        default=30,
        help="earlier runs behind the small curves (default: 30); 0: none",
    )
    parser.add_argument(
        "--baseline",
        metavar="REF",
        help="compare with another run: its id, last (the one before), branch:NAME, "
        "median:N or a baseline file",
    )
    parser.add_argument(
        "--limit",
        default="",
        metavar="LIST",
        help="as --veo-baseline-limit (default: 10%%+64 KiB)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read the run and write the page.

    Returns:
        0.

    Raises:
        ArchiveError: no archive, no such run, or no header that can be read.
        BadSetting: a reference or limit that means nothing.
        MissingDependency: jinja2 is not installed, or DuckDB for a comparison.
        CommandError: the page cannot be written, or lacks what could not be read, or
            an argument means nothing.
    """
    from pytest_veo.report.html.page import render
    from pytest_veo.report.html.page import write

    if args.past < 0:
        raise CommandError(f"--past: {args.past} is no number of runs, write 0 or more")
    archive, run_id = run_named(args.archive, args.run_id)
    found = load_run(archive, run_id, track=track)
    page = Path(args.output)
    past = _past(archive, run_id, args.past)
    compared = _compared(args, archive, found)
    try:
        write(
            page,
            render(
                found,
                fixtures=found.header.fixtures,
                past=past,
                compared=compared,
            ),
        )
    except OSError as error:
        reason = error.strerror or error
        raise CommandError(f"cannot write {args.output!r}: {reason}") from error
    print(f"{page}: {counted(len(found.records), 'test')} of {run_id}")
    # Told on the page, too, and seen by those who only make it.
    complain([*found.unread, *(past.unread if past is not None else ())])
    return 0


def _past(archive: str, run_id: str, runs: int) -> Past | None:
    from pytest_veo.report.html.past import read_past

    return read_past(archive, run_id, runs, track) if runs else None


def _compared(args: argparse.Namespace, archive: str, found: Run) -> Compared | None:
    if args.baseline is None:
        return None
    from pytest_veo.archive.baseline import parse_limits
    from pytest_veo.archive.compare import compare
    from pytest_veo.archive.compare import side
    from pytest_veo.archive.reference import parse
    from pytest_veo.report.html.against import comparison_of

    limits = parse_limits(args.limit, "--limit")
    run_id = found.header.run_id
    before = side(parse(args.baseline, archive, "--baseline"), but=run_id, track=track)
    after = side(parse(run_id, archive, "RUN"), track=track)
    known = {record.nodeid for record in found.records}
    return comparison_of(compare(before, after, limits, ()), known)
