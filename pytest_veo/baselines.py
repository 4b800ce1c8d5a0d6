"""A session against earlier runs: compared, told, and put into the baseline's file.

Runs where results are shown, as `results` does, and sees each record as it arrives. It
decides when the session ends: only then is it known what merely moved from one test to
another.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING
from typing import Any

import pytest

from pytest_veo import options
from pytest_veo.archive import baseline
from pytest_veo.archive import baseline_file
from pytest_veo.archive import environment_match
from pytest_veo.archive import reference
from pytest_veo.archive.baseline import Outcome
from pytest_veo.archive.baseline_file import Baseline
from pytest_veo.archive.figures import figures_of
from pytest_veo.archive.reference import Reference
from pytest_veo.errors import ArchiveError
from pytest_veo.errors import BadSetting


if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Mapping
    from collections.abc import Sequence

    from pytest_veo.archive.baseline import Difference
    from pytest_veo.archive.baseline import Key
    from pytest_veo.archive.baseline import Limit
    from pytest_veo.archive.baseline import Past
    from pytest_veo.settings import Settings


_SHOWN = 10


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BaselineSettings:
    """What was asked for."""

    reference: Reference
    limits: tuple[Limit, ...]
    update: bool
    accept: bool
    strict: bool
    archive: str | None = None
    """Where earlier runs show how much figures scatter."""


def resolve(config: pytest.Config, settings: Settings) -> BaselineSettings | None:
    """The settings; None where nothing is to be compared.

    Raises:
        BadSetting: an option means nothing, or lacks another.
        ArchiveError: the file that is named is not there or is no baseline.
    """
    text, place = options.text(config, "baseline")
    update = bool(config.getoption("veo_update_baseline"))
    accept = bool(config.getoption("veo_accept"))
    if accept and not update:
        raise BadSetting(
            "--veo-accept: raises a baseline only with --veo-update-baseline"
        )
    limits = baseline.parse_limits(*options.text(config, "baseline_limit"))
    if not text:
        if accept or (update and not _frames_file(config)):
            raise BadSetting(
                "--veo-update-baseline: name the file to update, "
                "--veo-baseline=FILE.json"
            )
        return None
    found = reference.parse(text, settings.archive, place)
    if found.file is not None:
        found = found._replace(file=config.rootpath / found.file)
        _check_file(found, limits, place, update=update)
    elif update:
        raise BadSetting(
            f"--veo-update-baseline: {place} names runs of an archive, which stay as "
            "they are; name a file"
        )
    else:
        reference.check(found)
    return BaselineSettings(
        reference=found,
        limits=limits,
        update=update,
        accept=accept,
        strict=settings.strict,
        archive=settings.archive,
    )


def _frames_file(config: pytest.Config) -> str:
    """The frames' own baseline file, which the plugin of the frames declares."""
    try:
        return str(config.getini("veo_jitter_baseline"))
    except (KeyError, ValueError):
        return ""  # that plugin is not loaded


def _check_file(
    found: Reference, limits: Sequence[Limit], place: str, *, update: bool
) -> None:
    assert found.file is not None
    if any(limit.quantile is not None for limit in limits):
        raise BadSetting(
            f"--veo-baseline-limit: a quantile is taken from runs, and {place} names a "
            "file, which keeps none"
        )
    if found.file.exists():
        baseline_file.read(found.file)
    elif not update:
        raise ArchiveError(
            f"{place}: there is no file {str(found.file)!r}; --veo-update-baseline "
            "makes it"
        )


class BaselineCheck:
    """Gathers a session's figures, and judges them at its end."""

    def __init__(self, config: pytest.Config, settings: BaselineSettings) -> None:
        self.config = config
        self.settings = settings
        self.records: list[Mapping[str, Any]] = []
        self._rows: Mapping[str, str] = {}
        self.result: Result | None = None

    def pytest_veo_record(self, record: Mapping[str, Any]) -> None:
        """Keep what is compared of a test's record, and where it was made."""
        self._rows = record.get("environment_rows") or self._rows
        self.records.append(
            {
                name: record[name]
                for name in ("nodeid", "test_outcome", "counters", "verdict")
            }
        )

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Compare; fail the run where a test is worse."""
        if self.config.option.collectonly or not self.records:
            return
        self.result = judge(self.records, self.settings, self._environment())
        failing = bool(self.result.worse) and not self.settings.accept
        failing |= self.settings.strict and bool(self.result.missing)
        failing |= bool(self.result.trouble)
        if failing and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _environment(self) -> tuple[tuple[str, str], ...]:
        """Of the process that ran the tests, at the end: by then it has its devices."""
        if self._rows:
            return tuple(sorted(self._rows.items()))
        from pytest_veo.archiving import environment_rows
        from pytest_veo.telemetry import environment

        return environment.describe(environment_rows(self.config))

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print what is worse, and what could not be compared."""
        if self.result is None:
            return
        terminalreporter.section("veo baseline")
        for line, is_bad in told(self.result, self.settings):
            terminalreporter.write_line(line, red=is_bad)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a session came to beside its baseline."""

    name: str = ""
    compared: int = 0
    worse: tuple[Difference, ...] = ()
    unsure: tuple[Difference, ...] = ()
    """Worse, but no more than what other tests no longer keep."""
    better: int = 0
    """Figures."""
    new: int = 0
    """Tests that the baseline does not know."""
    not_run: int = 0
    """Tests of the baseline that did not run or were not judged."""
    notes: tuple[str, ...] = ()
    missing: str = ""
    trouble: str = ""
    updated: str = ""


def judge(
    records: Sequence[Mapping[str, Any]],
    settings: BaselineSettings,
    environment: tuple[tuple[str, str], ...],
) -> Result:
    """Compare a session's records with the baseline, and update its file."""
    ref = settings.reference
    now = figures_of(records)
    is_first = ref.file is not None and not ref.file.exists()
    try:
        if is_first:
            looked = reference.Looked(
                Baseline(ref.text, environment_match.decisive(environment), {})
            )
        else:
            looked = reference.look_up(ref, environment)
    except ArchiveError as error:
        return Result(missing=f"NO BASELINE: {error}")
    if looked.baseline is None:
        return Result(missing=looked.missing)
    result, differences = _compared(now, looked.baseline, settings)
    result = dataclasses.replace(result, notes=looked.notes)
    if not settings.update:
        return result
    fresh = _fresh(now, _history(settings.archive, environment))
    return _updated(result, fresh, looked.baseline, differences, settings)


