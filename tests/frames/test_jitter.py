from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_veo.errors import BadSetting
from pytest_veo.errors import FramesError
from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.jitter import judge
from pytest_veo.frames.series import MISSING_NS
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import DropCounter
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.series import StageStamps
from pytest_veo.frames.verdict import Finding
from pytest_veo.frames.verdict import Outcome
from tests.frames.shapes import MS
from tests.frames.shapes import of_ms
from tests.frames.shapes import spiked
from tests.frames.shapes import steady


PASS, FAIL = Outcome.PASS, Outcome.FAIL
OPEN, FEW = Outcome.INCONCLUSIVE, Outcome.NOT_ENOUGH_FRAMES


def finding_of(series: FrameSeries, **limits: Any) -> Finding:
    findings = judge(series, JitterBudget(**limits)).findings
    assert len(findings) == 1
    return findings[0]


@pytest.mark.parametrize(
    ("series", "limits", "outcome"),
    [
        pytest.param(of_ms([16.0] * 299), {"p99_ms": 16}, PASS, id="p99-at-limit"),
        pytest.param(
            of_ms([16.0] * 298), {"p99_ms": 16}, FEW, id="p99-one-frame-short"
        ),
        pytest.param(of_ms([16.0] * 59), {"p95_ms": 16}, PASS, id="p95-least"),
        pytest.param(of_ms([16.0] * 58), {"p95_ms": 16}, FEW, id="p95-one-frame-short"),
        pytest.param(of_ms([17.0] * 20), {"p50_ms": 16}, FAIL, id="p50-all-over"),
        pytest.param(of_ms([17.0] * 3), {"p50_ms": 16}, FEW, id="p50-three-frames"),
        pytest.param(spiked(1200, 1200), {"p99_ms": 20}, PASS, id="one-spike"),
        pytest.param(spiked(1200, 90), {"p99_ms": 20}, OPEN, id="about-one-percent"),
        pytest.param(spiked(1200, 20), {"p99_ms": 20}, FAIL, id="five-percent"),
        pytest.param(spiked(400, 400), {"max_ms": 30}, PASS, id="max-at-limit"),
        pytest.param(spiked(400, 400), {"max_ms": 29.9}, FAIL, id="max-over"),
        pytest.param(spiked(1200, 20), {"max_over": (20, 0.1)}, PASS, id="rate-within"),
        pytest.param(spiked(1200, 20), {"max_over": (20, 0.02)}, FAIL, id="rate-over"),
        pytest.param(spiked(1200, 20), {"max_over": (20, 0.05)}, OPEN, id="rate-about"),
        pytest.param(of_ms([16.0] * 20), {"max_over": (20, 0.01)}, FEW, id="rate-few"),
        pytest.param(spiked(300, 300), {"max_over": (20, 0)}, FAIL, id="none-over-one"),
        pytest.param(of_ms([16.0] * 20), {"max_over": (20, 0)}, PASS, id="none-over"),
        pytest.param(of_ms(steady(300)), {"max_mad_ms": 0.4}, PASS, id="mad-within"),
        pytest.param(of_ms(steady(300)), {"max_mad_ms": 0.2}, FAIL, id="mad-over"),
        pytest.param(of_ms(steady(300)), {"max_mad_ms": 0.3}, OPEN, id="mad-about"),
    ],
)
def test_frame_times_against_a_limit(
    series: FrameSeries, limits: dict[str, Any], outcome: Outcome
) -> None:
    assert finding_of(series, **limits).outcome is outcome


def numbered(count: int, lost: int) -> FrameSeries:
    kept = np.delete(np.arange(count), np.linspace(5, count - 5, lost, dtype=int))
    return of_ms([16.0] * (kept.size - 1), sequence=kept)


