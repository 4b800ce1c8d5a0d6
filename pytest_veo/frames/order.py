"""Frames that carry numbers: out of order, twice, and how far behind."""

from __future__ import annotations

import dataclasses

import numpy as np

from pytest_veo.frames.series import FrameSeries


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the frames' own numbers say."""

    max_error_frames: int
    """The furthest any frame is from its place when frames are put in order."""
    out_of_order: int
    """Frames that come after one with a higher number."""
    repeated: int
    """Frames whose number came before."""
    delay_frames: int | None
    """Frames behind the target rate at the end: slots gone by less numbers gone by.
    None without a target."""
    max_delay_frames: int | None
    """The most frames behind at any time."""


def check_order(series: FrameSeries, target_ns: float | None) -> Order | None:
    """What the numbers say; None when the frames carry none."""
    sequence = series.sequence
    if sequence is None or sequence.size == 0:
        return None
    ranks = np.argsort(np.argsort(sequence, kind="stable"), kind="stable")
    error = int(np.abs(ranks - np.arange(sequence.size)).max())
    highest = np.maximum.accumulate(sequence)
    delay = max_delay = None
    if target_ns is not None:
        slots = np.rint((series.t_ns - series.t_ns[0]) / target_ns)
        behind = slots - (highest - highest[0])
        delay, max_delay = int(behind[-1]), int(behind.max())
    return Order(
        max_error_frames=error,
        out_of_order=int(np.count_nonzero(sequence < highest)),
        repeated=int(sequence.size - np.unique(sequence).size),
        delay_frames=delay,
        max_delay_frames=max_delay,
    )
