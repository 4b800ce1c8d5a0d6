from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from scipy import stats

from pytest_veo.frames.confidence import Evidence
from pytest_veo.frames.confidence import count_bounds
from pytest_veo.frames.confidence import frames_needed
from pytest_veo.frames.confidence import quantile_ranks
from pytest_veo.frames.confidence import rate_bounds
from pytest_veo.frames.confidence import weigh


def independent(frames: int) -> Evidence:
    """Evidence whose lower side carries no doubt, to compare with textbook bounds."""
    return Evidence(frames, 1.0, math.inf)


@pytest.mark.parametrize(
    ("quantile", "frames"), [(0.5, 5), (0.95, 59), (0.99, 299), (0.999, 2995)]
)
def test_frames_needed_are_the_published_minima(quantile: float, frames: int) -> None:
    assert frames_needed(quantile) == frames


@pytest.mark.skipif(
    not hasattr(stats, "quantile_test"), reason="the reference came with scipy 1.12"
)
@pytest.mark.parametrize("quantile", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("frames", [20, 59, 298, 299, 300, 1200, 9999])
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_quantile_bounds_are_those_of_scipys_quantile_test(
    quantile: float, frames: int, alpha: float
) -> None:
    values = np.arange(frames, dtype=float)
    low, high = quantile_ranks(quantile, independent(frames), alpha, alpha)
    less = stats.quantile_test(values, p=quantile, alternative="less")
    greater = stats.quantile_test(values, p=quantile, alternative="greater")
    upper = less.confidence_interval(1 - alpha).high
    lower = greater.confidence_interval(1 - alpha).low
    assert (low is None) == math.isnan(lower)
    assert low is None or low == lower
    assert (high is None) == math.isnan(upper)
    assert high is None or high == upper


@pytest.mark.parametrize(
    ("count", "frames"), [(0, 300), (1, 300), (7, 1000), (300, 300), (29, 30)]
)
def test_rate_bounds_are_clopper_pearson(count: int, frames: int) -> None:
    bounds = rate_bounds(count, independent(frames), 0.05, 0.05)
    exact = stats.binomtest(count, frames).proportion_ci(0.9, method="exact")
    assert bounds.low == pytest.approx(exact.low)
    assert bounds.high == pytest.approx(exact.high)


@pytest.mark.parametrize("count", [0, 1, 12])
def test_count_bounds_are_the_exact_poisson_ones(count: int) -> None:
    bounds = count_bounds(count, 0.05, 0.05)
    low = stats.chi2.ppf(0.05, 2 * count) / 2 if count else 0.0
    assert bounds.low == pytest.approx(low)
    assert bounds.high == pytest.approx(stats.chi2.ppf(0.95, 2 * count + 2) / 2)


def test_independent_slow_frames_have_a_design_effect_near_one() -> None:
    over = np.random.default_rng(3).random(20_000) < 0.02
    assert weigh(over).burst < 1.6


def test_slow_frames_in_bursts_are_worth_less() -> None:
    over = np.zeros(6000, bool)
    for start in range(100, 6000, 600):
        over[start : start + 12] = True
    evidence = weigh(over)
    assert evidence.burst >= 12
    assert evidence.bursts <= 10
    assert evidence.for_fail < evidence.for_pass <= 500


def test_a_slow_drift_is_no_burst() -> None:
    noise = np.random.default_rng(5).normal(0, 1, 12_000)
    drifting = noise + np.linspace(0, 2, noise.size)
    evidence = weigh(drifting > np.quantile(drifting, 0.5))
    assert evidence.burst < 1.5


def test_without_a_slow_frame_every_frame_counts() -> None:
    assert weigh(np.zeros(299, bool)) == Evidence(299)
    assert weigh(np.ones(299, bool)) == Evidence(299)


@settings(deadline=None)
@given(
    st.integers(1, 3000),
    st.floats(1, 50),
    st.floats(1, 100),
    st.sampled_from([0.5, 0.95, 0.99]),
)
def test_bounds_hold_the_estimate_and_widen_with_bursts(
    frames: int, burst: float, bursts: float, quantile: float
) -> None:
    plain = quantile_ranks(quantile, Evidence(frames))
    wide = quantile_ranks(quantile, Evidence(frames, burst, bursts))
    estimate = (frames - 1) * quantile
    for low, high in (plain, wide):
        assert low is None or 0 <= low <= math.ceil(estimate)
        assert high is None or math.floor(estimate) <= high < frames
    if wide[0] is not None:
        assert plain[0] is not None
        assert wide[0] <= plain[0] + burst * (1 + 2 / math.sqrt(bursts))
