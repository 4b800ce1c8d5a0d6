"""The frames of earlier runs, as jitter budgets compare with them."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_veo import options
from pytest_veo.archive.place import Place
from pytest_veo.archive.reference import choose
from pytest_veo.archive.reference import parse
from pytest_veo.archive.store import read_raw
from pytest_veo.archive.store import records_of
from pytest_veo.errors import BadSetting
from pytest_veo.frames.baseline import entry_from_record
from pytest_veo.telemetry import environment


if TYPE_CHECKING:
    import pytest

    from pytest_veo.frames.baseline import History


def earlier(config: pytest.Config, own_key: str) -> Mapping[tuple[str, str], History]:
    """The frames of the runs that a session's `--veo-baseline` names.

    Args:
        config: the session's.
        own_key: the ini key that names a file instead, for the message.

    Raises:
        BadSetting: it names no runs.
        ArchiveError: the archive or run is not there.
    """
    try:
        text, archive = (
            options.text(config, name)[0] for name in ("baseline", "archive")
        )
    except ValueError:
        text = archive = ""  # the plugin that declares them is not loaded
    if not text or text.endswith(".json"):
        raise BadSetting(
            f"the baseline is not named: set {own_key} in the ini file, or name runs "
            "of an archive with --veo-baseline"
        )
    return look_up(text, archive or None, environment.describe())


def look_up(
    text: str, archive: str | None, surroundings: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], History]:
    """Figures of every series in milliseconds, oldest first, by test and series.

    Args:
        text: the reference, as given to `--veo-baseline`.
        archive: the session's.
        surroundings: the environment; runs of others are left out.

    Raises:
        BadSetting: the reference means nothing.
        ArchiveError: the archive or run is not there.
    """
    reference = parse(text, archive, "--veo-baseline")
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for header in choose(reference, surroundings).headers:
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