@pytest.mark.parametrize(
    ("series", "limits", "outcome"),
    [
        pytest.param(numbered(2000, 0), {"max_drop_rate": 0.01}, PASS, id="no-drop"),
        pytest.param(numbered(100, 0), {"max_drop_rate": 0.01}, FEW, id="too-few"),
        pytest.param(numbered(100, 0), {"max_drop_rate": 0}, PASS, id="none-lost"),
        pytest.param(numbered(100, 1), {"max_drop_rate": 0}, FAIL, id="one-lost"),
        pytest.param(numbered(2000, 90), {"max_drop_rate": 0.01}, FAIL, id="many-lost"),
        pytest.param(
            numbered(100, 1), {"max_drops_per_s": (0, 1, 1)}, PASS, id="per-s"
        ),
        pytest.param(
            numbered(100, 40), {"max_drops_per_s": (0, 1, 1)}, FAIL, id="per-s-over"
        ),
        pytest.param(
            of_ms([16] * 3, sequence=[0, 2, 1, 3]),
            {"max_order_error": 1},
            PASS,
            id="order-at-limit",
        ),
        pytest.param(
            of_ms([16] * 3, sequence=[1, 2, 3, 0]),
            {"max_order_error": 1},
            FAIL,
            id="order-over",
        ),
        pytest.param(spiked(3000, 3000), {"max_hitches_per_min": 20}, PASS, id="hitch"),
        pytest.param(spiked(600, 600), {"max_hitches_per_min": 6}, FEW, id="ten-s"),
        pytest.param(
            spiked(3000, 100), {"max_hitches_per_min": 10}, FAIL, id="hitches"
        ),
        pytest.param(of_ms([16] * 50), {"max_hitches_per_min": 0}, PASS, id="no-hitch"),
        pytest.param(
            of_ms([16.0] * 50 + [25.0]),
            {"max_phase_error_ms": 9, "target_fps": 62.5},
            PASS,
            id="phase-at-limit",
        ),
        pytest.param(
            of_ms([16.0] * 50 + [25.1]),
            {"max_phase_error_ms": 9, "target_fps": 62.5},
            FAIL,
            id="phase-over",
        ),
        pytest.param(
            of_ms([16] * 3, render_scale=[1, 1, 0.5, 0.5]),
            {"min_scale": 0.5},
            PASS,
            id="scale-at-limit",
        ),
        pytest.param(
            of_ms([16] * 3, render_scale=[1, 1, 0.49, 0.5]),
            {"min_scale": 0.5},
            FAIL,
            id="scale-below",
        ),
        pytest.param(
            of_ms([100] * 600, render_scale=[1.0, 0.5] * 300 + [1.0]),
            {"max_scale_switches_per_min": 60},
            FAIL,
            id="switching",
        ),
        pytest.param(
            of_ms([100] * 600, render_scale=[1.0] * 601),
            {"max_scale_switches_per_min": 4},
            PASS,
            id="not-switching",
        ),
        pytest.param(
            spiked(400, 50),
            {"drop_threshold_ms": 20, "adaptive_window": 50, "max_slow_in_window": 1},
            PASS,
            id="window-at-limit",
        ),
        pytest.param(
            spiked(400, 49),
            {"drop_threshold_ms": 20, "adaptive_window": 50, "max_slow_in_window": 1},
            FAIL,
            id="window-over",
        ),
    ],
)
def test_counts_and_rates_against_a_limit(
    series: FrameSeries, limits: dict[str, Any], outcome: Outcome
) -> None:
    assert finding_of(series, **limits).outcome is outcome


def test_the_worked_series_passes_on_its_p99_and_fails_on_its_maximum() -> None:
    series = of_ms([8.0] * 999 + [200.0])
    verdict = judge(series, JitterBudget(p99_ms=9, max_ms=50))
    assert [each.outcome for each in verdict.findings] == [PASS, FAIL]
    assert verdict.outcome is FAIL
    assert [each.estimate for each in verdict.findings] == [8.0, 200.0]


