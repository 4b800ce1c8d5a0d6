"""The run that a command is about: the last, or the one that is named."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_veo.archive.store import run_ids
from pytest_veo.archive.writer import HEADER
from pytest_veo.errors import CommandError


def add_run(parser: argparse.ArgumentParser) -> None:
    """Let a command take an archive and, if wanted, a run of it."""
    parser.add_argument(
        "archive",
        metavar="ARCHIVE",
        help="a folder or URL, as given to --veo-archive, or the folder of a run in it",
    )
    parser.add_argument("run_id", metavar="RUN", nargs="?", help="the run's id")


def run_named(archive: str, run_id: str | None) -> tuple[str, str]:
    """The archive and the run's id.

    Args:
        archive: as it was given; may be the folder of a run.
        run_id: as it was given; None: the last.

    Raises:
        ArchiveError: there is no archive at this place.
        CommandError: it has no runs.
    """
    if run_id:
        return archive, run_id
    folder = Path(archive)
    if (folder / HEADER).is_file():
        run_folder = folder.absolute()
        return str(run_folder.parent.parent), run_folder.name
    known = run_ids(archive)
    if not known:
        raise CommandError(f"the archive {archive!r} has no runs yet")
    return archive, known[-1]