def _history(
    archive: str | None, environment: tuple[tuple[str, str], ...]
) -> Mapping[Key, Sequence[float]]:
    """What earlier runs in the session's own archive show of each figure."""
    if archive is None:
        return {}
    try:
        recent = Reference("recent runs", archive, runs=reference.BRANCH_RUNS)
        looked = reference.look_up(recent, environment)
    except ArchiveError:
        return {}  # the results tell what is wrong with the archive
    return {} if looked.baseline is None else looked.baseline.values


def _fresh(
    now: Mapping[Key, tuple[float, str]], history: Mapping[Key, Sequence[float]]
) -> dict[Key, Past]:
    """This run's figures with the spread that earlier runs had."""
    return {
        key: baseline.Past.of([*history.get(key, ()), value], unit)
        for key, (value, unit) in now.items()
    }


def _compared(
    now: Mapping[Key, tuple[float, str]],
    against: Baseline,
    settings: BaselineSettings,
) -> tuple[Result, list[Difference]]:
    differences = [
        _difference(key, past, against, value, settings.limits)
        for key, (value, _) in now.items()
        if (past := against.past(key)) is not None
    ]
    ran = {key.nodeid for key in now}
    not_run = {k: past for k, past in against.figures.items() if k.nodeid not in ran}
    moved = baseline.moved(differences, not_run, settings.limits)
    worse: list[Difference] = []
    unsure: list[Difference] = []
    for difference in differences:
        if difference.outcome is Outcome.WORSE:
            credit = moved.get(baseline.pool(difference.key), 0.0)
            is_sure = difference.now - difference.allowed > credit
            (worse if is_sure else unsure).append(difference)
    known = against.tests | {key.nodeid for key in against.figures}
    return Result(
        name=against.name,
        compared=len(ran & known),
        worse=tuple(sorted(worse, key=lambda d: (-d.change, d.key))),
        unsure=tuple(sorted(unsure, key=lambda d: (-d.change, d.key))),
        better=sum(d.outcome is Outcome.BETTER for d in differences),
        new=len(ran - known),
        not_run=len(known - ran),
    ), differences


def _difference(
    key: Key, past: Past, against: Baseline, value: float, limits: Sequence[Limit]
) -> Difference:
    limit = baseline.limit_of(key, limits)
    quantile_value = None
    if limit.quantile is not None:
        quantile_value = baseline.quantile_of(against.values[key], limit.quantile)
    return baseline.compare(key, past, value, limit, quantile_value)


def _updated(
    result: Result,
    fresh: Mapping[Key, Past],
    old: Baseline,
    differences: Sequence[Difference],
    settings: BaselineSettings,
) -> Result:
    update = baseline_file.ratchet(
        old, fresh, differences, settings.limits, accept=settings.accept
    )
    changes = (
        f"new tests {update.new}, figures lowered {update.lower}, "
        f"raised {update.raised}"
    )
    kept = f", not accepted {update.kept}" if update.kept else ""
    path = settings.reference.file
    assert path is not None
    try:
        if update.new or update.lower or update.raised or not path.exists():
            baseline_file.write(path, update.baseline)
    except ArchiveError as error:
        return dataclasses.replace(result, trouble=str(error))
    return dataclasses.replace(result, updated=f"{path.name}: {changes}{kept}")


def told(result: Result, settings: BaselineSettings) -> Iterator[tuple[str, bool]]:
    """Lines for people, and whether each is bad news."""
    if result.missing:
        yield result.missing, True
        return
    yield f"compared with {result.name}", False
    yield from ((f"  {note}", False) for note in result.notes)
    title = "worse, and accepted" if settings.accept else "worse than the baseline"
    yield from _listed(title, result.worse, is_bad=not settings.accept)
    yield from _listed(
        "worse, or only moved here from tests that now keep less",
        result.unsure,
        is_bad=False,
    )
    words = [f"tests: {result.compared} compared"]
    for count, what in (
        (result.new, "new"),
        (result.not_run, "of the baseline not run or not judged"),
        (result.better, "figures better" if result.better > 1 else "figure better"),
    ):
        if count:
            words.append(f"{count} {what}")
    yield ", ".join(words), False
    if result.updated:
        yield f"updated {result.updated}", False
    if result.trouble:
        yield f"baseline: {result.trouble}", True


def _listed(
    title: str, rows: Sequence[Difference], *, is_bad: bool
) -> Iterator[tuple[str, bool]]:
    if not rows:
        return
    yield f"{title}: {len(rows)}", is_bad
    for row in rows[:_SHOWN]:
        yield f"  {row.key.nodeid}: {row.text()}", is_bad
    if len(rows) > _SHOWN:
        yield f"  and {len(rows) - _SHOWN} more", is_bad