def test_one_burst_of_slow_frames_is_no_proof_of_a_rate() -> None:
    spread_out = np.full(1200, 16.0)
    spread_out[::40] = 30
    burst = np.full(1200, 16.0)
    burst[300:330] = 30
    limits = {"p99_ms": 20}
    assert finding_of(of_ms(spread_out), **limits).outcome is FAIL
    assert finding_of(of_ms(burst), **limits).outcome is OPEN


def test_a_frame_within_one_step_of_the_clock_is_neither_over_nor_within() -> None:
    stamps = of_ms([16, 17, 17] * 100 + [25], resolution_ns=MS)
    assert finding_of(stamps, max_ms=24).outcome is FAIL
    near = finding_of(stamps, max_ms=24.5)
    assert near.outcome is OPEN
    assert near.reason == "within one step of the clock (1 ms) of the limit"
    assert finding_of(stamps, max_ms=26).outcome is PASS


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (
            {"p50_ms": 30},
            "p50_ms=30 is finer than two steps of the clock (15.6 ms each): these "
            "stamps cannot tell. If the clock is finer than they look, record with its "
            "resolution_ns",
        ),
        (
            {"max_over": (20, 0.1)},
            "max_over=20 is finer than two steps of the clock (15.6 ms each): these "
            "stamps cannot tell. If the clock is finer than they look, record with its "
            "resolution_ns",
        ),
    ],
    ids=["p50", "max_over"],
)
def test_a_limit_finer_than_two_steps_of_the_clock_is_refused(
    limits: dict[str, Any], message: str
) -> None:
    ticks = of_ms([15.6, 15.6, 31.2] * 50, resolution_ns=None)
    with pytest.raises(BadSetting) as caught:
        judge(ticks, JitterBudget(**limits))
    assert str(caught.value) == message
    assert finding_of(ticks, p50_ms=32).outcome is PASS


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (
            {"max_drop_rate": 0.1},
            "frames: max_drop_rate needs frames that tell of drops: give target_fps "
            "for missed slots, or record `dropped` or `sequence`",
        ),
        (
            {"max_drops_per_s": (1, 2, 1)},
            "frames: max_drops_per_s needs frames that tell when they were dropped: "
            "give target_fps, or record `dropped` or `sequence`",
        ),
        (
            {"max_order_error": 0},
            "frames: max_order_error needs frames with numbers: record them with "
            "`sequence`",
        ),
        (
            {"min_scale": 0.5},
            "frames: limits on the render scale need frames that carry it: record them "
            "with `render_scale`",
        ),
        (
            {"p99_ms": 20, "event": Event.DISPLAY},
            "frames: the budget is for display, the frames have present",
        ),
    ],
    ids=["drops", "drops-per-s", "order", "scale", "event"],
)
def test_a_limit_that_the_frames_cannot_tell_of_is_an_error(
    limits: dict[str, Any], message: str
) -> None:
    with pytest.raises(FramesError) as caught:
        judge(of_ms([16.0] * 400), JitterBudget(**limits))
    assert str(caught.value) == message


def test_a_sampled_log_is_refused() -> None:
    log = of_ms([100.0] * 400, sampled=True, source="hud.csv")
    with pytest.raises(FramesError, match=r"^hud.csv: a sampled log: rows were taken"):
        judge(log, JitterBudget(p99_ms=200))


def test_a_stage_can_be_judged_in_place_of_the_series_own_event() -> None:
    presents = of_ms([16.0, 18.0] * 200)
    displays = np.arange(401) * 17 * MS
    displays[7] = MISSING_NS
    series = FrameSeries(
        t_ns=presents.t_ns,
        event=Event.PRESENT,
        clock=Clock.QPC,
        resolution_ns=100,
        stages=(StageStamps(event=Event.DISPLAY, t_ns=displays),),
    )
    verdict = judge(series, JitterBudget(max_ms=20, event=Event.DISPLAY))
    assert verdict.stats.event is Event.DISPLAY
    assert verdict.stats.frames == 400
    assert verdict.findings[0].estimate == 34.0


