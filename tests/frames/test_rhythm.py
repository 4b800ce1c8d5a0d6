from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from pytest_veo.frames.series import Bools
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


def slow_stretches(rng: np.random.Generator, frames: int) -> Bools:
    """Stretches of slow frames: six on average, one in a hundred frames begins one."""
    slow = np.zeros(frames, np.bool_)
    begin = int(rng.geometric(0.01))
    while begin < frames:
        length = int(rng.geometric(1 / 6))
        slow[begin : begin + length] = True
        begin += length + int(rng.geometric(0.01))
    return slow


def test_stretches_of_slow_frames_at_random_are_no_beat() -> None:
    rng = np.random.default_rng(13)
    for seed in range(40):
        frames = steady(1200, seed=seed)
        frames[slow_stretches(rng, 1200)] += 10
        assert stats_of(frames).stutter is None


def test_hitches_in_clumps_at_random_are_no_beat() -> None:
    rng = np.random.default_rng(14)
    for seed in range(20):
        frames = steady(4000, seed=seed)
        troubled = np.repeat(rng.random(80) < 0.2, 50)
        frames[troubled & (rng.random(4000) < 0.2)] += 8
        assert stats_of(frames).stutter is None


@pytest.mark.parametrize("phase", range(4))
def test_a_stretch_of_slow_frames_does_not_hide_a_beat(phase: int) -> None:
    frames = steady(1200, seed=phase)
    begin = 100 + 200 * phase
    frames[begin : begin + 30] += 9
    stutter = stats_of(with_beat(frames)).stutter
    assert stutter is not None
    assert stutter.period_ns == pytest.approx(1000 * MS, rel=0.02)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("period_ms", [1000.0, 2000.0, 3000.0])
def test_a_beat_is_not_taken_for_half_of_its_period(
    period_ms: float, seed: int
) -> None:
    # Hitches of its own halfway between some of its beats make half of it likely, too.
    rng = np.random.default_rng(seed)
    frames = with_beat(steady(3600, seed=seed), period_ms)
    halfway = (np.cumsum(frames) + period_ms / 2) % period_ms < frames
    frames[halfway & (rng.random(frames.size) < 0.5)] += 8
    stutter = stats_of(frames).stutter
    assert stutter is not None
    assert stutter.period_ns == pytest.approx(period_ms * MS, rel=0.02)


def test_a_beat_whose_every_other_frame_is_not_long_keeps_its_period() -> None:
    rng = np.random.default_rng(15)
    named = 0
    for seed in range(40):
        plain = steady(1800, seed=seed)
        beat = with_beat(plain) - plain
        stutter = stats_of(plain + beat * (rng.random(1800) < 0.75)).stutter
        named += stutter is not None and round(stutter.period_ns / MS, -1) == 1000
    assert named >= 38


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
