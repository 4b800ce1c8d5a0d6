from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pytest_veo.errors import BadSetting
from pytest_veo.errors import FramesError
from pytest_veo.frames.baseline import add_to_history
from pytest_veo.frames.baseline import baseline_limit_ms
from pytest_veo.frames.baseline import read_history
from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.compare import Turns
from pytest_veo.frames.compare import compare_runs
from pytest_veo.frames.jitter import judge
from pytest_veo.frames.recorder import FrameRecorder
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.verdict import Outcome
from tests.frames.shapes import MS
from tests.frames.shapes import of_ms
from tests.frames.shapes import steady


@pytest.mark.parametrize(
    ("runs", "fields", "limit_ms"),
    [
        ([10.0], {}, 13.0),
        ([10.0, 10.0, 10.0], {}, 13.0),
        ([10.0, 10.0, 10.0], {"baseline_ratio": 1.1}, 11.0),
        ([8.0, 10.0, 12.0], {"baseline_ratio": 1.0}, 14.0),
        ([8.0, 10.0, 12.0], {"baseline_ratio": 1.0, "baseline_sigma": 3}, 16.0),
    ],
    ids=["one-run", "alike", "ratio", "scatter", "sigma"],
)
def test_the_limit_is_the_larger_of_ratio_and_scatter(
    runs: list[float], fields: dict[str, float], limit_ms: float
) -> None:
    budget = JitterBudget(baseline=("p95_ms",), **fields)  # type: ignore[arg-type]
    assert baseline_limit_ms(budget, runs) == pytest.approx(limit_ms)


@pytest.mark.parametrize(
    ("mean_ms", "outcome"),
    [(16.0, Outcome.PASS), (20.4, Outcome.PASS), (22.0, Outcome.FAIL)],
)
@pytest.mark.parametrize("statistic", ["p50_ms", "p95_ms", "p99_ms", "max_ms"])
def test_a_series_is_held_to_earlier_runs(
    mean_ms: float, outcome: Outcome, statistic: str
) -> None:
    frames = np.full(600, mean_ms)
    budget = JitterBudget(baseline=(statistic,))  # type: ignore[arg-type]
    verdict = judge(of_ms(frames), budget, history={statistic: [16.0] * 5})
    assert verdict.outcome is outcome
    assert verdict.findings[0].rule == f"baseline {statistic}"


def test_only_the_latest_runs_are_the_baseline() -> None:
    history = {"p95_ms": [40.0] * 100 + [16.0] * 4}
    budget = JitterBudget(baseline=("p95_ms",), baseline_runs=4)
    verdict = judge(of_ms([25.0] * 600), budget, history=history)
    assert verdict.findings[0].limit == pytest.approx(20.8)


def test_without_earlier_runs_there_is_a_note_and_no_finding() -> None:
    budget = JitterBudget(baseline=("mad_ms",))
    verdict = judge(of_ms(steady(300)), budget, history={})
    assert verdict.findings == ()
    assert verdict.notes == ("no baseline of mad_ms yet: nothing to compare with",)


def test_a_history_is_kept_by_series_and_cut_to_its_length(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "frames.json"
    for value in (1.0, 2.0, 3.0):
        add_to_history(path, {"t.py::a::frames": {"p95_ms": value}}, 2)
    add_to_history(path, {"t.py::b::frames": {"p50_ms": 9.0}}, 2)
    assert read_history(path, "t.py::a::frames") == {"p95_ms": [2.0, 3.0]}
    assert read_history(path, "t.py::b::frames") == {"p50_ms": [9.0]}
    assert read_history(path, "t.py::c::frames") == {}
    assert [each.name for each in path.parent.iterdir()] == ["frames.json"]


def test_a_baseline_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read_history(tmp_path / "none.json", "x") == {}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"schema": 1}',
        '{"schema": 2, "series": {}}',
        '{"schema": 1, "series": {"x": {"p98_ms": [1]}}}',
        '{"schema": 1, "series": {"x": {"p95_ms": ["1"]}}}',
        '{"schema": 1, "series": {"x": [1]}}',
    ],
)
def test_a_file_that_is_no_baseline_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "frames.json"
    path.write_text(text)
    with pytest.raises(FramesError, match="no frame baseline"):
        read_history(path, "x")
    with pytest.raises(FramesError, match="no frame baseline"):
        add_to_history(path, {"x": {"p95_ms": 1.0}}, 4)
    assert path.read_text() == text


