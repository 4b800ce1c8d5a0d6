"""The judgement on one test: every series it recorded, sweeps as one table."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from pytest_veo.errors import FramesError
from pytest_veo.errors import MissingDependency
from pytest_veo.frames.baseline import History
from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.budget import OnInconclusive
from pytest_veo.frames.collection import Frames
from pytest_veo.frames.compare import MIN_PAIRS
from pytest_veo.frames.jitter import judge
from pytest_veo.frames.noise import MachineNoise
from pytest_veo.frames.noise import describe_null
from pytest_veo.frames.noise import null_loop
from pytest_veo.frames.record import plain
from pytest_veo.frames.record import record_of
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.stats import FrameStats
from pytest_veo.frames.stats import frame_stats
from pytest_veo.frames.sweep import Row
from pytest_veo.frames.sweep import Sweep
from pytest_veo.frames.sweep import draw_table
from pytest_veo.frames.sweep import row_of
from pytest_veo.frames.text import explain
from pytest_veo.frames.text import headline
from pytest_veo.frames.variants import Variant
from pytest_veo.frames.variants import cell_of
from pytest_veo.frames.verdict import FrameVerdict
from pytest_veo.frames.verdict import Outcome


Budgets = Mapping[str | None, JitterBudget]
"""By series name; None holds for every series that is not named."""

NO_FRAMES = (
    "veo_jitter: no frame was recorded, so nothing is known of their pace: request "
    "the fixture veo_frames and call tick() once a frame"
)

ONLY_COMPARED = (
    "veo_jitter: the runs of turns() are compared with each other and not held to this "
    "budget, and no other frame was recorded: take the marker off, or record a series"
)
_ALSO = 6
_RECORDER = "recorder"
_OPEN = (Outcome.INCONCLUSIVE, Outcome.NOT_ENOUGH_FRAMES)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FrameReport:
    """What a test's frames came to."""

    records: list[dict[str, Any]]
    """One plain dict a series, then one for each sweep and comparison."""
    broken: bool
    """Whether a series is over its budget, or open where its budget says fail."""
    failure: str = ""
    """The text for a failed test."""
    section: str = ""
    """What a passed test still has to tell."""
    failed_outright: bool = False
    """Whether a series is over its budget: more knowledge of the machine may help."""


def judge_test(
    frames: Frames,
    budgets: Budgets,
    *,
    noise: MachineNoise | None = None,
    history: Callable[[str], History] = lambda series: {},
    variant: Variant | None = None,
) -> FrameReport:
    """Judge every series of a test; those without a budget are only described.

    Args:
        frames: what was recorded.
        budgets: what may be done.
        noise: what the machine added meanwhile.
        history: figures of earlier runs, by series name.
        variant: which cell of a parametrized test this is.

    Raises:
        FramesError: a series cannot be judged by its budget, or be read at all; or a
            budget is for a series that was not recorded.
        BadSetting: a limit is finer than the clock can tell.
    """
    recorded = frames.recorded()
    if not recorded and budgets:
        failure = ONLY_COMPARED if frames.compared else NO_FRAMES
        return FrameReport(records=_comparisons(frames), broken=True, failure=failure)
    missing = [name for name in budgets if name is not None and name not in recorded]
    if missing:
        raise FramesError(_not_recorded(missing[0], list(recorded)))
    judged: dict[str, FrameVerdict | FrameStats] = {}
    for name, series in recorded.items():
        budget = _budget_for(name, budgets)
        if budget is None:
            judged[name] = frame_stats(series)
            continue
        live = noise if _is_live(series) else None
        if live is not None and frames.is_of_other_threads(name):
            live = live.of_other_threads(series.span_ns)
        runs = history(name) if budget.baseline else {}
        judged[name] = judge(series, budget, noise=live, history=runs)
    rows = [_rows(sweep, judged) for sweep in frames.sweeps]
    records = [
        _record(recorded[name], each, budgets, variant) for name, each in judged.items()
    ]
    records += [{"sweep": plain(table), "text": draw_table(table)} for table in rows]
    compared = _comparisons(frames)
    tables = [draw_table(table) for table in rows]
    tables += [str(comparison["text"]) for comparison in compared]
    return _sum_up(records + compared, judged, budgets, tables)


