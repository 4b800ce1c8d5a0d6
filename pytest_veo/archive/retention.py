"""Which runs an archive keeps, and how the others go.

A run leaves the tables first, then its folder: whatever interrupts that, no table names
a run that is gone, and no run is half there.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_veo.archive.compact import require_tables
from pytest_veo.archive.compact import without
from pytest_veo.archive.lock import locked
from pytest_veo.archive.manifest import read_manifest
from pytest_veo.archive.parquet import time_of
from pytest_veo.archive.place import DRAFT
from pytest_veo.archive.place import Place
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.store import list_runs
from pytest_veo.archive.store import read_header
from pytest_veo.archive.track import Track
from pytest_veo.archive.track import no_track
from pytest_veo.errors import ArchiveError


_STILL_GOES_ON = datetime.timedelta(days=1)
"""A run without an end that is younger than this may still be written."""


class Limits(NamedTuple):
    """What is kept: whatever one of the two keeps."""

    keep: int | None = None
    """The newest so many runs, however old."""
    older_than: datetime.timedelta | None = None
    """Runs that are not older than this, however many."""


class Pruned(NamedTuple):
    """What was removed."""

    removed: tuple[str, ...]
    kept: int
    unread: tuple[str, ...]
    """Runs whose age nobody knows, and what could not be removed; they are kept."""


def prune(
    url: str | Path,
    limits: Limits,
    *,
    now: datetime.datetime,
    is_trial: bool = False,
    track: Track = no_track,
) -> Pruned:
    """Remove the runs that nothing keeps.

    Args:
        url: a folder, or any URL that fsspec knows.
        limits: what is kept.
        now: what ages are counted from.
        is_trial: only say what would be removed.
        track: shows how far it has come.

    Raises:
        ArchiveError: no archive, one that cannot be written, or another is at it.
        MissingDependency: runs lie in tables, and pyarrow or DuckDB is not installed.
    """
    place = Place(url)
    unread: list[str] = []
    headers: dict[str, RunHeader] = {}
    known = list_runs(place)
    for run_id in track(known, "looking"):
        try:
            headers[run_id] = read_header(place, run_id)
        except ArchiveError as error:
            unread.append(f"{run_id}: {error}")
    doomed = surplus(headers, limits, now)
    if not doomed or is_trial:
        return Pruned(doomed, len(known) - len(doomed), tuple(unread))
    with locked(place, "veo prune"):
        removed = _remove(place, doomed, unread, track)
        _remove_drafts(place)
    return Pruned(removed, len(known) - len(removed), tuple(unread))


def surplus(
    headers: Mapping[str, RunHeader], limits: Limits, now: datetime.datetime
) -> tuple[str, ...]:
    """The runs that nothing keeps, oldest first.

    Args:
        headers: each run's.
        limits: what is kept; without any, everything is.
        now: what ages are counted from.
    """
    if limits.keep is None and limits.older_than is None:
        return ()
    begun = {
        run_id: started
        for run_id, header in headers.items()
        if (started := time_of(header.started_at)) is not None
    }
    oldest_first = sorted(begun, key=lambda run_id: (begun[run_id], run_id))
    newest = oldest_first[-limits.keep :] if limits.keep else []
    kept = set(newest)
    found = []
    for run_id in oldest_first:
        age = now - begun[run_id]
        may_go_on = not headers[run_id].finished_at and age < _STILL_GOES_ON
        is_young = limits.older_than is not None and age <= limits.older_than
        if run_id not in kept and not is_young and not may_go_on:
            found.append(run_id)
    return tuple(found)


def _remove(
    place: Place, doomed: tuple[str, ...], unread: list[str], track: Track
) -> tuple[str, ...]:
    gone = frozenset(doomed)
    try:
        is_gathered = not gone.isdisjoint(read_manifest(place).runs)
    except ArchiveError:
        is_gathered = False  # nobody reads a table that no manifest names
    if is_gathered:
        require_tables()
        without(place, gone)
    removed = []
    for run_id in track(doomed, "removing"):
        try:
            place.remove(f"runs/{run_id}")
        except ArchiveError as error:
            unread.append(str(error))
        else:
            removed.append(run_id)
    return tuple(removed)


def _remove_drafts(place: Place) -> None:
    """What sessions left behind that were killed as they began."""
    if place.folder is None:
        return
    now_s = datetime.datetime.now(tz=datetime.UTC).timestamp()
    for draft in (place.folder / "runs").glob(f"{DRAFT}*"):
        # Another may be quicker to remove it.
        with contextlib.suppress(ArchiveError, OSError):
            if now_s - draft.stat().st_mtime > _STILL_GOES_ON.total_seconds():
                place.remove(f"runs/{draft.name}")
