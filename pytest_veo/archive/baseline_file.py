"""A baseline in a file that people review: sorted, one figure a line.

`{"schema": 1, "environment": {...}, "tests": {nodeid: {"host.heap": {...}}}}`. A figure
is `usual` (median), `spread` (robust standard deviation), `most` and `runs` of the runs
it was taken from, in `unit`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

from pytest_veo.archive.baseline import Key
from pytest_veo.archive.baseline import Outcome
from pytest_veo.archive.baseline import Past
from pytest_veo.errors import ArchiveError
from pytest_veo.units import Unit


if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_veo.archive.baseline import Difference


SCHEMA = 1
_UNITS = tuple(unit.value for unit in Unit)


class Baseline(NamedTuple):
    """What a run is compared with."""

    name: str
    """For messages: the file, the run, or how the runs were chosen."""
    environment: tuple[tuple[str, str], ...]
    """What decides whether figures can be compared."""
    figures: Mapping[Key, Past]
    values: Mapping[Key, Sequence[float]] = {}
    """Each run's figure, where the runs themselves are at hand."""


def read(path: Path) -> Baseline:
    """The baseline in a file.

    Raises:
        ArchiveError: it is not there, or is no baseline; the message says where.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArchiveError(
            f"cannot read the baseline {str(path)!r}: {error.strerror or error}"
        ) from error
    except ValueError as error:
        raise ArchiveError(f"{str(path)!r} is no baseline: {error}") from error
    try:
        schema = document["schema"]
        if schema != SCHEMA:
            raise ArchiveError(
                f"{str(path)!r} is a baseline of schema {schema!r}, this reads {SCHEMA}"
            )
        figures = {
            _key(nodeid, name): _past(row)
            for nodeid, rows in document["tests"].items()
            for name, row in rows.items()
        }
        environment = tuple(sorted(_texts(document["environment"]).items()))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArchiveError(
            f"{str(path)!r} is no baseline: {type(error).__name__} {error}"
        ) from error
    return Baseline(str(path), environment, figures)


def _texts(rows: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in rows.items()}


def _key(nodeid: str, name: str) -> Key:
    counter, _, device = name.partition(" on ")
    return Key(nodeid, counter, device or "host")


def _name(key: Key) -> str:
    return key.counter if key.device == "host" else f"{key.counter} on {key.device}"


def _past(row: Mapping[str, Any]) -> Past:
    past = Past(
        usual=float(row["usual"]),
        spread=float(row["spread"]),
        most=float(row["most"]),
        runs=int(row["runs"]),
        unit=str(row["unit"]),
    )
    if past.unit not in _UNITS or past.runs < 1 or past.spread < 0:
        raise ValueError(f"no figure: {dict(row)!r}")
    return past


def write(path: Path, baseline: Baseline) -> None:
    """Put the new file in the old one's place, whole or not at all.

    Raises:
        ArchiveError: it cannot be written, and why.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(text(baseline), encoding="utf-8")
        new.replace(path)
    except OSError as error:
        raise ArchiveError(
            f"cannot write the baseline {str(path)!r}: {error.strerror or error}"
        ) from error


def text(baseline: Baseline) -> str:
    """The file's text: the same figures give the same bytes."""
    tests: dict[str, dict[str, str]] = {}
    for key, past in sorted(baseline.figures.items()):
        tests.setdefault(key.nodeid, {})[_name(key)] = _row(past)
    blocks = [
        f"  {json.dumps(nodeid)}: {{\n"
        + ",\n".join(f"   {json.dumps(name)}: {row}" for name, row in rows.items())
        + "\n  }"
        for nodeid, rows in tests.items()
    ]
    environment = json.dumps(dict(baseline.environment), indent=1, sort_keys=True)
    inner = environment.replace("\n", "\n ")
    body = "{\n" + ",\n".join(blocks) + "\n }" if blocks else "{}"
    return f'{{\n "schema": {SCHEMA},\n "environment": {inner},\n "tests": {body}\n}}\n'


def _row(past: Past) -> str:
    return json.dumps(
        {
            "usual": _short(past.usual),
            "spread": _short(past.spread),
            "most": _short(past.most),
            "runs": past.runs,
            "unit": past.unit,
        }
    )


def _short(value: float) -> float:
    return int(value) if value == int(value) else round(value, 1)


class Update(NamedTuple):
    """What an update makes of a baseline."""

    figures: Mapping[Key, Past]
    new: int
    lower: int
    raised: int
    kept: int
    """Worse figures that were not accepted."""


def ratchet(
    old: Mapping[Key, Past],
    now: Mapping[Key, Past],
    differences: Sequence[Difference],
    *,
    accept: bool,
) -> Update:
    """The figures of a baseline after a run: new ones come in, better ones go down.

    Nothing else moves, so that noise leaves no trace in the file's history.

    Args:
        old: the baseline's.
        now: this run's, with the spread of the runs before it where those are known.
        differences: of the figures that both have.
        accept: let worse figures raise the baseline.
    """
    figures = dict(old)
    new = [key for key in now if key not in old]
    figures.update({key: now[key] for key in new})
    lower = raised = kept = 0
    for difference in differences:
        key = difference.key
        if difference.outcome is Outcome.BETTER:
            figures[key] = _lowered(old[key], now[key])
            lower += 1
        elif difference.outcome is Outcome.WORSE and accept:
            figures[key] = now[key]
            raised += 1
        elif difference.outcome is Outcome.WORSE:
            kept += 1
    return Update(figures, len(new), lower, raised, kept)


def _lowered(old: Past, now: Past) -> Past:
    """The new figure; what it allows never passes what was allowed before."""
    room = max(0.0, old.most - now.usual)
    return now._replace(
        spread=min(now.spread, max(old.spread, room / 5)), most=min(now.most, old.most)
    )