def warm_up() -> None:
    """Load what judging needs, so that no test seems to have brought it in."""
    frames = Frames()
    frames.extend(range(0, 400_000_000, 1_000_000))
    budget = JitterBudget(p95_ms=5, max_over=(5, 0.01), max_hitches_per_min=1)
    # What is missing is told by the test that needs it.
    with contextlib.suppress(MissingDependency):
        judge_test(frames, {None: budget}, noise=describe_null(null_loop(2_000_000)))


def warm_up_comparing() -> None:
    """The same for runs that are compared with each other."""
    frames = Frames()
    turns = frames.turns("a", "b", pairs=MIN_PAIRS)
    for place, (_, run) in enumerate(turns):
        run.extend(range(0, 100_000, 1000 + place))
    with contextlib.suppress(MissingDependency):
        turns.compare()
        judge_test(frames, {})


def describe_test(
    frames: Frames, budgets: Budgets, variant: Variant | None = None
) -> FrameReport:
    """The figures of a test that failed by itself: its frames are not judged."""
    records = [
        _record(each, frame_stats(each), budgets, variant)
        for each in frames.recorded().values()
    ]
    return FrameReport(records=records + _comparisons(frames), broken=False)


def _record(
    series: FrameSeries,
    judged: FrameVerdict | FrameStats,
    budgets: Budgets,
    variant: Variant | None,
) -> dict[str, Any]:
    record = record_of(series, judged)
    if variant is not None and _budget_for(series.name, budgets) is not None:
        stats = judged.stats if isinstance(judged, FrameVerdict) else judged
        outcome = judged.outcome if isinstance(judged, FrameVerdict) else None
        record["cell"] = cell_of(variant, stats, outcome)
    return record


def _comparisons(frames: Frames) -> list[dict[str, Any]]:
    return [
        {"comparison": plain(comparison), "text": str(comparison)}
        for turns in frames.compared
        for comparison in turns.comparisons
    ]


def _not_recorded(name: str, recorded: list[str]) -> str:
    there = ", ".join(map(repr, recorded[:_ALSO])) or "none"
    return (
        f"series={name!r}: no series of that name was recorded, so nothing is known of "
        f"its pace; there are: {there}"
    )


def _is_live(series: FrameSeries) -> bool:
    """Whether the machine's noise was in these stamps.

    Files have their own machine's; an injected clock is what the test makes of it.
    """
    return series.source == _RECORDER and series.clock is not Clock.INJECTED


def _rows(sweep: Sweep, judged: Mapping[str, FrameVerdict | FrameStats]) -> list[Row]:
    found = []
    for cell in sweep.cells:
        each = judged.get(cell.frames.name)
        if isinstance(each, FrameVerdict):
            found.append(row_of(cell.parameters, each.stats, each.outcome))
        elif each is not None:
            found.append(row_of(cell.parameters, each, None))
    return found


def _sum_up(
    records: list[dict[str, Any]],
    judged: Mapping[str, FrameVerdict | FrameStats],
    budgets: Budgets,
    tables: list[str],
) -> FrameReport:
    verdicts = [each for each in judged.values() if isinstance(each, FrameVerdict)]
    failed = [each for each in verdicts if each.outcome is Outcome.FAIL]
    still_open = [each for each in verdicts if each.outcome in _OPEN]
    fatal = [each for each in still_open if _policy(each, budgets) == "fail"]
    told = [each for each in still_open if _policy(each, budgets) == "warn"]
    broken = failed + fatal
    failure = "\n\n".join([_explain_first(broken), *tables]) if broken else ""
    notes = [f"{each.stats.name}: {note}" for each in verdicts for note in each.notes]
    section = "\n".join([explain(each) for each in told] + notes + tables)
    return FrameReport(
        records=records,
        broken=bool(broken),
        failure=failure,
        section="" if broken else section,
        failed_outright=bool(failed),
    )


def _explain_first(broken: list[FrameVerdict]) -> str:
    """The first in full, a line for each other: a failure is read, not scrolled."""
    first, *others = broken
    lines = [explain(first), *(f"also: {headline(each)}" for each in others[:_ALSO])]
    if len(others) > _ALSO:
        lines.append(f"and {len(others) - _ALSO} more series")
    return "\n".join(lines)


def _policy(verdict: FrameVerdict, budgets: Budgets) -> OnInconclusive:
    budget = _budget_for(verdict.stats.name, budgets)
    return "pass" if budget is None else budget.on_inconclusive


def _budget_for(series: str, budgets: Budgets) -> JitterBudget | None:
    return budgets.get(series, budgets.get(None))
