"""Single frames that stand out: hitches, and freezes as libwebrtc defines them."""

from __future__ import annotations

import dataclasses

import numpy as np

from pytest_veo.frames.confidence import Evidence
from pytest_veo.frames.confidence import weigh
from pytest_veo.frames.series import CHUNK
from pytest_veo.frames.series import Float64s
from pytest_veo.frames.series import Int64s


NS_PER_MINUTE = 60e9
HITCH_MADS = 6.0
HITCH_SHARE = 0.25

_BLOCK = 32
# libwebrtc, video_quality_observer2.cc
_FREEZE_WINDOW = 30
_FREEZE_MIN_INTERVALS = 5
_FREEZE_FACTOR = 3
_FREEZE_INCREASE_MS = 150


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hitches:
    """Frames longer than those around them, and freezes."""

    count: int
    """Frame times above the local median by more than 6 MADs and 25 %."""
    per_minute: float
    excess_ns: float
    """What all hitches together were longer than their surroundings."""
    freezes: int
    """libwebrtc: at least three times the mean of the last 30 frame times, and
    150 ms above it."""
    freeze_ns: float
    """Sum of the frozen frame times."""
    evidence: Evidence
    """What the frames are worth for the rate of hitches."""


def count_hitches(intervals_ns: Int64s, local_ns: Float64s, mad_ns: float) -> Hitches:
    """Count what stands out.

    Args:
        intervals_ns: frame times, shape (n,), n >= 1.
        local_ns: the usual frame time around each, from `local_median`.
        mad_ns: unscaled median absolute deviation from `local_ns`.
    """
    freezes, freeze_ns = _freezes(intervals_ns)
    standing_out = np.empty(intervals_ns.size, np.bool_)
    for start in range(0, intervals_ns.size, CHUNK):
        part = slice(start, start + CHUNK)
        local = local_ns[part]
        limits = np.maximum(HITCH_SHARE * local, HITCH_MADS * mad_ns)
        np.greater(intervals_ns[part] - local, limits, out=standing_out[part])
    places = np.flatnonzero(standing_out)
    count = int(places.size)
    excess = intervals_ns[places] - local_ns[places]
    span_ns = float(intervals_ns.sum())
    return Hitches(
        count=count,
        per_minute=count * NS_PER_MINUTE / span_ns if span_ns > 0 else 0.0,
        excess_ns=float(excess.sum()),
        freezes=freezes,
        freeze_ns=freeze_ns,
        evidence=weigh(standing_out),
    )


def local_median(intervals_ns: Int64s) -> Float64s:
    """The usual frame time around each frame: shape (n,).

    The median of three neighbouring blocks' medians of 32 frames: a stretch of slow
    frames shorter than half a block, or one slow block, does not move it, a change of
    scene does.
    """
    frames = intervals_ns.size
    blocks = frames // _BLOCK
    if blocks < 3:
        return np.full(frames, float(np.median(intervals_ns)))
    rows = intervals_ns[: blocks * _BLOCK].reshape(blocks, _BLOCK)
    middle = np.partition(rows, _BLOCK // 2, axis=1)[:, _BLOCK // 2].astype(float)
    padded = np.concatenate((middle[1:2], middle, middle[-2:-1]))
    before, own, after = padded[:-2], padded[1:-1], padded[2:]
    low, high = np.minimum(before, own), np.maximum(before, own)
    smooth = np.maximum(low, np.minimum(high, after))
    local = np.empty(frames)
    local[: rows.size].reshape(blocks, _BLOCK)[:] = smooth[:, np.newaxis]
    local[rows.size :] = smooth[-1]
    return local


def _freezes(intervals_ns: Int64s) -> tuple[int, float]:
    # As in libwebrtc the average holds the interval that is judged, counts whole
    # milliseconds and is rounded down.
    least_ms = _FREEZE_INCREASE_MS
    if intervals_ns.size < _FREEZE_MIN_INTERVALS or intervals_ns.max() < least_ms * 1e6:
        return 0, 0.0
    intervals_ms = intervals_ns // 1_000_000
    places = np.flatnonzero(intervals_ms >= least_ms)
    places = places[places >= _FREEZE_MIN_INTERVALS - 1]
    total = np.zeros(intervals_ms.size + 1, np.int64)
    np.cumsum(intervals_ms, out=total[1:])
    starts = np.maximum(places + 1 - _FREEZE_WINDOW, 0)
    average = (total[places + 1] - total[starts]) // (places + 1 - starts)
    limit = np.maximum(_FREEZE_FACTOR * average, average + least_ms)
    frozen = places[intervals_ms[places] >= limit]
    return int(frozen.size), float(intervals_ns[frozen].sum())
