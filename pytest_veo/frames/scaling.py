"""Dynamic resolution: how often it switches, how low it goes."""

from __future__ import annotations

import dataclasses

import numpy as np

from pytest_veo.frames.hitches import NS_PER_MINUTE
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.series import Int64s


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """What the frames' render scales did."""

    switches: int
    """Changes from one frame to the next."""
    per_minute: float
    lowest: float
    mean: float


def describe_scaling(series: FrameSeries) -> Scaling | None:
    """What the render scales did; None when the frames carry none."""
    scale = series.render_scale
    if scale is None or scale.size == 0:
        return None
    switches = int(np.count_nonzero(scale[1:] != scale[:-1]))
    span_ns = int(series.t_ns[-1] - series.t_ns[0])
    return Scaling(
        switches=switches,
        per_minute=switches * NS_PER_MINUTE / span_ns if span_ns > 0 else 0.0,
        lowest=float(scale.min()),
        mean=float(scale.mean()),
    )


def most_slow_within(intervals_ns: Int64s, limit_ns: float, window: int) -> int:
    """The most frames longer than `limit_ns` in any `window` frames on end."""
    slow = np.concatenate(([0], np.cumsum(intervals_ns > limit_ns)))
    if slow.size <= window:
        return int(slow[-1])
    return int((slow[window:] - slow[:-window]).max())
