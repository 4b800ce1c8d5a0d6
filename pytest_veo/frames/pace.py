"""Keeping a target rate: period error, phase drift, jitter in frames."""

from __future__ import annotations

import dataclasses

import numpy as np

from pytest_veo.frames.series import Float64s
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.series import Int64s


_FIT_POINTS = 400
_FIT_FRAMES = 16


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a series keeps its target rate."""

    target_ns: float
    period_error_ppm: float
    """Mean frame time against the target, in parts per million."""
    phase_error_ns: float
    """The largest distance of a stamp from the grid that starts at the first frame:
    |t[i] - (t[0] + i T)|. Finds a slow wander that no deviation shows; one lost frame
    moves all later ones by T, unless frames carry their numbers."""
    jitter_frames: float
    """Mean |frame time - T| in units of T."""
    vsync_drift_ppm: float
    """How fast the stamps slide along the refreshes, found without counting frames.
    0 where they scatter over more than half a refresh."""
    vsync_slip_s: float
    """Seconds until they have slid past one whole refresh; inf when they stand."""


def keep_pace(series: FrameSeries, target_ns: float) -> Pace | None:
    """Compare a series with its target; None when it has fewer than two stamps."""
    stamps = series.stamps_ns
    if stamps.size < 2:
        return None
    since = stamps - stamps[0]
    phase = _slots(series)
    periods = round(float(phase[-1]))
    phase *= target_ns
    np.subtract(since, phase, out=phase)
    phase_error_ns = max(float(phase.max()), -float(phase.min()))
    # In the same memory: the largest series fill much of it.
    steps = np.subtract(since[1:], since[:-1], out=phase[1:])
    steps -= target_ns
    mean_ns = float(since[-1]) / periods if periods > 0 else 0.0
    drift = _vsync_drift(since, target_ns)
    slip_s = target_ns / abs(drift) / 1e9 if drift else float("inf")
    return Pace(
        target_ns=target_ns,
        period_error_ppm=1e6 * (mean_ns - target_ns) / target_ns,
        phase_error_ns=phase_error_ns,
        jitter_frames=float(np.abs(steps, out=steps).mean() / target_ns),
        vsync_drift_ppm=1e6 * drift,
        vsync_slip_s=slip_s,
    )


def _slots(series: FrameSeries) -> Float64s:
    """Which slot of the grid each stamp belongs to: its number where it has one."""
    stamps = series.stamps_ns
    sequence = series.sequence
    if sequence is not None and sequence.size == stamps.size:
        slots = np.empty(stamps.size)
        np.subtract(sequence, sequence[0], out=slots)
        return slots
    return np.arange(stamps.size, dtype=np.float64)


def _vsync_drift(since_ns: Int64s, target_ns: float) -> float:
    """Nanoseconds of slide along the refresh in each nanosecond.

    The phase is averaged over stretches as a direction, so that it may go round.
    """
    stretches = min(_FIT_POINTS, since_ns.size // _FIT_FRAMES)
    if stretches < 8:
        return 0.0
    size = since_ns.size // stretches
    used = since_ns[: stretches * size].reshape(stretches, size)[:, :_FIT_FRAMES]
    angle = (used % target_ns) * (2j * np.pi / target_ns)
    direction = np.exp(angle).mean(axis=1)
    if np.median(np.abs(direction)) < 0.5:
        return 0.0
    phase = np.unwrap(np.angle(direction)) / (2 * np.pi) * target_ns
    # Between stretches the phase must not go round unseen.
    if np.abs(np.diff(phase)).max() > target_ns / 4:
        return 0.0
    return float(np.polyfit(used.mean(axis=1), phase, 1)[0])
