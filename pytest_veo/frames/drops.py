"""Dropped frames, of four kinds that are never added up.

A frame can be presented and not displayed; a slot of the target rate can pass without
a frame; a frame's number can be missing; a tool can have counted. Each says something
else, and a report names which.
"""

from __future__ import annotations

import dataclasses
import enum

import numpy as np

from pytest_veo.frames.order import distinct
from pytest_veo.frames.order import is_rising
from pytest_veo.frames.series import CHUNK
from pytest_veo.frames.series import Bools
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.series import Int64s


_MOST_NUMBERS = 1_000_000


class DropKind(enum.StrEnum):
    """What is meant by a dropped frame."""

    NOT_DISPLAYED = "not displayed"
    MISSED_SLOTS = "missed slots"
    SEQUENCE_GAPS = "sequence gaps"
    COUNTER = "counter"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Drops:
    """How many frames were dropped, in one meaning of the word."""

    kind: DropKind
    dropped: int
    total: int
    """Frames there should have been."""
    name: str = ""
    """The counter's own name, when a tool counted."""

    @property
    def rate(self) -> float:
        """Dropped frames as a share of those there should have been."""
        return self.dropped / self.total if self.total else 0.0

    def __str__(self) -> str:
        subject = f"{self.kind} ({self.name})" if self.name else str(self.kind)
        return f"{subject} {self.dropped} of {self.total}"


def count_drops(series: FrameSeries, target_ns: float | None) -> tuple[Drops, ...]:
    """Every kind of drop that this series can tell of.

    Args:
        series: the frames.
        target_ns: length of a slot; without it there are no missed slots.
    """
    found = []
    if series.dropped is not None:
        found.append(
            Drops(
                kind=DropKind.NOT_DISPLAYED,
                dropped=int(np.count_nonzero(series.dropped)),
                total=len(series),
            )
        )
    if target_ns is not None and series.stamps_ns.size > 1:
        slots = round(series.span_ns / target_ns) + 1
        missed = max(0, slots - int(series.stamps_ns.size))
        found.append(Drops(kind=DropKind.MISSED_SLOTS, dropped=missed, total=slots))
    if series.sequence is not None and len(series):
        expected = int(series.sequence.max()) - int(series.sequence.min()) + 1
        gaps = expected - distinct(series.sequence)
        found.append(Drops(kind=DropKind.SEQUENCE_GAPS, dropped=gaps, total=expected))
    found += [
        Drops(
            kind=DropKind.COUNTER,
            dropped=counter.dropped,
            total=counter.total,
            name=counter.name,
        )
        for counter in series.counters
    ]
    return tuple(found)


def most_within(
    series: FrameSeries, target_ns: float | None, window_ns: float
) -> tuple[DropKind, int] | None:
    """The most drops in any stretch of `window_ns`, of the kind that has the most.

    Counters have no times, so they do not take part. None when no kind is there.
    """
    candidates = []
    if series.dropped is not None:
        times, counts = _undisplayed(series)
        candidates.append((DropKind.NOT_DISPLAYED, _densest(times, counts, window_ns)))
    if series.sequence is not None and len(series) > 1:
        numbers = series.sequence
        if not is_rising(numbers):
            numbers = np.maximum.accumulate(numbers)
        lost = np.diff(numbers)
        lost -= 1
        candidates.append(
            (DropKind.SEQUENCE_GAPS, _densest(series.t_ns[1:], lost, window_ns))
        )
    if target_ns is not None and series.stamps_ns.size > 1:
        most = _most_missed(series.stamps_ns, target_ns, window_ns)
        candidates.append((DropKind.MISSED_SLOTS, most))
    return max(candidates, key=lambda each: each[1], default=None)


def lost_frames(
    series: FrameSeries, kind: DropKind, target_ns: float | None
) -> Bools | None:
    """Which frames, slots or numbers were lost, in their order; None if unknown.

    It is not made of numbers that count something else than frames: microseconds, say.
    """
    if kind is DropKind.NOT_DISPLAYED:
        return series.dropped
    if kind is DropKind.MISSED_SLOTS and target_ns is not None:
        return series.intervals_ns > 1.5 * target_ns
    if kind is DropKind.SEQUENCE_GAPS and series.sequence is not None:
        first = int(series.sequence.min())
        expected = int(series.sequence.max()) - first + 1
        if expected > _MOST_NUMBERS + 16 * len(series):
            return None
        lost = np.ones(expected, np.bool_)
        lost[series.sequence - first] = False
        return lost
    return None


def _most_missed(stamps_ns: Int64s, target_ns: float, window_ns: float) -> int:
    """The most slots that go by in a window without a frame.

    A frame that was late and is made up for by a short one leaves no trace.
    """
    begin, most = stamps_ns[0], 0
    for start in range(0, stamps_ns.size, CHUNK):
        part = stamps_ns[start : start + CHUNK]
        until = part + int(window_ns)
        stop = int(np.searchsorted(stamps_ns, until[-1], side="right"))
        reach = stamps_ns[start:stop]
        ends = np.searchsorted(reach, until, side="right") - 1
        gone = np.rint((reach[ends] - begin) / target_ns)
        gone -= np.rint((part - begin) / target_ns)
        gone -= ends - np.arange(part.size)
        most = max(most, int(gone.max()))
    return most


def _undisplayed(series: FrameSeries) -> tuple[Int64s, Int64s]:
    """When frames were dropped, and how many at each time.

    In a series of displays a dropped frame has no stamp of its own: it is booked on
    the display before it.
    """
    dropped = series.dropped
    if dropped is None or not dropped.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    stamps = series.t_ns
    if series.event is Event.DISPLAY:
        shown = np.flatnonzero(~dropped)
        if shown.size == 0:
            return np.zeros(int(dropped.sum()), np.int64), np.ones(dropped.sum(), int)
        before = np.searchsorted(shown, np.arange(stamps.size), side="right") - 1
        stamps = stamps[shown[np.maximum(before, 0)]]
    times = stamps[dropped]
    return times, np.ones(times.size, np.int64)


def _densest(times: Int64s, counts: Int64s, window_ns: float) -> int:
    lost = counts > 0
    times, counts = times[lost], counts[lost]
    if times.size == 0:
        return 0
    total = np.concatenate(([0], np.cumsum(counts)))
    ends = np.searchsorted(times, times + window_ns, side="left")
    return int((total[ends] - total[:-1]).max())
