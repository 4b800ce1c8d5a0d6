"""One series before the judge: its figures, its budget, and what the machine did."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from pytest_veo.errors import BadSetting
from pytest_veo.frames.budget import TIME_LIMITS
from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.budget import limits_of
from pytest_veo.frames.confidence import FAIL_ALPHA
from pytest_veo.frames.confidence import Bounds
from pytest_veo.frames.confidence import quantile_ranks
from pytest_veo.frames.confidence import weigh
from pytest_veo.frames.distribution import Ordered
from pytest_veo.frames.noise import MachineNoise
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.series import Int64s
from pytest_veo.frames.stats import FrameStats
from pytest_veo.frames.verdict import Finding
from pytest_veo.frames.verdict import Measure
from pytest_veo.frames.verdict import Outcome
from pytest_veo.units import format_ns


MS = 1_000_000
"""Nanoseconds."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """What every rule looks at."""

    series: FrameSeries
    """Warm-up taken off, of the event that is judged."""
    stats: FrameStats
    budget: JitterBudget
    intervals_ns: Int64s
    ordered: Ordered
    """The same intervals, for order statistics."""
    fail_alpha: float
    """How often one rule may fail a series just within its limit: 0.5 % shared out
    among the limits, so that many limits do not add up to a false alarm."""
    noise: MachineNoise | None = None

    def quantile_bounds(self, share: float, limit_ns: float) -> Bounds:
        """The interval of a frame-time quantile, at the confidence of a verdict.

        How much bursts weigh is looked up at the limit, where the decision falls.
        """
        evidence = weigh(self.intervals_ns > limit_ns)
        low, high = quantile_ranks(share, evidence, self.fail_alpha)
        return Bounds(
            -math.inf if low is None else self.ordered.at(low),
            math.inf if high is None else self.ordered.at(high),
        )

    def lateness_ns(self, limit_ns: float) -> float:
        """By how much all frames together are above a limit."""
        return float(np.maximum(self.intervals_ns - limit_ns, 0).sum())


def open_case(
    series: FrameSeries,
    stats: FrameStats,
    budget: JitterBudget,
    noise: MachineNoise | None,
    ordered: Ordered | None = None,
) -> Case:
    """Put a series before the judge.

    Args:
        series: warm-up taken off.
        stats: of the series.
        budget: what it is held to.
        noise: what the machine added.
        ordered: its intervals in order, where that was done already.

    Raises:
        BadSetting: a limit is finer than two steps of the clock.
    """
    _refuse_finer_than_clock(budget, stats.quantum_ns)
    intervals = series.intervals_ns
    return Case(
        series=series,
        stats=stats,
        budget=budget,
        intervals_ns=intervals,
        ordered=Ordered(intervals) if ordered is None else ordered,
        fail_alpha=FAIL_ALPHA / len(limits_of(budget)),
        noise=noise,
    )


def settle_times(
    case: Case,
    *,
    rule: str,
    estimate_ns: float,
    bounds_ns: Bounds,
    limit_ns: float,
    needed: int = 0,
    blame: str = "",
    about: str = "",
) -> Finding:
    """The finding on a time limit.

    Args:
        case: the series.
        rule: the limit's name.
        estimate_ns: the figure.
        bounds_ns: its interval.
        limit_ns: what it is held to.
        needed: intervals without which there is no upper bound.
        blame: why a failure would be the machine's; empty when it would not.
        about: what of.
    """
    slack = case.stats.quantum_ns - 1
    outcome, reason = Outcome.INCONCLUSIVE, ""
    if bounds_ns.low - slack > limit_ns:
        outcome, reason = (Outcome.INCONCLUSIVE, blame) if blame else (Outcome.FAIL, "")
    elif bounds_ns.high + slack <= limit_ns:
        outcome = Outcome.PASS
    elif case.stats.intervals < needed:
        outcome = Outcome.NOT_ENOUGH_FRAMES
        reason = f"needs {needed + 1} frames"
    elif slack and bounds_ns.low - slack <= limit_ns < bounds_ns.high + slack:
        reason = _why_open(case, bounds_ns, limit_ns, slack)
    return Finding(
        rule=rule,
        outcome=outcome,
        measure=Measure.MS,
        estimate=estimate_ns / 1e6,
        limit=limit_ns / 1e6,
        low=bounds_ns.low / 1e6,
        high=bounds_ns.high / 1e6,
        about=about,
        reason=reason,
    )


def blame_for_times(case: Case, share: float, limit_ns: float, low_ns: float) -> str:
    """Why frame times above a limit may be the machine's doing; empty if not.

    Args:
        case: the series.
        share: the quantile that is judged; 1 for the maximum.
        limit_ns: its limit.
        low_ns: its lower bound.
    """
    noise = case.noise
    if noise is None:
        return ""
    excess = noise.excess_ns(share)
    name = "at most" if share == 1 else f"at p{share * 100:g}"
    if noise.frames and low_ns - excess <= limit_ns:
        return f"an empty loop was {format_ns(excess)} late here {name}"
    target = case.budget.target_ns
    if noise.frames and target is not None and target + excess > limit_ns:
        return f"an empty loop breaks it here: {format_ns(excess)} late {name}"
    return blame_waiting(case, case.lateness_ns(limit_ns))


def blame_waiting(case: Case, lateness_ns: float) -> str:
    """Whether waiting for a CPU explains all of a lateness; empty if not."""
    kept = case.noise.kept_ns if case.noise is not None else None
    if kept is None or kept < lateness_ns:
        return ""
    return (
        f"the machine may have kept this thread from a CPU for {format_ns(kept)}, the "
        f"frames are {format_ns(lateness_ns)} over"
    )


def doubt_of_median(case: Case, limit_ns: float) -> str:
    """Why a median within its limit may be the machine's doing; empty if not.

    A loop that was held up makes up for it with short frames, and enough of those
    bring the median down. Then the mean is above the limit all the same.
    """
    surplus = case.stats.span_ns - case.stats.intervals * limit_ns
    if case.noise is None or surplus <= 0:
        return ""
    kept = case.noise.kept_ns
    if kept is not None and surplus <= kept:
        return (
            f"the mean is above the limit, and the machine may have kept this thread "
            f"from a CPU for {format_ns(kept)}"
        )
    if case.noise.frames and case.noise.max_ns > limit_ns / 2:
        return (
            f"the mean is above the limit, and an empty loop was "
            f"{format_ns(case.noise.max_ns)} late here at most"
        )
    return ""


def settle(
    *,
    rule: str,
    measure: Measure,
    estimate: float,
    bounds: Bounds,
    limit: float,
    lack: str = "",
    about: str = "",
    blame: str = "",
) -> Finding:
    """The finding on a limit that is no time.

    Args:
        rule: the limit's name.
        measure: what the figures count.
        estimate: the figure.
        bounds: its interval.
        limit: what it is held to.
        lack: what would have to be there for an upper bound; empty when it is.
        about: what of.
        blame: why a failure would be the machine's; empty when it would not.
    """
    outcome, reason = Outcome.INCONCLUSIVE, ""
    if bounds.low > limit:
        outcome, reason = (Outcome.INCONCLUSIVE, blame) if blame else (Outcome.FAIL, "")
    elif bounds.high <= limit:
        outcome = Outcome.PASS
    elif lack:
        outcome, reason = Outcome.NOT_ENOUGH_FRAMES, lack
    return Finding(
        rule=rule,
        outcome=outcome,
        measure=measure,
        estimate=estimate,
        limit=limit,
        low=bounds.low,
        high=bounds.high,
        about=about,
        reason=reason,
    )


def _why_open(case: Case, bounds_ns: Bounds, limit_ns: float, slack: int) -> str:
    if bounds_ns.low > limit_ns or bounds_ns.high <= limit_ns:
        return f"within one step of the clock ({format_ns(slack + 1)}) of the limit"
    return ""


def _refuse_finer_than_clock(budget: JitterBudget, quantum_ns: int) -> None:
    limits = [(field, getattr(budget, field)) for field in TIME_LIMITS]
    if budget.max_over is not None:
        limits.append(("max_over", budget.max_over[0]))
    for field, limit_ms in limits:
        if limit_ms is not None and limit_ms * MS < 2 * quantum_ns:
            raise BadSetting(
                f"{field}={limit_ms:g} is finer than two steps of the clock "
                f"({format_ns(quantum_ns)} each): these stamps cannot tell. If the "
                f"clock is finer than they look, record with its resolution_ns"
            )
