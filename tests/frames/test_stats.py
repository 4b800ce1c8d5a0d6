from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.stats import frame_stats
from tests.frames.shapes import MS
from tests.frames.shapes import of_ms
from tests.frames.shapes import steady


@pytest.mark.parametrize("intervals", [[], [16.0]], ids=["one-frame", "two-frames"])
def test_hardly_any_frames_are_described_as_far_as_they_go(
    intervals: list[float],
) -> None:
    stats = frame_stats(of_ms(intervals), 16 * MS)
    assert stats.intervals == len(intervals)
    assert (stats.spread is None) == (not intervals)
    assert stats.stutter is None


def test_no_frame_at_all_is_described_too() -> None:
    none = np.empty(0, np.int64)
    empty = FrameSeries(
        t_ns=none, event=Event.FRAME, clock=Clock.INJECTED, sequence=none
    )
    stats = frame_stats(empty, 16 * MS)
    assert (stats.frames, stats.intervals, stats.span_ns) == (0, 0, 0)


def test_the_worst_frames_keep_their_numbers_and_rows() -> None:
    frames = steady(100)
    frames[[20, 60]] = 50, 40
    rows = np.arange(101) + 2
    stats = frame_stats(of_ms(frames, rows=rows).after(10))
    worst = [(slow.index, slow.row) for slow in stats.worst[:2]]
    assert worst == [(21, 23), (61, 63)]
    assert stats.worst[0].interval_ns == 50 * MS
    assert stats.worst[0].at_ns == pytest.approx(frames[10:21].sum() * MS, abs=11)
    assert len(stats.worst) == 5
    assert stats.warmup == 10


def test_worst_frames_of_a_display_series_count_undisplayed_ones() -> None:
    stamps = np.array([0, 10, 0, 50, 60]) * MS
    series = FrameSeries(
        t_ns=stamps,
        event=Event.DISPLAY,
        clock=Clock.QPC,
        dropped=np.array([False, False, True, False, False]),
    )
    assert frame_stats(series).worst[0].index == 3


@given(
    st.lists(st.integers(1, 10**9), min_size=2, max_size=300),
    st.integers(-(10**15), 10**15),
)
def test_a_shifted_series_has_the_same_statistics(
    intervals: list[int], shift: int
) -> None:
    series = FrameSeries.from_intervals(
        intervals, event=Event.FRAME, clock=Clock.INJECTED
    )
    moved = FrameSeries(
        t_ns=series.t_ns + shift, event=Event.FRAME, clock=Clock.INJECTED
    )
    assert frame_stats(moved, 10 * MS) == frame_stats(series, 10 * MS)
