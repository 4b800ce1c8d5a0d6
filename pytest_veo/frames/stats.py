"""All that is known of one series, in one value.

Counts and figures only; nothing here decides.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from pytest_veo.frames.distribution import Ordered
from pytest_veo.frames.distribution import Spread
from pytest_veo.frames.distribution import describe_spread
from pytest_veo.frames.distribution import quantiles
from pytest_veo.frames.distribution import quantum_ns
from pytest_veo.frames.drops import Drops
from pytest_veo.frames.drops import count_drops
from pytest_veo.frames.hitches import Hitches
from pytest_veo.frames.hitches import count_hitches
from pytest_veo.frames.hitches import local_median
from pytest_veo.frames.latency import AnimationError
from pytest_veo.frames.latency import StageLatency
from pytest_veo.frames.latency import animation_error
from pytest_veo.frames.latency import interarrival_jitter_ns
from pytest_veo.frames.latency import latencies
from pytest_veo.frames.order import Order
from pytest_veo.frames.order import check_order
from pytest_veo.frames.pace import Pace
from pytest_veo.frames.pace import keep_pace
from pytest_veo.frames.rhythm import Stutter
from pytest_veo.frames.rhythm import Swing
from pytest_veo.frames.rhythm import find_stutter
from pytest_veo.frames.rhythm import find_swing
from pytest_veo.frames.scaling import Scaling
from pytest_veo.frames.scaling import describe_scaling
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import Float64s
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.series import Int64s


WORST_FRAMES = 5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlowFrame:
    """One of the longest frames."""

    index: int
    """Its number in the recording, warm-up frames counted."""
    row: int | None
    """Its line in the file it was read from."""
    at_ns: int
    """Its stamp, from the first frame judged."""
    interval_ns: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FrameStats:
    """What one series shows. Fields are None where the series cannot tell."""

    name: str
    event: Event
    clock: Clock
    source: str
    sampled: bool
    frames: int
    warmup: int
    """Frames taken off the front before."""
    intervals: int
    span_ns: int
    quantum_ns: int
    target_ns: float | None
    spread: Spread | None = None
    """None with fewer than two stamps, as are hitches and what follows."""
    hitches: Hitches | None = None
    stutter: Stutter | None = None
    swing: Swing | None = None
    pace: Pace | None = None
    worst: tuple[SlowFrame, ...] = ()
    drops: tuple[Drops, ...] = ()
    order: Order | None = None
    stages: tuple[StageLatency, ...] = ()
    interarrival_jitter_ns: float | None = None
    animation: AnimationError | None = None
    scaling: Scaling | None = None


def frame_stats(
    series: FrameSeries,
    target_ns: float | None = None,
    ordered: Ordered | None = None,
) -> FrameStats:
    """Everything this series can tell.

    Args:
        series: the frames, warm-up already taken off.
        target_ns: the frame time that is aimed at, where there is one.
        ordered: its intervals in order, where that was done already.

    Raises:
        FramesError: stages of different clocks.
    """
    intervals = series.intervals_ns
    if intervals.size == 0:
        return _bare(series, target_ns)
    ordered = Ordered(intervals) if ordered is None else ordered
    # Before the surroundings of each frame are in memory, too.
    bare = _bare(series, target_ns)
    spread = describe_spread(intervals, ordered)
    local = local_median(intervals)
    mad = _median_distance(intervals, local)
    return dataclasses.replace(
        bare,
        spread=spread,
        hitches=count_hitches(intervals, local, mad),
        stutter=find_stutter(intervals, local, mad, spread.p50_ns),
        swing=find_swing(intervals, local),
        pace=None if target_ns is None else keep_pace(series, target_ns),
        worst=_worst(series, intervals, ordered),
    )


def _bare(series: FrameSeries, target_ns: float | None) -> FrameStats:
    return FrameStats(
        name=series.name,
        event=series.event,
        clock=series.clock,
        source=series.source,
        sampled=series.sampled,
        frames=len(series),
        warmup=series.first_index,
        intervals=max(0, int(series.stamps_ns.size) - 1),
        span_ns=series.span_ns,
        quantum_ns=quantum_ns(series),
        target_ns=target_ns,
        drops=count_drops(series, target_ns),
        order=check_order(series, target_ns),
        stages=latencies(series, target_ns),
        interarrival_jitter_ns=interarrival_jitter_ns(series),
        animation=animation_error(series),
        scaling=describe_scaling(series),
    )


def _median_distance(intervals_ns: Int64s, local_ns: Float64s) -> float:
    away = np.subtract(intervals_ns, local_ns)
    (median,) = quantiles(np.abs(away, out=away), (0.5,))
    return median


def _worst(
    series: FrameSeries, intervals_ns: Int64s, ordered: Ordered
) -> tuple[SlowFrame, ...]:
    most = min(WORST_FRAMES, intervals_ns.size)
    least = ordered.at(-most)
    above = np.flatnonzero(intervals_ns > least)
    alike = np.flatnonzero(intervals_ns == least)[: most - above.size]
    places = np.concatenate((above, alike))
    places = places[np.argsort(-intervals_ns[places], kind="stable")]
    stamps = series.stamps_ns
    paced = np.arange(len(series))
    if series.event is Event.DISPLAY and series.dropped is not None:
        paced = paced[~series.dropped]
    return tuple(
        SlowFrame(
            index=series.first_index + int(paced[place + 1]),
            row=None if series.rows is None else int(series.rows[paced[place + 1]]),
            at_ns=int(stamps[place + 1] - stamps[0]),
            interval_ns=int(intervals_ns[place]),
        )
        for place in places
    )
