"""Limits on time: quantiles, the maximum, the deviation, the phase."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from pytest_veo.frames.case import MS
from pytest_veo.frames.case import Case
from pytest_veo.frames.case import blame_for_times
from pytest_veo.frames.case import blame_waiting
from pytest_veo.frames.case import doubt_of_median
from pytest_veo.frames.case import settle_times
from pytest_veo.frames.confidence import Bounds
from pytest_veo.frames.confidence import frames_needed
from pytest_veo.frames.confidence import quantile_ranks
from pytest_veo.frames.confidence import weigh
from pytest_veo.frames.distribution import MAD_SCALE
from pytest_veo.frames.series import Float64s
from pytest_veo.frames.verdict import Finding
from pytest_veo.frames.verdict import Outcome
from pytest_veo.units import format_ns


QUANTILES = (("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99))


def judge_quantile(case: Case, rule: str, share: float, limit_ns: float) -> Finding:
    """Hold a quantile of the frame times to a limit."""
    bounds = case.quantile_bounds(share, limit_ns)
    estimate = case.ordered.quantile(share)
    finding = settle_times(
        case,
        rule=rule,
        estimate_ns=estimate,
        bounds_ns=bounds,
        limit_ns=limit_ns,
        needed=frames_needed(share),
        blame=blame_for_times(case, share, limit_ns, bounds.low),
    )
    doubt = doubt_of_median(case, limit_ns) if share <= 0.5 else ""
    if finding.outcome is Outcome.PASS and doubt:
        return dataclasses.replace(finding, outcome=Outcome.INCONCLUSIVE, reason=doubt)
    return finding


def judge_max(case: Case, rule: str, limit_ns: float) -> Finding:
    """Hold the longest frame to a limit: it was seen, there is nothing to estimate."""
    largest = case.ordered.at(-1)
    return settle_times(
        case,
        rule=rule,
        estimate_ns=largest,
        bounds_ns=Bounds(largest, largest),
        limit_ns=limit_ns,
        blame=blame_for_times(case, 1.0, limit_ns, largest),
    )


def judge_mad(case: Case, rule: str, limit_ns: float) -> Finding:
    """Hold the median absolute deviation to a limit."""
    ordered = case.ordered
    middle = ordered.quantile(0.5)
    away = np.abs(case.intervals_ns - middle)
    evidence = weigh(away * MAD_SCALE > limit_ns)
    low, high = quantile_ranks(0.5, evidence, case.fail_alpha)
    bounds = Bounds(
        -math.inf if low is None else MAD_SCALE * ordered.distance_at(low, middle),
        math.inf if high is None else MAD_SCALE * ordered.distance_at(high, middle),
    )
    return settle_times(
        case,
        rule=rule,
        estimate_ns=MAD_SCALE * ordered.distance_median(middle),
        bounds_ns=bounds,
        limit_ns=limit_ns,
        needed=frames_needed(0.5),
        blame=_blame_for_mad(case, away, limit_ns, bounds.low),
    )


def _quantiles(case: Case) -> list[Finding]:
    found = []
    for rule, share in QUANTILES:
        limit_ms = getattr(case.budget, rule)
        if limit_ms is not None:
            found.append(judge_quantile(case, rule, share, limit_ms * MS))
    return found


def _max(case: Case) -> list[Finding]:
    limit_ms = case.budget.max_ms
    return [] if limit_ms is None else [judge_max(case, "max_ms", limit_ms * MS)]


def _mad(case: Case) -> list[Finding]:
    limit_ms = case.budget.max_mad_ms
    return [] if limit_ms is None else [judge_mad(case, "max_mad_ms", limit_ms * MS)]


def _phase(case: Case) -> list[Finding]:
    limit_ms, pace = case.budget.max_phase_error_ms, case.stats.pace
    if limit_ms is None or pace is None:
        return []
    error, limit = pace.phase_error_ns, limit_ms * MS
    noise = case.noise
    blame = ""
    if noise is not None and noise.frames and error - noise.max_ns <= limit:
        blame = f"an empty loop was {format_ns(noise.max_ns)} late here at most"
    return [
        settle_times(
            case,
            rule="max_phase_error_ms",
            estimate_ns=error,
            bounds_ns=Bounds(error, error),
            limit_ns=limit,
            blame=blame or blame_waiting(case, error - limit),
        )
    ]


def _blame_for_mad(
    case: Case, away_ns: Float64s, limit_ns: float, low_ns: float
) -> str:
    noise = case.noise
    if noise is None:
        return ""
    if noise.frames and low_ns - noise.mad_ns <= limit_ns:
        return f"an empty loop has a MAD of {format_ns(noise.mad_ns)} here"
    over = np.maximum(away_ns - limit_ns / MAD_SCALE, 0).sum()
    return blame_waiting(case, float(over))


TIME_RULES: tuple[Callable[[Case], list[Finding]], ...] = (
    _quantiles,
    _max,
    _mad,
    _phase,
)
