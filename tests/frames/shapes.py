"""Series of known shape for the tests of this room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import Float64s
from pytest_veo.frames.series import FrameSeries


MS = 1_000_000


def of_ms(intervals_ms: Sequence[float] | Float64s, **fields: Any) -> FrameSeries:
    """A series of these frame times, stamped by a clock that resolves 1 ns."""
    fields.setdefault("event", Event.PRESENT)
    fields.setdefault("clock", Clock.INJECTED)
    fields.setdefault("resolution_ns", 1)
    intervals_ns = np.rint(np.asarray(intervals_ms, float) * MS).astype(np.int64)
    return FrameSeries.from_intervals(intervals_ns, **fields)


def steady(frames: int, *, seed: int = 0, mean_ms: float = 16.667) -> Float64s:
    """Frame times around a mean, with 0.3 ms of independent noise."""
    return np.random.default_rng(seed).normal(mean_ms, 0.3, frames)


def with_beat(
    intervals_ms: Float64s, period_ms: float = 1000.0, extra_ms: float = 8.0
) -> Float64s:
    """The same frames with one of them longer in every period."""
    longer = intervals_ms.copy()
    now_ms, next_ms = 0.0, 0.37 * period_ms
    for place, frame_ms in enumerate(intervals_ms):
        now_ms += frame_ms
        if now_ms >= next_ms:
            longer[place] += extra_ms
            now_ms += extra_ms
            next_ms += period_ms
    return longer


def spiked(count: int, every: int, spike_ms: float = 30.0) -> FrameSeries:
    """Frames of 16 ms of which every so many-th is longer."""
    frames = np.full(count, 16.0)
    frames[every // 2 :: every] = spike_ms
    return of_ms(frames)
