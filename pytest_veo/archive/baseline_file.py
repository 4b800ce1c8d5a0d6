"""A baseline in a file that people review: sorted, one figure a line.

`{"schema": 1, "environment": {}, "counters": {}, "tests": {nodeid: {counter: {}}}}`. A
figure is `usual` (median), `spread` (robust standard deviation), `most` and `runs` of
the runs it was taken from. A test's figures that are nothing to speak of are left out:
they count as 0 where `counters` names them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

from pytest_veo.archive.baseline import Key
from pytest_veo.archive.baseline import Outcome
from pytest_veo.archive.baseline import Past
from pytest_veo.archive.baseline import is_worth_a_line
from pytest_veo.errors import ArchiveError
from pytest_veo.units import Unit


if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_veo.archive.baseline import Difference
    from pytest_veo.archive.baseline import Limit


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
    counters: Mapping[str, str] = {}
    """What was read in every test, with its unit: 0 where `figures` has nothing."""
    tests: frozenset[str] = frozenset()
    """Tests that have no figure worth a line."""

    def past(self, key: Key) -> Past | None:
        """What earlier runs showed of a figure; None where that is not known."""
        found = self.figures.get(key)
        unit = self.counters.get(key.name)
        if found is not None or unit is None or key.nodeid not in self.tests:
            return found
        return Past(0.0, 0.0, 0.0, 1, unit)


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
        counters = _texts(document["counters"])
        figures = {
            key_of(nodeid, name): _past(row, counters[name])
            for nodeid, rows in document["tests"].items()
            for name, row in rows.items()
        }
        environment = tuple(sorted(_texts(document["environment"]).items()))
        tests = frozenset(document["tests"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArchiveError(
            f"{str(path)!r} is no baseline: {type(error).__name__} {error}"
        ) from error
    return Baseline(str(path), environment, figures, {}, counters, tests)


def _texts(rows: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in rows.items()}


def key_of(nodeid: str, name: str) -> Key:
    """The figure that a line of a test's is about."""
    counter, _, device = name.rpartition(" on ")
    return Key(nodeid, counter or name, device if counter else "host")


def _past(row: Mapping[str, Any], unit: str) -> Past:
    past = Past(
        usual=float(row["usual"]),
        spread=float(row["spread"]),
        most=float(row["most"]),
        runs=int(row["runs"]),
        unit=unit,
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
    tests: dict[str, dict[str, str]] = {nodeid: {} for nodeid in baseline.tests}
    counters = dict(baseline.counters)
    for key, past in sorted(baseline.figures.items()):
        tests.setdefault(key.nodeid, {})[key.name] = _row(past)
        counters[key.name] = past.unit
    blocks = [_block(nodeid, tests[nodeid]) for nodeid in sorted(tests)]
    body = "{\n" + ",\n".join(blocks) + "\n }" if blocks else "{}"
    return (
        f'{{\n "schema": {SCHEMA},\n'
        f' "environment": {_indented(dict(baseline.environment))},\n'
        f' "counters": {_indented(counters)},\n "tests": {body}\n}}\n'
    )


def _block(nodeid: str, rows: Mapping[str, str]) -> str:
    lines = ",\n".join(f"   {json.dumps(name)}: {row}" for name, row in rows.items())
    return f"  {json.dumps(nodeid)}: " + (f"{{\n{lines}\n  }}" if lines else "{}")


def _indented(rows: Mapping[str, str]) -> str:
    return json.dumps(rows, indent=1, sort_keys=True).replace("\n", "\n ")


def _row(past: Past) -> str:
    return json.dumps(
        {
            "usual": _short(past.usual),
            "spread": _short(past.spread),
            "most": _short(past.most),
            "runs": past.runs,
        }
    )


def _short(value: float) -> float:
    return int(value) if value == int(value) else round(value, 1)


class Update(NamedTuple):
    """What an update makes of a baseline."""

    baseline: Baseline
    new: int
    """Tests."""
    lower: int
    raised: int
    kept: int
    """Worse figures that were not accepted."""


def ratchet(
    old: Baseline,
    now: Mapping[Key, Past],
    differences: Sequence[Difference],
    limits: Sequence[Limit],
    *,
    accept: bool,
) -> Update:
    """A baseline after a run: new tests come in, better figures go down.

    Nothing else moves, so that noise leaves no trace in the file's history.

    Args:
        old: the baseline.
        now: this run's figures.
        differences: of the figures that both have.
        limits: as given; what is far below them is not worth a line.
        accept: let worse figures raise the baseline.
    """
    figures = dict(old.figures)
    known = old.tests | {key.nodeid for key in figures}
    new = {key.nodeid for key in now} - known
    changed = {key: past for key, past in now.items() if old.past(key) is None}
    lower = raised = kept = 0
    for difference in differences:
        key = difference.key
        if difference.outcome is Outcome.BETTER:
            changed[key] = _lowered(difference, now[key])
            lower += 1
        elif difference.outcome is Outcome.WORSE and accept:
            changed[key] = _at(difference.now, now[key])
            raised += 1
        elif difference.outcome is Outcome.WORSE:
            kept += 1
    for key, past in changed.items():
        figures.pop(key, None)
        if is_worth_a_line(key, past, limits):
            figures[key] = past
    counters = {key.name: past.unit for key, past in now.items() if not key.is_per_run}
    updated = old._replace(
        figures=figures, counters={**counters, **old.counters}, tests=known | new
    )
    return Update(updated, len(new), lower, raised, kept)


def _at(value: float, past: Past) -> Past:
    return past._replace(usual=value, most=value)


def _lowered(difference: Difference, now: Past) -> Past:
    """The better figure, with no more room for noise than it had."""
    spread = min(now.spread, difference.past.spread)
    return _at(difference.now, now)._replace(spread=spread)
