"""Brings the runs of several archives together in one.

A run that both have is one run: the records that one of them lacks are added. Two runs
that share nothing but the name are told apart by when they began; the second is named
and left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_veo.archive.compact import Track
from pytest_veo.archive.compact import no_track
from pytest_veo.archive.compact import require_tables
from pytest_veo.archive.compact import without
from pytest_veo.archive.lock import locked
from pytest_veo.archive.manifest import read_manifest
from pytest_veo.archive.parquet import run_table
from pytest_veo.archive.place import Place
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.store import RunLines
from pytest_veo.archive.store import list_runs
from pytest_veo.archive.store import read_header
from pytest_veo.archive.store import read_lines
from pytest_veo.archive.table import COLUMNS
from pytest_veo.archive.writer import HEADER
from pytest_veo.archive.writer import RECORDS
from pytest_veo.archive.writer import header_text
from pytest_veo.errors import ArchiveError


class Merged(NamedTuple):
    """What came together."""

    added: tuple[str, ...]
    """Runs that were not there."""
    completed: tuple[str, ...]
    """Runs that were there, with fewer records or without their end."""
    same: int
    """Runs that were there as they are."""
    refused: tuple[str, ...]
    """What could not be read or brought together, with its reason."""


def merge(
    sources: Sequence[str | Path], target: str | Path, *, track: Track = no_track
) -> Merged:
    """Put the runs of some archives into another.

    Args:
        sources: folders, or any URLs that fsspec knows; they stay as they are.
        target: the same; made if it is not there.
        track: shows how far it has come.

    Raises:
        ArchiveError: a source is no archive, or the target cannot be written.
    """
    goal = Place(target)
    # A folder without a header is what a killed copy left.
    there = {
        run_id
        for run_id in (list_runs(goal) if goal.is_folder("runs") else ())
        if goal.exists(f"runs/{run_id}/{HEADER}")
    }
    added: list[str] = []
    completed: list[str] = []
    refused: list[str] = []
    same = 0
    for source in sources:
        place = Place(source)
        for run_id in track(list_runs(place), f"merging {place.url}"):
            try:
                run = _Copy.read(place, run_id)
                if run_id in there:
                    run = _both(_Copy.read(goal, run_id), run)
            except ArchiveError as error:
                refused.append(f"{place.shown(f'runs/{run_id}')}: {error}")
                continue
            if run_id not in there:
                _write(goal, run_id, run)
                added.append(run_id)
            elif run.is_changed:
                _write(goal, run_id, run)
                _remove_tables(goal, run_id)
                completed.append(run_id)
            else:
                same += 1
            there.add(run_id)
    _forget_tables(goal, frozenset(completed))
    return Merged(tuple(added), tuple(completed), same, tuple(refused))


class _Copy(NamedTuple):
    """A run as it is written."""

    header: RunHeader
    lines: RunLines
    is_changed: bool = False

    @classmethod
    def read(cls, place: Place, run_id: str) -> _Copy:
        return cls(read_header(place, run_id), read_lines(place, run_id))


def _both(old: _Copy, new: _Copy) -> _Copy:
    if old.header.started_at != new.header.started_at:
        raise ArchiveError(
            f"another run of this name began at {old.header.started_at}, this one at "
            f"{new.header.started_at}"
        )
    known = set(old.lines.lines)
    more = [line for line in new.lines.lines if line not in known]
    has_end = bool(old.header.finished_at) or not new.header.finished_at
    return _Copy(
        header=old.header if has_end else new.header,
        lines=RunLines((*old.lines.lines, *more)),
        is_changed=bool(more) or not has_end,
    )


def _write(goal: Place, run_id: str, run: _Copy) -> None:
    content = b"".join(line + b"\n" for line in run.lines.lines)
    # The header last: without it there is no run.
    goal.write(f"runs/{run_id}/{RECORDS}", content)
    goal.write(f"runs/{run_id}/{HEADER}", header_text(run.header))


def _forget_tables(goal: Place, completed: frozenset[str]) -> None:
    """Gathered tables do not know what was added: the runs leave them."""
    try:
        is_gathered = not completed.isdisjoint(read_manifest(goal).runs)
    except ArchiveError:
        return  # nobody reads a table that no manifest names
    if is_gathered:
        require_tables()
        with locked(goal, "veo merge"):
            without(goal, completed)


def _remove_tables(goal: Place, run_id: str) -> None:
    """Those beside the run do not know what was added."""
    for table in COLUMNS:
        if goal.exists(run_table(run_id, table)):
            goal.remove(run_table(run_id, table))
