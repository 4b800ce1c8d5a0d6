"""How each counter went in earlier runs of the same archive."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import NamedTuple

from pytest_veo.archive.query import Engine
from pytest_veo.archive.store import run_ids
from pytest_veo.archive.track import no_track


if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_veo.archive.track import Track


RUNS = 30
"""Earlier runs that are shown unless told otherwise."""
Key = tuple[str, str, str]
"""Node id, counter, device."""


class Past(NamedTuple):
    """Growth over a test's first run, in earlier runs."""

    run_ids: tuple[str, ...] = ()
    """Oldest first."""
    growth: Mapping[Key, Mapping[int, int]] = {}
    """By test and counter, then by the place of the run in `run_ids`."""
    unread: tuple[str, ...] = ()


def read_past(
    archive: str | Path, run_id: str, runs: int = RUNS, track: Track = no_track
) -> Past:
    """What the runs before one of an archive measured.

    Args:
        archive: a folder, or any URL that fsspec knows.
        run_id: the run that is shown.
        runs: how many of the latest runs before it.
        track: shows how far it has come.

    Raises:
        ArchiveError: no archive at this place.
    """
    earlier = tuple(each for each in run_ids(archive) if each < run_id)[-runs:]
    if not earlier or not runs:
        return Past()
    engine = Engine(archive, runs=earlier, track=track)
    rows = engine.table("counters")
    names = ("nodeid", "counter", "device", "run_id", "growth")
    columns = [rows[name].tolist() for name in names]
    places = {name: place for place, name in enumerate(earlier)}
    return Past(
        run_ids=earlier,
        growth=_gathered(zip(*columns, strict=True), places),
        unread=tuple(engine.unread),
    )


def _gathered(
    rows: Iterable[tuple[str, str, str, str, int]], places: Mapping[str, int]
) -> dict[Key, dict[int, int]]:
    found: dict[Key, dict[int, int]] = {}
    for nodeid, counter, device, run_id, growth in rows:
        key = nodeid, counter, device
        found.setdefault(key, {})[places[run_id]] = int(growth)
    return found