def test_warm_up_frames_are_not_judged() -> None:
    series = of_ms([100.0] * 5 + [16.0] * 300)
    assert judge(series, JitterBudget(max_ms=20)).outcome is FAIL
    assert judge(series, JitterBudget(max_ms=20, warmup=5)).outcome is PASS
    assert judge(series, JitterBudget(max_ms=20, warmup_ms=500)).outcome is PASS
    assert judge(series, JitterBudget(max_ms=20, warmup_ms=400)).outcome is FAIL


def test_fewer_frames_than_asked_for_are_not_judged() -> None:
    verdict = judge(of_ms([99.0] * 10), JitterBudget(max_ms=20, min_frames=300))
    assert verdict.outcome is FEW
    assert verdict.findings[0].reason == "needs 300 frames"


def test_counters_alone_are_judged_by_their_rate() -> None:
    counted = FrameSeries(
        t_ns=np.empty(0, np.int64),
        event=Event.PRESENT,
        clock=Clock.TOOL,
        counters=(DropCounter(name="lagged", dropped=90, total=10_000),),
    )
    assert judge(counted, JitterBudget(max_drop_rate=0.02)).outcome is PASS
    assert judge(counted, JitterBudget(max_drop_rate=0.005)).outcome is FAIL
    assert judge(counted, JitterBudget(max_drop_rate=0.02, max_ms=9)).outcome is FEW


def test_frames_that_are_never_displayed_are_drops() -> None:
    unseen = FrameSeries(
        t_ns=np.arange(100) * 16 * MS,
        event=Event.DISPLAY,
        clock=Clock.QPC,
        dropped=np.ones(100, bool),
    )
    verdict = judge(unseen, JitterBudget(max_drop_rate=0.1, p99_ms=20))
    assert [each.outcome for each in verdict.findings] == [FAIL, FEW]


def test_drops_between_warning_and_critical_are_a_note() -> None:
    verdict = judge(numbered(200, 4), JitterBudget(max_drops_per_s=(1, 5, 1)))
    assert verdict.outcome is PASS
    assert verdict.notes == ("sequence gaps in the worst 1 s: 2 drops/s (warns at 1)",)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.floats(1, 60), min_size=300, max_size=400),
    st.floats(2, 50),
    st.floats(1, 2),
)
def test_a_wider_budget_never_turns_a_pass_into_a_failure(
    frames: list[float], limit: float, wider: float
) -> None:
    series = of_ms(frames)
    for field in ("p50_ms", "p95_ms", "p99_ms", "max_ms"):
        narrow = finding_of(series, **{field: limit})
        wide = finding_of(series, **{field: limit * wider})
        assert narrow.outcome is not PASS or wide.outcome is PASS
        assert wide.outcome is not FAIL or narrow.outcome in (FAIL, OPEN)


def test_many_limits_share_the_error_that_one_may_make() -> None:
    series = spiked(900, 44)
    alone = finding_of(series, p99_ms=20)
    among = judge(
        series, JitterBudget(p50_ms=20, p95_ms=40, p99_ms=40, max_ms=40, max_mad_ms=9)
    )
    assert alone.low >= 16
    assert math.isfinite(among.findings[2].low)
    assert among.findings[2].low <= alone.low


def test_a_clock_that_stood_still_is_refused() -> None:
    series = of_ms([0.0] * 400)
    with pytest.raises(FramesError) as caught:
        judge(series, JitterBudget(max_ms=20))
    assert str(caught.value).endswith(
        "all 401 frames have one stamp: the clock stood still, and no frame time can "
        "be told"
    )


@pytest.mark.parametrize(("share", "is_told"), [(0.005, False), (0.02, True)])
def test_many_repeated_stamps_are_told(share: float, is_told: bool) -> None:
    frames = np.full(1000, 16.0)
    frames[: round(1000 * share)] = 0
    notes = judge(of_ms(frames), JitterBudget(max_ms=20)).notes
    told = ["20 of 1000 frames have the stamp of the one before: the clock's step is "]
    assert [note[: len(told[0])] for note in notes] == told * is_told
