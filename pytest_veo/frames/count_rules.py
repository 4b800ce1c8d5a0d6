"""Limits on counts and rates: slow frames, drops, hitches, order, render scale."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pytest_veo.errors import FramesError
from pytest_veo.frames.case import MS
from pytest_veo.frames.case import Case
from pytest_veo.frames.case import blame_for_times
from pytest_veo.frames.case import blame_waiting
from pytest_veo.frames.case import settle
from pytest_veo.frames.confidence import PASS_ALPHA
from pytest_veo.frames.confidence import Bounds
from pytest_veo.frames.confidence import Evidence
from pytest_veo.frames.confidence import count_bounds
from pytest_veo.frames.confidence import frames_needed
from pytest_veo.frames.confidence import rate_bounds
from pytest_veo.frames.confidence import weigh
from pytest_veo.frames.drops import DropKind
from pytest_veo.frames.drops import Drops
from pytest_veo.frames.drops import lost_frames
from pytest_veo.frames.drops import most_within
from pytest_veo.frames.hitches import HITCH_SHARE
from pytest_veo.frames.hitches import NS_PER_MINUTE
from pytest_veo.frames.hitches import Hitches
from pytest_veo.frames.scaling import most_slow_within
from pytest_veo.frames.verdict import Finding
from pytest_veo.frames.verdict import Measure
from pytest_veo.frames.verdict import Outcome
from pytest_veo.units import format_ns


def drop_rate(case: Case) -> list[Finding]:
    """Hold each kind of drop to the rate that is allowed.

    Raises:
        FramesError: the frames tell of no drop of any kind.
    """
    rate = case.budget.max_drop_rate
    if rate is None:
        return []
    if not case.stats.drops:
        raise FramesError(
            f"{case.series.name}: max_drop_rate needs frames that tell of drops: give "
            f"target_fps for missed slots, or record `dropped` or `sequence`"
        )
    return [_one_kind(case, drops, rate) for drops in case.stats.drops]


def _over(case: Case) -> list[Finding]:
    if case.budget.max_over is None:
        return []
    limit_ms, rate = case.budget.max_over
    limit_ns = limit_ms * MS
    over = case.intervals_ns > limit_ns + case.stats.quantum_ns - 1
    quantile = case.ordered.quantile(1 - rate)
    return [
        _settle_rate(
            case,
            rule="max_over",
            count=int(np.count_nonzero(over)),
            evidence=weigh(over),
            limit=rate,
            about=f"frames over {limit_ms:g} ms",
            blame=blame_for_times(case, 1 - rate, limit_ns, quantile),
        )
    ]


def _one_kind(case: Case, drops: Drops, rate: float) -> Finding:
    lost = lost_frames(case.series, drops.kind, case.budget.target_ns)
    evidence = Evidence(drops.total, 1.0, max(1, drops.dropped))
    if lost is not None:
        seen = weigh(lost)
        evidence = Evidence(drops.total, seen.burst, seen.bursts)
    return _settle_rate(
        case,
        rule="max_drop_rate",
        count=drops.dropped,
        evidence=evidence,
        limit=rate,
        about=str(drops),
        blame=_blame_for_drops(case, drops.kind, drops.dropped - rate * drops.total),
    )


def _settle_rate(
    case: Case,
    *,
    rule: str,
    count: int,
    evidence: Evidence,
    limit: float,
    about: str,
    blame: str,
) -> Finding:
    estimate = count / evidence.frames if evidence.frames else 0.0
    if limit == 0:
        # None at all is a statement about these frames: it needs no inference.
        bounds, needed = Bounds(estimate, estimate), 0
    else:
        bounds = rate_bounds(count, evidence, case.fail_alpha)
        needed = frames_needed(1 - limit)
    return settle(
        rule=rule,
        measure=Measure.SHARE,
        estimate=estimate,
        bounds=bounds,
        limit=limit,
        lack=f"needs {needed + 1} frames" if evidence.frames < needed else "",
        about=about,
        blame=blame,
    )


def _drops_per_s(case: Case) -> list[Finding]:
    if case.budget.max_drops_per_s is None:
        return []
    _, critical, window_s = case.budget.max_drops_per_s
    worst = most_within(case.series, case.budget.target_ns, window_s * 1e9)
    if worst is None:
        raise FramesError(
            f"{case.series.name}: max_drops_per_s needs frames that tell when they "
            f"were dropped: give target_fps, or record `dropped` or `sequence`"
        )
    kind, most = worst
    rate = most / window_s
    return [
        settle(
            rule="max_drops_per_s",
            measure=Measure.PER_SECOND,
            estimate=rate,
            bounds=Bounds(rate, rate),
            limit=critical,
            about=f"{kind} in the worst {window_s:g} s",
            blame=_blame_for_drops(case, kind, most - critical * window_s),
        )
    ]


def _blame_for_drops(case: Case, kind: DropKind, surplus: float) -> str:
    """Why drops may be the machine's doing.

    Args:
        case: the series.
        kind: what is meant by a drop.
        surplus: drops above the limit.
    """
    target, noise = case.budget.target_ns, case.noise
    if noise is None or target is None or kind is DropKind.COUNTER:
        return ""
    if noise.frames and noise.max_ns >= target / 2:
        return (
            f"an empty loop was {format_ns(noise.max_ns)} late here, more than half a "
            f"slot"
        )
    return blame_waiting(case, max(surplus, 0.5) * target)


def _hitches(case: Case) -> list[Finding]:
    limit, hitches = case.budget.max_hitches_per_min, case.stats.hitches
    if limit is None or hitches is None:
        return []
    return [
        _settle_per_minute(
            case,
            "max_hitches_per_min",
            hitches.count,
            limit,
            hitches.evidence,
            _blame_for_hitches(case, hitches),
        )
    ]


def _blame_for_hitches(case: Case, hitches: Hitches) -> str:
    spread, noise = case.stats.spread, case.noise
    if noise is None or spread is None:
        return ""
    if noise.frames and noise.max_ns >= HITCH_SHARE * spread.p50_ns:
        return f"an empty loop was {format_ns(noise.max_ns)} late here at most"
    return blame_waiting(case, hitches.excess_ns)


def _settle_per_minute(
    case: Case,
    rule: str,
    count: int,
    limit: float,
    evidence: Evidence,
    blame: str = "",
) -> Finding:
    minutes = case.stats.span_ns / NS_PER_MINUTE
    if minutes == 0:
        return settle(
            rule=rule,
            measure=Measure.PER_MINUTE,
            estimate=0.0,
            bounds=Bounds(0.0, math.inf),
            limit=limit,
            lack="all frames have one stamp",
        )
    bounds, lack = Bounds(count / minutes, count / minutes), ""
    if limit > 0:
        bounds = _per_minute_bounds(case, count, minutes, evidence)
        needed = -math.log(PASS_ALPHA) / limit
        lack = f"needs {needed * 60:.3g} s" if minutes < needed else ""
    return settle(
        rule=rule,
        measure=Measure.PER_MINUTE,
        estimate=count / minutes,
        bounds=bounds,
        limit=limit,
        lack=lack,
        blame=blame,
    )


def _per_minute_bounds(
    case: Case, count: int, minutes: float, evidence: Evidence
) -> Bounds:
    # Events that come in bursts are counted as bursts of their mean size.
    doubt, burst = evidence.frames / evidence.for_fail, evidence.burst
    low = count_bounds(math.floor(count / doubt), case.fail_alpha).low * doubt
    high = count_bounds(math.ceil(count / burst)).high * burst
    return Bounds(low / minutes, high / minutes)


def _order(case: Case) -> list[Finding]:
    limit, order = case.budget.max_order_error, case.stats.order
    if limit is None:
        return []
    if order is None:
        raise FramesError(
            f"{case.series.name}: max_order_error needs frames with numbers: record "
            f"them with `sequence`"
        )
    error = order.max_error_frames
    return [
        settle(
            rule="max_order_error",
            measure=Measure.FRAMES,
            estimate=error,
            bounds=Bounds(error, error),
            limit=limit,
        )
    ]


def _scaling(case: Case) -> list[Finding]:
    budget, scaling = case.budget, case.stats.scaling
    if budget.max_scale_switches_per_min is None and budget.min_scale is None:
        return []
    if scaling is None:
        raise FramesError(
            f"{case.series.name}: limits on the render scale need frames that carry "
            f"it: record them with `render_scale`"
        )
    found = []
    if budget.min_scale is not None:
        low = scaling.lowest < budget.min_scale
        found.append(
            Finding(
                rule="min_scale",
                outcome=Outcome.FAIL if low else Outcome.PASS,
                measure=Measure.SCALE,
                estimate=scaling.lowest,
                limit=budget.min_scale,
                low=scaling.lowest,
                high=scaling.lowest,
            )
        )
    if budget.max_scale_switches_per_min is not None:
        rule, limit = "max_scale_switches_per_min", budget.max_scale_switches_per_min
        evidence = Evidence(case.stats.frames, 1.0, max(1, scaling.switches))
        found.append(_settle_per_minute(case, rule, scaling.switches, limit, evidence))
    return found


def _slow_in_window(case: Case) -> list[Finding]:
    limit_ms, window = case.budget.drop_threshold_ms, case.budget.adaptive_window
    if limit_ms is None or window is None:
        return []
    limit_ns = limit_ms * MS
    slow = most_slow_within(
        case.intervals_ns, limit_ns + case.stats.quantum_ns - 1, window
    )
    return [
        settle(
            rule="max_slow_in_window",
            measure=Measure.FRAMES,
            estimate=slow,
            bounds=Bounds(slow, slow),
            limit=case.budget.max_slow_in_window,
            about=f"over {limit_ms:g} ms in {window} frames on end",
            blame=blame_for_times(case, 1.0, limit_ns, float(case.intervals_ns.max())),
        )
    ]


COUNT_RULES: tuple[Callable[[Case], list[Finding]], ...] = (
    _over,
    drop_rate,
    _drops_per_s,
    _hitches,
    _order,
    _scaling,
    _slow_in_window,
)
