"""Frames that carry numbers: out of order, twice, and how far behind."""

from __future__ import annotations

import dataclasses

import numpy as np

from pytest_veo.frames.series import CHUNK
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.series import Int64s


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
    error = out_of_order = 0
    highest = sequence
    if not is_rising(sequence):
        highest = np.maximum.accumulate(sequence)
        places = np.argsort(sequence, kind="stable")
        error = int(np.abs(places - np.arange(sequence.size)).max())
        out_of_order = int(np.count_nonzero(sequence < highest))
    delay = max_delay = None
    if target_ns is not None:
        delay, max_delay = _delays(series.t_ns, highest, target_ns)
    return Order(
        max_error_frames=error,
        out_of_order=out_of_order,
        repeated=int(sequence.size) - distinct(sequence),
        delay_frames=delay,
        max_delay_frames=max_delay,
    )


def _delays(stamps_ns: Int64s, highest: Int64s, target_ns: float) -> tuple[int, int]:
    """Frames behind the target rate at the end, and at most."""
    delay = most = 0
    for start in range(0, stamps_ns.size, CHUNK):
        part = slice(start, start + CHUNK)
        slots = np.rint((stamps_ns[part] - stamps_ns[0]) / target_ns)
        behind = slots - (highest[part] - highest[0])
        delay, most = int(behind[-1]), max(most, int(behind.max()))
    return delay, most


def is_rising(sequence: Int64s) -> bool:
    """Whether each number is above the one before, as in nearly every series."""
    return bool((sequence[1:] > sequence[:-1]).all())


def distinct(sequence: Int64s) -> int:
    """How many different numbers there are; at least one."""
    if is_rising(sequence):
        return int(sequence.size)
    # Nearly in order already: sorting takes far less than hashing.
    ordered = np.sort(sequence, kind="stable")
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + 1
