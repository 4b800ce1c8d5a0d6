"""A machine that is busy with something else: what it does to a verdict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.jitter import judge
from pytest_veo.frames.noise import MachineNoise
from pytest_veo.frames.verdict import Outcome
from tests.frames.shapes import MS
from tests.frames.shapes import of_ms
from tests.frames.shapes import spiked
from tests.frames.shapes import steady


PASS, FAIL = Outcome.PASS, Outcome.FAIL
OPEN = Outcome.INCONCLUSIVE

QUIET = MachineNoise(frames=200, p99_ns=1e4, max_ns=1e5, waited_ns=0)
LATE = MachineNoise(
    frames=200,
    p50_ns=9 * MS,
    p95_ns=13 * MS,
    p99_ns=14 * MS,
    max_ns=15 * MS,
    mad_ns=9 * MS,
    waited_ns=0,
)
STARVED = MachineNoise(frames=200, waited_ns=60_000 * MS)


@pytest.mark.parametrize(
    "limits",
    [
        {"p50_ms": 20.0},
        {"p95_ms": 20.0},
        {"p99_ms": 20.0},
        {"max_ms": 20.0},
        {"max_over": (20.0, 0.01)},
        {"max_mad_ms": 1.0},
        {"max_hitches_per_min": 1.0},
        {"max_drop_rate": 0.01, "target_fps": 60.0},
        {"max_drops_per_s": (0, 1, 1), "target_fps": 60.0},
        {"max_phase_error_ms": 1.0, "target_fps": 42.5},
        {"drop_threshold_ms": 20.0, "adaptive_window": 60},
    ],
    ids=lambda limits: next(iter(limits)),
)
def test_what_the_machine_may_have_done_is_never_a_failure(
    limits: dict[str, Any],
) -> None:
    rng = np.random.default_rng(1)
    frames = rng.choice([16.0, 26.0, 32.0], 1200, p=[0.4, 0.3, 0.3])
    series = spiked(3000, 100) if "hitches" in str(limits) else of_ms(frames)
    budget = JitterBudget(**limits)
    assert judge(series, budget, noise=QUIET).outcome is FAIL
    starved = judge(series, budget, noise=STARVED)
    assert starved.outcome is OPEN
    assert "kept this thread from a CPU for 60 s" in starved.findings[0].reason
    if "max_phase_error_ms" not in limits:
        late = judge(series, budget, noise=LATE)
        assert late.outcome is OPEN
        assert "an empty loop" in late.findings[0].reason


def test_a_regression_larger_than_the_machines_noise_still_fails() -> None:
    series = of_ms(steady(600, mean_ms=60.0))
    verdict = judge(series, JitterBudget(p99_ms=20), noise=LATE)
    assert verdict.outcome is FAIL


def test_an_empty_loop_that_breaks_the_budget_by_itself_rules_a_failure_out() -> None:
    series = of_ms(steady(600, mean_ms=60.0))
    verdict = judge(series, JitterBudget(p99_ms=20, target_fps=60), noise=LATE)
    assert verdict.outcome is OPEN
    assert verdict.findings[0].reason == (
        "an empty loop breaks it here: 14 ms late at p99"
    )


def test_a_median_brought_down_by_a_held_up_loop_is_no_pass() -> None:
    bunched = of_ms([22.0, 0.1, 0.1, 0.1] * 100)
    budget = JitterBudget(p50_ms=4)
    assert judge(bunched, budget).outcome is PASS
    assert judge(bunched, budget, noise=QUIET).outcome is PASS
    held_up = judge(bunched, budget, noise=STARVED)
    assert held_up.outcome is OPEN
    assert held_up.findings[0].reason == (
        "the mean is above the limit, and the machine may have kept this thread from a "
        "CPU for 60 s"
    )

    late = judge(bunched, budget, noise=LATE)
    assert late.outcome is OPEN
    assert late.findings[0].reason == (
        "the mean is above the limit, and an empty loop was 15 ms late here at most"
    )


def test_noise_takes_no_other_pass_away() -> None:
    verdict = judge(of_ms([16.0] * 400), JitterBudget(p99_ms=20), noise=LATE)
    assert verdict.outcome is PASS
