"""The frames of earlier runs, as jitter budgets compare with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pytest_veo.archive.place import Place
from pytest_veo.archive.reference import choose
from pytest_veo.archive.reference import parse
from pytest_veo.archive.store import read_raw
from pytest_veo.archive.store import records_of
from pytest_veo.frames.baseline import entry_from_record


if TYPE_CHECKING:
    from pytest_veo.frames.baseline import History


def look_up(
    text: str, archive: str | None, environment: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], History]:
    """Figures of every series in milliseconds, oldest first, by test and series.

    Args:
        text: the reference, as given to `--veo-baseline`.
        archive: the session's.
        environment: runs of others are left out.

    Raises:
        BadSetting: the reference means nothing.
        ArchiveError: the archive or run is not there.
    """
    reference = parse(text, archive, "--veo-baseline")
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for header in choose(reference, environment).headers:
        raw = read_raw(Place(str(reference.archive)), header.run_id)
        for record in records_of(raw):
            if record["test_outcome"] != "passed":
                continue
            for series in record.get("frames", ()):
                if "series" not in series:
                    continue
                own = found.setdefault((record["nodeid"], series["series"]), {})
                for name, value in entry_from_record(series).items():
                    own.setdefault(name, []).append(value)
    return dict(found)
