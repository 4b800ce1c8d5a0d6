from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_veo.errors import VeoError
from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.jitter import judge
from pytest_veo.frames.noise import MachineNoise
from pytest_veo.frames.record import record_of
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.text import explain
from pytest_veo.frames.verdict import Outcome
from tests.frames.shapes import MS
from tests.frames.shapes import of_ms
from tests.frames.shapes import steady


ALL_LIMITS = JitterBudget(
    target_fps=60,
    p50_ms=20,
    p95_ms=30,
    p99_ms=40,
    max_ms=100,
    max_over=(50, 0.01),
    max_drop_rate=0.05,
    max_drops_per_s=(1, 5, 1),
    max_hitches_per_min=10,
    max_mad_ms=3,
    max_phase_error_ms=50,
    max_order_error=2,
    max_scale_switches_per_min=10,
    min_scale=0.5,
    drop_threshold_ms=40,
    adaptive_window=30,
    baseline=("p50_ms", "p95_ms", "p99_ms", "max_ms", "mad_ms"),
)
HISTORY: dict[str, list[float]] = {
    name: [16.0, 17.0, 18.0] for name in ALL_LIMITS.baseline
}
NOISE = MachineNoise(frames=9, p99_ns=1e6, max_ns=3e6, waited_ns=4 * MS, pressure=0.5)

STEPS = st.one_of(
    st.sampled_from([0, 1, 16 * MS, 16_666_667, 33_333_333]),
    st.integers(0, 10**11),
    st.just(27 * 3600 * 10**9),
)


@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(
    st.lists(STEPS, max_size=120).flatmap(
        lambda steps: st.tuples(
            st.just(steps),
            st.integers(0, 3),
            st.sampled_from(list(Event)),
            st.integers(0, 2**32),
            st.booleans(),
        )
    )
)
def test_any_series_is_judged_or_refused_and_never_crashes(
    drawn: tuple[list[int], int, Event, int, bool],
) -> None:
    steps, repeats, event, seed, is_short = drawn
    rng = np.random.default_rng(seed)
    intervals = np.array(steps * (1 if is_short else 1 + repeats), np.int64)
    frames = intervals.size + 1
    series = FrameSeries.from_intervals(
        intervals,
        event=event,
        clock=Clock.TOOL,
        dropped=rng.random(frames) < rng.choice([0, 0.1, 1.0]),
        sequence=np.sort(rng.integers(0, 2 * frames, frames))
        if seed % 2
        else rng.permutation(frames),
        animation_ns=np.arange(frames) * 16 * MS,
        render_scale=rng.choice([0.5, 1.0], frames),
    )
    try:
        verdict = judge(series, ALL_LIMITS, noise=NOISE, history=HISTORY)
    except VeoError:
        return
    assert verdict.outcome in Outcome
    assert len(explain(verdict).splitlines()) < 20
    json.dumps(record_of(series, verdict), allow_nan=False)
    for finding in verdict.findings:
        assert finding.low <= finding.high


@pytest.mark.parametrize("tick_ms", [15.625, 10.0, 4.0, 1.0])
def test_a_coarse_clock_never_gives_a_wrong_answer(tick_ms: float) -> None:
    """Frames of 16.7 ms with 0.3 ms of jitter, seen by a clock that steps."""
    true_stamps = np.cumsum(steady(3000))
    seen = np.floor(true_stamps / tick_ms) * tick_ms
    series = of_ms(np.diff(seen), resolution_ns=None)
    for limit_ms, is_within in ((14.0, False), (19.0, True)):
        try:
            outcome = judge(series, JitterBudget(p99_ms=limit_ms)).outcome
        except VeoError:
            continue
        assert outcome is not (Outcome.FAIL if is_within else Outcome.PASS)
