from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from pytest_veo.frames.series import Float64s
from pytest_veo.frames.stats import FrameStats
from pytest_veo.frames.stats import frame_stats
from tests.frames.shapes import MS
from tests.frames.shapes import of_ms
from tests.frames.shapes import steady
from tests.frames.shapes import with_beat


def stats_of(intervals_ms: Float64s) -> FrameStats:
    return frame_stats(of_ms(intervals_ms))


@pytest.mark.parametrize("period_ms", [250.0, 1000.0, 3000.0])
@pytest.mark.parametrize("mean_ms", [5.0, 16.667, 33.333])
def test_a_beat_is_named_with_its_period(period_ms: float, mean_ms: float) -> None:
    frames = steady(round(40_000 / mean_ms), mean_ms=mean_ms)
    stutter = stats_of(with_beat(frames, period_ms)).stutter
    assert stutter is not None
    assert stutter.period_ns == pytest.approx(period_ms * MS, rel=0.02)
    assert stutter.excess_ns == pytest.approx(8 * MS, rel=0.15)
    assert stutter.share_of_beats > 0.9


def test_the_strength_of_a_beat_is_rayleighs_too() -> None:
    frames = with_beat(steady(2400))
    stutter = stats_of(frames).stutter
    assert stutter is not None
    hitches = np.cumsum(frames)[frames > 20] * MS
    strength, _ = signal.vectorstrength(hitches, stutter.period_ns)
    assert strength > 0.99


def test_a_beat_among_many_other_hitches_is_still_named() -> None:
    rng = np.random.default_rng(3)
    frames = with_beat(steady(3600))
    frames[rng.random(frames.size) < 0.01] += 9
    stutter = stats_of(frames).stutter
    assert stutter is not None
    assert stutter.period_ns == pytest.approx(1000 * MS, rel=0.02)


def test_a_beat_goes_on_after_a_freeze() -> None:
    frames = with_beat(steady(3600))
    frames[1200] = 40_000
    stutter = stats_of(frames).stutter
    assert stutter is not None
    assert stutter.period_ns == pytest.approx(1000 * MS, rel=0.02)
    # 60 s of frames: the beats inside of the freeze are nobody's.
    assert stutter.beats == pytest.approx(61, abs=1)
    assert stutter.share_of_beats > 0.9


def test_hitches_at_random_are_no_beat() -> None:
    rng = np.random.default_rng(11)
    found = 0
    for seed in range(100):
        frames = steady(1800, seed=seed)
        frames[rng.random(frames.size) < 0.02] += rng.exponential(10)
        if seed % 2:
            frames[rng.integers(1800)] += 20_000
        found += stats_of(frames).stutter is not None
    assert found == 0


def test_hitches_on_a_grid_of_refreshes_are_no_beat() -> None:
    rng = np.random.default_rng(12)
    frames = np.full(3600, 16.667)
    frames[rng.random(frames.size) < 0.02] *= 2
    assert stats_of(frames).stutter is None


def test_a_beat_in_a_long_series_is_found_in_its_parts() -> None:
    stutter = stats_of(with_beat(steady(30_000))).stutter
    assert stutter is not None
    assert stutter.period_ns == pytest.approx(1000 * MS, rel=0.02)


@pytest.mark.parametrize("period", [2.0, 3.0, 37.3])
def test_an_even_swing_is_named_with_its_period(period: float) -> None:
    swing = np.cos(np.arange(4000) * 2 * np.pi / period)
    found = stats_of(steady(4000) + swing).swing
    assert found is not None
    assert found.period_frames == pytest.approx(period, rel=0.01)
    assert found.amplitude_ns == pytest.approx(1 * MS, rel=0.4)


def test_noise_is_no_swing() -> None:
    rng = np.random.default_rng(13)
    for seed in range(30):
        assert stats_of(steady(2000, seed=seed)).swing is None
        late = rng.normal(0, 1, 2001)
        assert stats_of(16.667 + np.diff(late)).swing is None