def runs_of(mean_ms: float, count: int, seed: int = 0) -> list[FrameSeries]:
    rng = np.random.default_rng(seed)
    return [
        of_ms(steady(200, seed=seed + n, mean_ms=mean_ms * rng.normal(1, 0.01)))
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("slower", "pairs", "outcome"),
    [
        (1.0, 9, Outcome.PASS),
        (1.2, 9, Outcome.FAIL),
        (1.05, 9, Outcome.INCONCLUSIVE),
        (1.2, 4, Outcome.NOT_ENOUGH_FRAMES),
    ],
    ids=["alike", "slower", "at-the-margin", "too-few"],
)
def test_runs_are_compared_by_their_ratio_and_a_margin(
    slower: float, pairs: int, outcome: Outcome
) -> None:
    comparison = compare_runs(
        runs_of(16.0, pairs, 1), runs_of(16.0 * slower, pairs, 50), "p50_ms"
    )
    assert comparison.outcome is outcome
    assert comparison.low <= comparison.ratio <= comparison.high
    assert comparison.ratio == pytest.approx(slower, rel=0.02)


def test_a_small_difference_that_is_certain_passes_all_the_same() -> None:
    comparison = compare_runs(
        runs_of(16.0, 12, 1), [of_ms([16.5] * 200) for _ in range(12)], "p50_ms"
    )
    assert comparison.p_value < 0.01
    assert comparison.outcome is Outcome.PASS


def test_a_comparison_says_what_it_found() -> None:
    slow = [of_ms([24.0] * 100) for _ in range(5)]
    comparison = compare_runs(
        [of_ms([16.0] * 100) for _ in range(5)], slow, "p95_ms", names=("TCC", "WDDM")
    )
    assert str(comparison) == (
        "WDDM takes 1.500 [1.500, 1.500] of TCC's p95_ms (24 against 16 ms, 5 pairs of "
        "runs), allowed 1.05: fail"
    )


def test_what_cannot_be_compared_is_refused() -> None:
    runs = runs_of(16.0, 5)
    with pytest.raises(FramesError, match="5 runs of A and 4 of B: runs are compared"):
        compare_runs(runs, runs[:4])
    with pytest.raises(BadSetting, match="unknown statistic 'p98_ms': use one of p50"):
        compare_runs(runs, runs, "p98_ms")  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="margin=-1: not below 0"):
        compare_runs(runs, runs, margin=-1)
    with pytest.raises(FramesError, match="frames: its p95_ms is None, no ratio"):
        compare_runs([of_ms([])] * 5, runs)


def test_variants_take_turns() -> None:
    turns = Turns("a", "b", 5, lambda name: FrameRecorder(name))
    order = []
    for variant, run in turns:
        order.append(variant)
        run.extend(np.arange(50) * (16 if variant == "a" else 32) * MS)
    assert "".join(order) == "abbaabbaab"
    comparison = turns.compare("p50_ms")
    assert comparison.ratio == pytest.approx(2)
    assert comparison.outcome is Outcome.FAIL
    with pytest.raises(BadSetting, match="both variants are called 'a'"):
        Turns("a", "a", 5, lambda name: FrameRecorder(name))
    with pytest.raises(BadSetting, match="pairs=4: fewer than 5 runs"):
        Turns("a", "b", 4, lambda name: FrameRecorder(name))


def test_a_baseline_file_is_readable_json(tmp_path: Path) -> None:
    path = tmp_path / "frames.json"
    add_to_history(path, {"t.py::a::frames": {"p95_ms": 1.5}}, 8)
    assert json.loads(path.read_text()) == {
        "schema": 1,
        "series": {"t.py::a::frames": {"p95_ms": [1.5]}},
    }
