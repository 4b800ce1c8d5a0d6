from __future__ import annotations

from typing import Any

import pytest

from pytest_veo.errors import BadSetting
from pytest_veo.frames.arguments import ARGUMENTS
from pytest_veo.frames.arguments import budget_from
from pytest_veo.frames.arguments import read_lines
from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.series import Event


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"p99_ms": 0}, "p99_ms=0: it must be a number above 0"),
        ({"p99_ms": float("nan")}, "p99_ms=nan: it must be a number above 0"),
        (
            {"max_hitches_per_min": -1},
            "max_hitches_per_min=-1: it must be a number, 0 or above",
        ),
        ({"p99_ms": 9, "min_frames": -1}, "min_frames=-1: not below 0"),
        (
            {"max_drop_rate": 1.0},
            "max_drop_rate: the rate 1.0 must be from 0 to below 1",
        ),
        ({"max_over": (20, 2)}, "max_over: the rate 2 must be from 0 to below 1"),
        ({"max_over": (0, 0.1)}, "max_over=(0, 0.1): the ms must be above 0"),
        (
            {"max_drops_per_s": (5, 1, 1)},
            "max_drops_per_s=(5, 1, 1): write (warn, critical, window_s) with 0 <= "
            "warn <= critical and window_s above 0",
        ),
        (
            {"p50_ms": 20, "max_ms": 10},
            "p50_ms=20 and max_ms=10 contradict each other: max_ms is never below "
            "p50_ms",
        ),
        (
            {"max_over": (50, 0.01), "max_ms": 40},
            "max_over=(50, 0.01) and max_ms=40 contradict each other: no frame may be "
            "over 40 ms anyway",
        ),
        (
            {"p50_ms": 10, "target_fps": 60},
            "p50_ms=10 and target_fps=60 contradict each other: at that rate a frame "
            "takes 16.67 ms",
        ),
        (
            {"max_phase_error_ms": 5},
            "max_phase_error_ms needs target_fps: the phase is against it",
        ),
        (
            {"drop_threshold_ms": 30},
            "drop_threshold_ms and adaptive_window belong together: give both",
        ),
        (
            {"p99_ms": 9, "baseline_ratio": 0.9},
            "baseline_ratio=0.9: it must be a number, 1 or above: below that every run "
            "would have to be better than the last",
        ),
        (
            {"p99_ms": 9, "baseline_ratio": float("nan")},
            "baseline_ratio=nan: it must be a number, 1 or above: below that every run "
            "would have to be better than the last",
        ),
        (
            {"max_drops_per_s": (1, 1, float("inf"))},
            "max_drops_per_s=(1, 1, inf): write (warn, critical, window_s) with 0 <= "
            "warn <= critical and window_s above 0",
        ),
        (
            {"max_ms": 10, "target_fps": 60},
            "max_ms=10 and target_fps=60 contradict each other: at that rate a frame "
            "takes 16.67 ms",
        ),
        (
            {"baseline": ("p98_ms",)},
            "baseline: unknown statistic 'p98_ms', use p50_ms, p95_ms, p99_ms, max_ms, "
            "mad_ms",
        ),
        (
            {"p99_ms": 9, "adaptive_window": 0},
            "adaptive_window=0: it must be 1 or more",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_budget_that_makes_no_sense_is_refused(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadSetting) as caught:
        JitterBudget(**fields)
    assert str(caught.value) == message


def test_a_median_at_the_target_is_no_contradiction() -> None:
    assert JitterBudget(p50_ms=16.6, target_fps=60).target_ns == pytest.approx(1e9 / 60)


def test_every_argument_of_the_marker_reaches_the_budget() -> None:
    arguments: dict[str, object] = {
        "target_fps": 60,
        "p50_ms": 17.0,
        "p95_ms": 18,
        "p99_ms": 20,
        "max_ms": 40,
        "max_over": [30, 0.01],
        "max_drop_rate": 0.0,
        "max_drops_per_s": (1, 2, 1),
        "max_hitches_per_min": 6,
        "max_mad_ms": 1,
        "max_phase_error_ms": 8,
        "max_order_error": 0,
        "max_scale_switches_per_min": 4,
        "min_scale": 0.5,
        "drop_threshold_ms": 33,
        "adaptive_window": 120,
        "max_slow_in_window": 2,
        "baseline": "p95_ms",
        "baseline_ratio": 1.2,
        "baseline_sigma": 3,
        "baseline_runs": 32,
        "min_frames": 300,
        "warmup": 30,
        "event": "display",
        "on_inconclusive": "fail",
    }
    assert set(arguments) == set(ARGUMENTS)
    budget = budget_from(arguments)
    for name, value in arguments.items():
        wanted: object = tuple(value) if isinstance(value, list) else value
        wanted = {"baseline": ("p95_ms",), "event": Event.DISPLAY}.get(name, wanted)
        assert getattr(budget, name) == wanted, name


def test_a_warm_up_may_be_a_time() -> None:
    assert budget_from({"p99_ms": 20, "warmup": "0.5 s"}).warmup_ms == 500


def test_an_argument_of_none_is_not_given() -> None:
    assert budget_from({"p99_ms": 20, "max_ms": None}).max_ms is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"p99_ms": True}, "p99_ms=True: it must be a number"),
        ({"min_frames": 1.5, "p99_ms": 9}, "min_frames=1.5: it must be a whole number"),
        (
            {"max_over": (20,)},
            "max_over=(20,): it must be 2 numbers in brackets",
        ),
        (
            {"max_drops_per_s": (1, True, 2)},
            "max_drops_per_s=(1, True, 2): it must be 3 numbers in brackets",
        ),
        ({"baseline": [3]}, "baseline=[3]: it must be names in brackets"),
        ({"p99_ms": 10**400}, "p99_ms is beyond 1e+15: that limits nothing"),
        ({"max_over": (1e300, 0)}, "max_over is beyond 1e+15: that limits nothing"),
        (
            {"p99_ms": 9, "warmup": "soon"},
            "warmup: 'soon': write a duration such as '16.7 ms'",
        ),
    ],
    ids=[
        "bool",
        "fraction",
        "short",
        "bool-in-tuple",
        "names",
        "beyond-floats",
        "beyond-reason",
        "no-duration",
    ],
)
def test_arguments_of_the_wrong_kind_are_refused(
    arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(BadSetting) as caught:
        budget_from(arguments)
    assert str(caught.value) == message


def test_ini_lines_are_read_as_the_marker_writes_them() -> None:
    lines = ["p99_ms = 20", "max_over = (30, 0.01)", "event = display"]
    assert read_lines(lines) == {
        "p99_ms": 20,
        "max_over": (30, 0.01),
        "event": "display",
    }


WRITTEN: dict[str, tuple[str, object]] = {
    "target_fps": ("60", 60),
    "p50_ms": ("17", 17),
    "p95_ms": ("20.5", 20.5),
    "p99_ms": ("25", 25),
    "max_ms": ("40", 40),
    "max_over": ("20, 0.01", (20, 0.01)),
    "max_drop_rate": ("0.02", 0.02),
    "max_drops_per_s": ("2, 5, 1", (2, 5, 1)),
    "max_hitches_per_min": ("3", 3),
    "max_mad_ms": ("1.5", 1.5),
    "max_phase_error_ms": ("30", 30),
    "max_order_error": ("2", 2),
    "max_scale_switches_per_min": ("6", 6),
    "min_scale": ("0.5", 0.5),
    "drop_threshold_ms": ("33", 33),
    "adaptive_window": ("60", 60),
    "max_slow_in_window": ("4", 4),
    "baseline": ("p95_ms, max_ms", ("p95_ms", "max_ms")),
    "baseline_ratio": ("1.2", 1.2),
    "baseline_sigma": ("3", 3),
    "baseline_runs": ("32", 32),
    "min_frames": ("100", 100),
    "warmup": ("500 ms", "500 ms"),
    "event": ("gpu_end", "gpu_end"),
    "on_inconclusive": ("fail", "fail"),
}


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_every_argument_may_be_written_in_the_ini_file(argument: str) -> None:
    written, meant = WRITTEN[argument]
    beside: dict[str, object] = {"target_fps": 60, "p99_ms": 25}
    if argument in ("drop_threshold_ms", "adaptive_window", "max_slow_in_window"):
        beside |= {"drop_threshold_ms": 33, "adaptive_window": 60}
    from_ini = budget_from(beside | read_lines([f"{argument} = {written}"]))
    assert from_ini == budget_from(beside | {argument: meant})
