from __future__ import annotations

import numpy as np

from pytest_veo.frames.hitches import Hitches
from pytest_veo.frames.hitches import count_hitches
from pytest_veo.frames.hitches import local_median
from pytest_veo.frames.series import FrameSeries
from tests.frames.shapes import MS
from tests.frames.shapes import of_ms
from tests.frames.shapes import steady


def count(series: FrameSeries) -> Hitches:
    intervals = series.intervals_ns
    local = local_median(intervals)
    return count_hitches(intervals, local, float(np.median(np.abs(intervals - local))))


def test_steady_frames_have_no_hitch() -> None:
    assert count(of_ms(steady(2000))).count == 0


def test_a_frame_a_quarter_longer_than_its_surroundings_is_a_hitch() -> None:
    frames = steady(2000)
    frames[[300, 900]] = 16.667 * 1.2, 16.667 * 1.3
    found = count(of_ms(frames))
    assert found.count == 1
    assert 4.5 * MS < found.excess_ns < 5.5 * MS


def test_hitches_are_told_a_minute() -> None:
    frames = np.full(3000, 20.0)
    frames[[100, 200, 300]] = 40.0
    found = count(of_ms(frames))
    assert found.count == 3
    assert round(found.per_minute, 2) == round(3 / (60_060 / 60_000), 2)


def test_a_change_of_scene_is_no_hitch() -> None:
    frames = np.concatenate([steady(640), steady(640, mean_ms=33.3)])
    assert count(of_ms(frames)).count <= 32


def test_frames_that_take_turns_are_no_hitches() -> None:
    assert count(of_ms([8.0, 24.0] * 300)).count == 0


def test_the_local_median_is_the_median_of_few_frames() -> None:
    assert local_median(of_ms([1, 2, 30]).intervals_ns).tolist() == [2 * MS] * 3


def test_a_freeze_is_what_libwebrtc_calls_one() -> None:
    # Its own test: five frames 30 ms apart, then one after a second.
    found = count(of_ms([30, 30, 30, 30, 1000]))
    assert (found.freezes, found.freeze_ns) == (1, 1000 * MS)


def test_a_freeze_needs_five_intervals_three_averages_and_150_ms_more() -> None:
    assert count(of_ms([30, 30, 30, 1000])).freezes == 0
    # Average of the five: 46.8 -> 46 ms; 46 + 150 = 196.
    assert count(of_ms([10, 10, 10, 10, 194])).freezes == 0
    assert count(of_ms([10, 10, 10, 10, 197])).freezes == 1
    # Average of thirty: 100 + 200/30; three times that is more than 150 ms above.
    slow = [100.0] * 30
    assert count(of_ms([*slow, 300])).freezes == 0
    assert count(of_ms([*slow, 330])).freezes == 1
