"""Statistics against implementations that share no line with ours.

numpy's, scipy's, and loops as the definitions are written; quantiles, spreads and
intervals have theirs beside them in test_distribution and test_confidence.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import ndimage
from scipy import signal
from scipy import stats

from pytest_veo.frames.compare import compare_runs
from pytest_veo.frames.confidence import FAIL_ALPHA
from pytest_veo.frames.confidence import PASS_ALPHA
from pytest_veo.frames.drops import DropKind
from pytest_veo.frames.drops import most_within
from pytest_veo.frames.hitches import count_hitches
from pytest_veo.frames.hitches import local_median
from pytest_veo.frames.order import check_order
from pytest_veo.frames.pace import keep_pace
from pytest_veo.frames.series import Float64s
from pytest_veo.frames.stats import frame_stats
from tests.frames.shapes import MS
from tests.frames.shapes import of_ms
from tests.frames.shapes import steady


SEEDS = range(8)


def rough(seed: int, count: int = 1200) -> Float64s:
    """Frames of 60 a second with late and dropped ones among them."""
    rng = np.random.default_rng(seed)
    frames = rng.normal(16.667, 0.6, count)
    frames[rng.random(count) < 0.03] += rng.exponential(20)
    return frames


@pytest.mark.parametrize("seed", SEEDS)
def test_spread_is_numpys_and_scipys(seed: int) -> None:
    series = of_ms(rough(seed))
    spread = frame_stats(series).spread
    assert spread is not None
    times = np.diff(series.t_ns).astype(float)
    for share, found in (
        (0.5, spread.p50_ns),
        (0.95, spread.p95_ns),
        (0.99, spread.p99_ns),
        (0.999, spread.p999_ns),
    ):
        assert found == pytest.approx(np.quantile(times, share, method="linear"))
    deviation = stats.median_abs_deviation(times, scale="normal")
    assert spread.mad_ns == pytest.approx(deviation, rel=1e-4)
    assert spread.std_ns == pytest.approx(np.std(times))
    centred = times - times.mean()
    lags = signal.correlate(centred, centred)
    lag1 = lags[len(times)] / lags[len(times) - 1]
    assert spread.lag1 == pytest.approx(lag1, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_order_is_what_sorting_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = np.arange(200) + rng.integers(0, 6, 200)
    series = of_ms([10.0] * 199, sequence=numbers)
    order = check_order(series, 10.0 * MS)
    assert order is not None
    seen = numbers.tolist()
    places = sorted(range(200), key=lambda place: (seen[place], place))
    assert order.max_error_frames == max(abs(p - n) for n, p in enumerate(places))
    assert order.out_of_order == sum(
        any(earlier > seen[place] for earlier in seen[:place]) for place in range(200)
    )
    assert order.repeated == 200 - len(set(seen))
    behind = [place - (max(seen[: place + 1]) - seen[0]) for place in range(200)]
    assert (order.delay_frames, order.max_delay_frames) == (behind[-1], max(behind))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_worst_window_is_found_by_trying_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = np.cumsum(rng.choice([1, 1, 1, 1, 3], 300))
    series = of_ms(rng.normal(16.0, 2.0, 299), sequence=numbers)
    window_ns = 500 * MS
    stamps, lost = series.t_ns[1:], np.diff(numbers) - 1
    tried = [
        int(lost[(stamps >= begin) & (stamps < begin + window_ns)].sum())
        for begin in stamps
    ]
    assert most_within(series, None, window_ns) == (
        DropKind.SEQUENCE_GAPS,
        max(tried),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_hitches_are_those_that_a_running_median_shows(seed: int) -> None:
    frames = steady(1200, seed=seed)
    places = np.random.default_rng(seed).choice(1200, 15, replace=False)
    frames[places] += 15
    times = of_ms(frames).intervals_ns
    local = local_median(times)
    running = ndimage.median_filter(times.astype(float), 65, mode="nearest")
    assert np.abs(local / running - 1).max() < 0.05
    mad = float(np.median(np.abs(times - local)))
    assert count_hitches(times, local, mad).count == np.count_nonzero(
        times > 1.25 * running
    )


def webrtc_freezes(times_ms: list[int]) -> tuple[int, int]:
    """The loop of libwebrtc's quality observer, as published."""
    last: list[int] = []
    freezes = frozen_ms = 0
    for each in times_ms:
        last = [*last, each][-30:]
        if len(last) < 5:
            continue
        average = sum(last) // len(last)
        if each >= max(3 * average, average + 150):
            freezes += 1
            frozen_ms += each
    return freezes, frozen_ms


@pytest.mark.parametrize("seed", SEEDS)
def test_freezes_are_those_of_libwebrtcs_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = rng.integers(25, 45, 600)
    times[rng.random(600) < 0.04] = rng.integers(120, 900)
    found = frame_stats(of_ms(times.astype(float))).hitches
    assert found is not None
    assert (found.freezes, found.freeze_ns / MS) == webrtc_freezes(times.tolist())


@pytest.mark.parametrize("seed", SEEDS)
def test_the_phase_is_the_distance_from_a_grid(seed: int) -> None:
    series = of_ms(rough(seed, 300))
    target_ns = 1e9 / 60
    pace = keep_pace(series, target_ns)
    assert pace is not None
    since = series.t_ns - series.t_ns[0]
    grid = np.arange(301) * target_ns
    assert pace.phase_error_ns == pytest.approx(np.abs(since - grid).max())
    assert pace.period_error_ppm == pytest.approx(
        1e6 * (np.mean(np.diff(series.t_ns)) / target_ns - 1)
    )


@pytest.mark.parametrize("period", [2.5, 7.0, 41.0])
def test_a_swing_is_the_line_of_scipys_periodogram(period: float) -> None:
    wave = 1.5 * np.sin(np.arange(3000) * 2 * np.pi / period)
    frames = steady(3000) + wave
    swing = frame_stats(of_ms(frames)).swing
    assert swing is not None
    frequencies, power = signal.periodogram(frames)
    line = frequencies[int(np.argmax(power))]
    assert swing.period_frames == pytest.approx(1 / line, rel=0.01)
    # The local median takes a tenth off a slow swing.
    assert swing.amplitude_ns == pytest.approx(1.5 * MS, rel=0.15)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_comparison_is_scipys_paired_interval_of_logarithms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    runs_a = [of_ms(rng.normal(16, 1, 200)) for _ in range(9)]
    runs_b = [of_ms(rng.normal(17, 1, 200)) for _ in range(9)]
    found = compare_runs(runs_a, runs_b, "p95_ms")
    logs_a, logs_b = (
        np.log([np.quantile(np.diff(run.t_ns), 0.95) for run in runs])
        for runs in (runs_a, runs_b)
    )
    steps = logs_b - logs_a
    error = stats.sem(steps)
    low = steps.mean() - stats.t.ppf(1 - FAIL_ALPHA, 8) * error
    high = steps.mean() + stats.t.ppf(1 - PASS_ALPHA, 8) * error
    assert math.log(found.ratio) == pytest.approx(steps.mean())
    assert math.log(found.low) == pytest.approx(low)
    assert math.log(found.high) == pytest.approx(high)


def test_the_worked_values_of_one_freeze_in_a_thousand_frames() -> None:
    found = frame_stats(of_ms([8.0] * 999 + [200.0]))
    assert found.spread is not None
    assert 1e9 / found.spread.p99_ns == 125.0
    assert found.spread.max_ns == 200 * MS
    assert found.spread.mean_ns == pytest.approx(8.192 * MS)
    assert found.hitches is not None
    assert (found.hitches.count, found.hitches.freezes) == (1, 1)
