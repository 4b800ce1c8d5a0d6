"""Time inside a frame: from stage to stage, to the next refresh, and over a wire."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from pytest_veo.errors import FramesError
from pytest_veo.frames.distribution import quantiles
from pytest_veo.frames.series import CHUNK
from pytest_veo.frames.series import MISSING_NS
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.series import Int64s
from pytest_veo.frames.series import StageStamps


PIPELINE = (
    Event.VSYNC,
    Event.CPU_START,
    Event.SUBMIT,
    Event.ENQUEUE,
    Event.GPU_START,
    Event.GPU_END,
    Event.PRESENT,
    Event.FRAME,
    Event.DISPLAY,
    Event.SEND,
    Event.RECEIVE,
    Event.DECODE,
)
"""The order in which a frame goes through its stages."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StageLatency:
    """Time from one stage of a frame to another, in nanoseconds."""

    start: Event
    end: Event
    """`vsync` when it is the next refresh that is waited for."""
    frames: int
    """Frames that reached both."""
    p50_ns: float
    p95_ns: float
    p99_ns: float
    max_ns: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AnimationError:
    """What a frame shows against when it is shown, in nanoseconds.

    For each frame: the step of its content less the step of its stamp. Positive: its
    content had moved further than the time, so it was shown too soon.
    """

    mean_abs_ns: float
    p95_abs_ns: float
    max_abs_ns: float


def latencies(
    series: FrameSeries, vsync_ns: float | None = None
) -> tuple[StageLatency, ...]:
    """From each stage to the next one, from the first to the last, and to a refresh.

    Args:
        series: frames with stages.
        vsync_ns: time between refreshes; with a series of displays it gives the wait
            from every stage to the next refresh.

    Raises:
        FramesError: two stages were stamped by different clocks.
    """
    stages = _in_order(series)
    if len(stages) < 2:
        return ()
    pairs = list(itertools.pairwise(stages))
    if len(stages) > 2:
        pairs.append((stages[0], stages[-1]))
    found = [_between(series, start, end) for start, end in pairs]
    display = series.stage(Event.DISPLAY)
    if vsync_ns is not None and display is not None:
        found += [
            _to_refresh(series, stage, display, vsync_ns)
            for stage in stages
            if stage.event is not Event.DISPLAY
        ]
    return tuple(each for each in found if each is not None)


def interarrival_jitter_ns(series: FrameSeries) -> float | None:
    """RFC 3550's jitter at the last frame, from `send` and `receive` stamps.

    The two clocks may differ: only differences within each are used. None unless both
    are there for two frames.
    """
    sent, received = series.stage(Event.SEND), series.stage(Event.RECEIVE)
    if sent is None or received is None:
        return None
    both = (sent.t_ns != MISSING_NS) & (received.t_ns != MISSING_NS)
    transit = received.t_ns[both] - sent.t_ns[both]
    if transit.size < 2:
        return None
    # J += (|D| - J) / 16 is a first-order filter, in closed form: each |D| counts
    # with a weight that shrinks by 15/16 a frame. 1024 frames on it is below 1e-28.
    steps = np.abs(np.diff(transit))[-1024:].astype(float)
    weights = (15 / 16) ** np.arange(steps.size)[::-1] / 16
    return float(np.dot(steps, weights))


def animation_error(series: FrameSeries) -> AnimationError | None:
    """Content steps against stamp steps; None when frames carry no animation time."""
    if series.animation_ns is None or len(series) < 2:
        return None
    # The step of the difference is the difference of the steps, and made in one go.
    ahead = series.animation_ns - series.t_ns
    if series.dropped is not None:
        ahead = ahead[~series.dropped]
    if ahead.size < 2:
        return None
    error = np.diff(ahead)
    np.abs(error, out=error)
    mean, most = float(error.mean()), float(error.max())
    (p95,) = quantiles(error, (0.95,))
    return AnimationError(mean_abs_ns=mean, p95_abs_ns=p95, max_abs_ns=most)


def _in_order(series: FrameSeries) -> list[StageStamps]:
    there = {stage.event: stage for stage in series.stages}
    own = series.stage(series.event)
    if own is not None:
        there.setdefault(series.event, own)
    return [there[event] for event in PIPELINE if event in there]


def _between(
    series: FrameSeries, start: StageStamps, end: StageStamps
) -> StageLatency | None:
    start_clock, end_clock = start.clock or series.clock, end.clock or series.clock
    if start_clock is not end_clock:
        if Event.SEND in (start.event, end.event):
            return None
        raise FramesError(
            f"{series.name}: {start.event} is stamped by {start_clock} and {end.event} "
            f"by {end_clock}: bring both to one clock before a latency is taken"
        )
    first, last = start.t_ns, end.t_ns
    if MISSING_NS in (first.min(initial=0), last.min(initial=0)):
        both = (first != MISSING_NS) & (last != MISSING_NS)
        first, last = first[both], last[both]
    return _describe(start.event, end.event, last - first)


def _to_refresh(
    series: FrameSeries, stage: StageStamps, display: StageStamps, vsync_ns: float
) -> StageLatency | None:
    if (stage.clock or series.clock) is not (display.clock or series.clock):
        return None
    waits, found = np.empty(len(series), np.int64), 0
    for start in range(0, len(series), CHUNK):
        part = slice(start, start + CHUNK)
        shown, reached = display.t_ns[part], stage.t_ns[part]
        usable = (shown != MISSING_NS) & (reached != MISSING_NS)
        if series.dropped is not None:
            usable &= ~series.dropped[part]
        # Refreshes are counted from each frame's own display: a grid from the first
        # on would slide away where the display is a little slower than the target.
        wait = (shown - reached)[usable]
        passed = np.rint(np.floor(wait / vsync_ns) * vsync_ns)
        waits[found : found + wait.size] = wait - passed.astype(np.int64)
        found += wait.size
    return _describe(stage.event, Event.VSYNC, waits[:found])


def _describe(start: Event, end: Event, spans_ns: Int64s) -> StageLatency | None:
    if spans_ns.size == 0:
        return None
    frames = int(spans_ns.size)
    most = float(spans_ns.max())
    p50, p95, p99 = quantiles(spans_ns, (0.5, 0.95, 0.99))
    return StageLatency(
        start=start,
        end=end,
        frames=frames,
        p50_ns=p50,
        p95_ns=p95,
        p99_ns=p99,
        max_ns=most,
    )
