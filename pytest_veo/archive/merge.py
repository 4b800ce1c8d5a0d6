"""Brings the runs of several archives together in one, and shards in one run.

A run that both have is one run: the records that one of them lacks are added. Two runs
that share nothing but the name are told apart by when they began; the second is named
and left out.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_veo.archive.compact import require_tables
from pytest_veo.archive.compact import without
from pytest_veo.archive.lock import locked
from pytest_veo.archive.manifest import read_manifest
from pytest_veo.archive.parquet import run_table
from pytest_veo.archive.place import Place
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.shards import Found
from pytest_veo.archive.shards import Suite
from pytest_veo.archive.shards import joined_header
from pytest_veo.archive.shards import joined_lines
from pytest_veo.archive.shards import suites_of
from pytest_veo.archive.store import list_runs
from pytest_veo.archive.store import read_header
from pytest_veo.archive.store import read_lines
from pytest_veo.archive.table import COLUMNS
from pytest_veo.archive.track import Track
from pytest_veo.archive.track import no_track
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
    joined: tuple[str, ...] = ()
    """Runs that were made of shards."""
    apart: tuple[str, ...] = ()
    """Shards that stay runs of their own, with the reason."""


def merge(
    sources: Sequence[str | Path],
    target: str | Path,
    *,
    joins_shards: bool = False,
    track: Track = no_track,
) -> Merged:
    """Put the runs of some archives into another.

    Args:
        sources: folders, or any URLs that fsspec knows; they stay as they are.
        target: the same; made if it is not there.
        joins_shards: make one run of the shards of one suite.
        track: shows how far it has come.

    Raises:
        ArchiveError: a source is no archive, or the target cannot be written.
    """
    places = [Place(source) for source in sources]
    known = {place.url: list_runs(place) for place in places}
    merging = _Merging(Place(target))
    joined: set[str] = set()
    if joins_shards:
        for suite in track(merging.suites(_headers(places, known, track)), "joining"):
            merging.take(suite.run_id, suite.run_id, functools.partial(_join, suite))
            joined |= {run.run_id for run in suite.shards}
    for place in places:
        left = [run_id for run_id in known[place.url] if run_id not in joined]
        for run_id in track(left, f"merging {place.url}"):
            shown = place.shown(f"runs/{run_id}")
            merging.take(run_id, shown, functools.partial(_Copy.read, place, run_id))
    return merging.done()


def _headers(
    places: Sequence[Place], known: Mapping[str, Sequence[str]], track: Track
) -> Iterator[Found]:
    for place in places:
        for run_id in track(known[place.url], f"looking at {place.url}"):
            # What cannot be read is told when it is to be copied.
            with contextlib.suppress(ArchiveError):
                yield Found(place, run_id, read_header(place, run_id))


class _Merging:
    """A target, and what came to it."""

    def __init__(self, goal: Place) -> None:
        self._goal = goal
        # A folder without a header is what a killed copy left.
        self._there = {
            run_id
            for run_id in (list_runs(goal) if goal.is_folder("runs") else ())
            if goal.exists(f"runs/{run_id}/{HEADER}")
        }
        self._added: list[str] = []
        self._completed: list[str] = []
        self._refused: list[str] = []
        self._joined: list[str] = []
        self._apart: list[str] = []
        self._same = 0

    def suites(self, found: Iterable[Found]) -> list[Suite]:
        """Those that can be joined here."""
        suites, apart = suites_of(found)
        self._apart += apart
        for suite in suites:
            ids = {run.run_id for run in suite.shards} & self._there
            if ids:
                reason = "is a run of its own there already"
                self._apart.append(f"{min(ids)}: {reason}")
            else:
                self._joined.append(suite.run_id)
        return [suite for suite in suites if suite.run_id in self._joined]

    def take(self, run_id: str, shown: str, read: Callable[[], _Copy]) -> None:
        """Add a run, or to a run."""
        try:
            run = read()
            if run_id in self._there:
                run = _both(_Copy.read(self._goal, run_id), run)
        except ArchiveError as error:
            self._refused.append(f"{shown}: {error}")
            return
        if run_id not in self._there:
            _write(self._goal, run_id, run)
            self._added.append(run_id)
        elif run.is_changed:
            _write(self._goal, run_id, run)
            _remove_tables(self._goal, run_id)
            self._completed.append(run_id)
        else:
            self._same += 1
        self._there.add(run_id)

    def done(self) -> Merged:
        """What came together."""
        _forget_tables(self._goal, frozenset(self._completed))
        return Merged(
            added=tuple(self._added),
            completed=tuple(self._completed),
            same=self._same,
            refused=tuple(self._refused),
            joined=tuple(self._joined),
            apart=tuple(self._apart),
        )


class _Copy(NamedTuple):
    """A run as it is written."""

    header: RunHeader
    lines: tuple[bytes, ...]
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
    known = set(old.lines)
    more = [line for line in new.lines if line not in known]
    brings_end = bool(new.header.finished_at) and not old.header.finished_at
    is_newer = brings_end or (bool(more) and bool(new.header.finished_at))
    return _Copy(
        header=new.header if is_newer else old.header,
        lines=(*old.lines, *more),
        is_changed=bool(more) or brings_end,
    )


def _join(suite: Suite) -> _Copy:
    lines = [read_lines(run.place, run.run_id) for run in suite.shards]
    return _Copy(joined_header(suite), tuple(joined_lines(suite, lines)))


def _write(goal: Place, run_id: str, run: _Copy) -> None:
    content = b"".join(line + b"\n" for line in run.lines)
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
