"""The judge of frame series: limits held against figures with their intervals.

PASS when the upper bound is within the limit, FAIL when the lower bound is above it,
else INCONCLUSIVE. A failure must also be more than the clock's quantum and more than
what the machine itself adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence

from pytest_veo.errors import FramesError
from pytest_veo.frames.baseline import compare_with_baseline
from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.budget import limits_of
from pytest_veo.frames.case import Case
from pytest_veo.frames.case import open_case
from pytest_veo.frames.count_rules import COUNT_RULES
from pytest_veo.frames.count_rules import drop_rate
from pytest_veo.frames.distribution import Ordered
from pytest_veo.frames.noise import MachineNoise
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.stats import FrameStats
from pytest_veo.frames.stats import frame_stats
from pytest_veo.frames.strip import draw_strip
from pytest_veo.frames.time_rules import TIME_RULES
from pytest_veo.frames.verdict import Finding
from pytest_veo.frames.verdict import FrameVerdict
from pytest_veo.frames.verdict import Measure
from pytest_veo.frames.verdict import Outcome
from pytest_veo.frames.verdict import overall


DUPLICATES_TOLD = 0.01
"""Of a larger share of frames that have the stamp of the one before, a note tells."""


def judge(
    series: FrameSeries,
    budget: JitterBudget,
    *,
    noise: MachineNoise | None = None,
    history: Mapping[str, Sequence[float]] | None = None,
) -> FrameVerdict:
    """Hold a series against its budget.

    Args:
        series: the frames, warm-up included.
        budget: what they may do.
        noise: what the machine added, for frames recorded here and now.
        history: statistics of earlier runs, oldest first: `p95_ms` and so on.

    Raises:
        FramesError: the series cannot be judged by this budget: it is sampled, has
            not the event, or lacks what a limit needs.
        BadSetting: a limit is finer than the clock can tell.
    """
    judged = warmed_up(of_event(series, budget), budget)
    if judged.sampled:
        raise FramesError(
            f"{judged.source or judged.name}: a sampled log: rows were taken at an "
            f"interval and most frames are missing, so no jitter can be judged; record "
            f"every frame (MangoHud: log_interval=0)"
        )
    _refuse_a_clock_that_stood_still(judged)
    ordered = Ordered(judged.intervals_ns)
    stats = frame_stats(judged, budget.target_ns, ordered)
    case = open_case(judged, stats, budget, noise, ordered)
    findings, notes = _findings(case, history or {})
    return FrameVerdict(
        outcome=overall(findings),
        findings=findings,
        stats=stats,
        strip=draw_strip(judged.intervals_ns),
        notes=notes,
        noise=noise,
    )


def of_event(series: FrameSeries, budget: JitterBudget) -> FrameSeries:
    """The series of the event that the budget names: its own stamps, or a stage's.

    Raises:
        FramesError: there are no such stamps.
    """
    event = budget.event
    if event is None or event is series.event:
        return series
    of_stage = series.of_stage(event)
    if of_stage is None:
        there = ", ".join([series.event, *(each.event for each in series.stages)])
        raise FramesError(
            f"{series.source or series.name}: the budget is for {event}, the frames "
            f"have {there}"
        )
    return of_stage


def warmed_up(series: FrameSeries, budget: JitterBudget) -> FrameSeries:
    """The series without the frames that the budget leaves out at its start."""
    frames = budget.warmup
    if budget.warmup_ms > 0 and len(series):
        stamps = series.stamps_ns
        begin = stamps[0] + round(budget.warmup_ms * 1e6)
        frames = max(frames, int((stamps < begin).sum()))
    return series.after(frames) if frames else series


def _findings(
    case: Case, history: Mapping[str, Sequence[float]]
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    needed = max(case.budget.min_frames, 2)
    if case.stats.intervals + 1 < needed:
        # Counters, and frames that were hardly ever displayed, tell of drops still.
        tells = case.series.counters or case.stats.frames >= needed
        counted = drop_rate(case) if tells else []
        if counted and limits_of(case.budget) == ("max_drop_rate",):
            return tuple(counted), ()
        return (*counted, _too_few(case, needed)), ()
    found = [finding for rule in (*TIME_RULES, *COUNT_RULES) for finding in rule(case)]
    compared, notes = compare_with_baseline(case, history)
    notes += _tell_of_duplicates(case.stats)
    return (*found, *compared), (*notes, *_warn_of_drops(case, found))


def _refuse_a_clock_that_stood_still(series: FrameSeries) -> None:
    frames = int(series.stamps_ns.size)
    if frames > 1 and series.span_ns == 0:
        raise FramesError(
            f"{series.source or series.name}: all {frames} frames have one stamp: the "
            f"clock stood still, and no frame time can be told"
        )


def _tell_of_duplicates(stats: FrameStats) -> list[str]:
    twice = 0 if stats.spread is None else stats.spread.duplicates
    if twice <= DUPLICATES_TOLD * stats.intervals:
        return []
    return [
        f"{twice} of {stats.intervals} frames have the stamp of the one before: the "
        f"clock's step is too long for them, or frames were written twice"
    ]


def _warn_of_drops(case: Case, findings: list[Finding]) -> list[str]:
    if case.budget.max_drops_per_s is None:
        return []
    warn = case.budget.max_drops_per_s[0]
    return [
        f"{found.about}: {found.estimate:.3g} drops/s (warns at {warn:g})"
        for found in findings
        if found.rule == "max_drops_per_s" and warn < found.estimate <= found.limit
    ]


def _too_few(case: Case, needed: int) -> Finding:
    paced = int(case.series.stamps_ns.size)
    return Finding(
        rule="min_frames",
        outcome=Outcome.NOT_ENOUGH_FRAMES,
        measure=Measure.FRAMES,
        estimate=paced,
        limit=needed,
        low=paced,
        high=paced,
        reason=f"needs {needed} frames",
    )
