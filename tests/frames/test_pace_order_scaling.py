from __future__ import annotations

import numpy as np
import pytest

from pytest_veo.frames.order import check_order
from pytest_veo.frames.pace import Pace
from pytest_veo.frames.pace import keep_pace
from pytest_veo.frames.scaling import describe_scaling
from pytest_veo.frames.scaling import most_slow_within
from pytest_veo.frames.series import FrameSeries
from tests.frames.shapes import MS
from tests.frames.shapes import of_ms
from tests.frames.shapes import steady


def pace_of(series: FrameSeries, target_ms: float) -> Pace:
    found = keep_pace(series, target_ms * MS)
    assert found is not None
    return found


def test_frames_on_the_grid_have_no_error() -> None:
    found = pace_of(of_ms([10.0] * 500), 10)
    assert found.period_error_ppm == 0
    assert found.phase_error_ns == 0
    assert found.jitter_frames == 0
    assert found.vsync_drift_ppm == pytest.approx(0, abs=1e-6)


def test_one_long_frame_moves_every_later_stamp() -> None:
    found = pace_of(of_ms([10.0] * 50 + [25.0] + [10.0] * 50), 10)
    assert found.phase_error_ns == 15 * MS


def test_a_number_puts_a_stamp_into_its_slot() -> None:
    numbers = [*range(50), *range(51, 101)]
    series = of_ms([10.0] * 49 + [20.0] + [10.0] * 49, sequence=numbers)
    assert pace_of(series, 10).phase_error_ns == 0


def test_a_slow_wander_shows_in_the_phase_and_not_in_the_deviation() -> None:
    wander = 5 * np.sin(np.linspace(0, 2 * np.pi, 3001))
    series = of_ms(16 + np.diff(wander))
    assert series.intervals_ns.std() < 0.02 * MS
    assert pace_of(series, 16).phase_error_ns == pytest.approx(5 * MS, rel=0.01)


@pytest.mark.parametrize("ppm", [-200.0, 37.5, 1000.0])
def test_a_beat_against_the_refresh_is_measured(ppm: float) -> None:
    period_ms = 16.667 * (1 + ppm / 1e6)
    noise = np.diff(np.random.default_rng(2).normal(0, 0.4, 6001))
    found = pace_of(of_ms(period_ms + noise), 16.667)
    assert found.period_error_ppm == pytest.approx(ppm, abs=15)
    assert found.vsync_drift_ppm == pytest.approx(ppm, abs=5)
    assert found.vsync_slip_s == pytest.approx(16.667e-3 / abs(ppm) * 1e6, rel=0.15)


def test_free_running_frames_have_no_phase_to_drift() -> None:
    frames = np.random.default_rng(4).uniform(5, 30, 4000)
    assert pace_of(of_ms(frames), 16.667).vsync_drift_ppm == 0


def test_jitter_in_frames_is_the_mean_error_over_the_target() -> None:
    assert pace_of(of_ms([8, 12] * 100), 10).jitter_frames == pytest.approx(0.2)


def test_one_stamp_has_no_pace() -> None:
    assert keep_pace(of_ms([]), 10 * MS) is None


def test_order_errors_are_places_off() -> None:
    found = check_order(of_ms([10] * 5, sequence=[0, 3, 1, 2, 4, 4]), None)
    assert found is not None
    assert found.max_error_frames == 2
    assert found.out_of_order == 2
    assert found.repeated == 1
    assert found.delay_frames is None


def test_a_preview_that_falls_behind_is_late_by_frames() -> None:
    numbers = list(range(30))
    intervals = [10.0] * 19 + [40.0] + [10.0] * 9
    found = check_order(of_ms(intervals, sequence=numbers), 10 * MS)
    assert found is not None
    assert (found.delay_frames, found.max_delay_frames) == (3, 3)


def test_lost_frames_are_not_a_delay() -> None:
    numbers = [*range(20), *range(23, 33)]
    intervals = [10.0] * 19 + [40.0] + [10.0] * 9
    found = check_order(of_ms(intervals, sequence=numbers), 10 * MS)
    assert found is not None
    assert found.max_delay_frames == 0


def test_render_scales_are_counted_by_switch() -> None:
    scales = [1.0] * 10 + [0.77] * 10 + [0.5] * 10 + [1.0] * 10
    found = describe_scaling(of_ms([100.0] * 39, render_scale=scales))
    assert found is not None
    assert (found.switches, found.lowest) == (3, 0.5)
    assert found.per_minute == pytest.approx(3 / 3.9 * 60)


def test_slow_frames_are_counted_in_the_densest_window() -> None:
    frames = steady(400)
    frames[[10, 200, 205, 219]] = 40
    intervals = of_ms(frames).intervals_ns
    assert most_slow_within(intervals, 30 * MS, 20) == 3
    assert most_slow_within(intervals, 30 * MS, 19) == 2
    assert most_slow_within(intervals, 30 * MS, 1000) == 4
