from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_veo.frames.distribution import Ordered
from pytest_veo.frames.distribution import describe_spread
from pytest_veo.frames.distribution import quantum_ns
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries
from tests.frames.shapes import MS
from tests.frames.shapes import of_ms


FRAME_TIMES = st.lists(st.integers(0, 10**10), min_size=1, max_size=200)


@given(FRAME_TIMES, st.floats(0, 1))
def test_quantiles_are_numpys_linear_ones(values: list[int], share: float) -> None:
    array = np.array(values, np.int64)
    found = Ordered(array).quantile(share)
    assert found == pytest.approx(np.quantile(array, share), rel=1e-9, abs=1e-6)


@given(FRAME_TIMES)
def test_spread_agrees_with_numpy(values: list[int]) -> None:
    array = np.array(values, np.int64)
    found = describe_spread(array, Ordered(array))
    median = np.median(array)
    assert found.std_ns == pytest.approx(array.std(), rel=1e-6, abs=1e-3)
    assert found.mad_ns == pytest.approx(
        1.4826 * np.median(np.abs(array - median)), rel=1e-6, abs=1e-3
    )
    changes = np.abs(np.diff(array))
    assert found.cycle_max_ns == (changes.max() if changes.size else 0)
    assert found.cycle_mean_ns == pytest.approx(changes.mean() if changes.size else 0)


@given(FRAME_TIMES, st.randoms())
def test_quantiles_do_not_depend_on_the_order(
    values: list[int], random: object
) -> None:
    shuffled = np.array(values, np.int64)
    random.shuffle(values)  # type: ignore[attr-defined]
    shares = (0.5, 0.95, 0.99)
    again = np.array(values, np.int64)
    one, other = Ordered(shuffled), Ordered(again)
    assert [one.quantile(q) for q in shares] == [other.quantile(q) for q in shares]


@given(FRAME_TIMES, st.data())
def test_distances_are_ranked_as_if_they_had_been_sorted(
    values: list[int], data: st.DataObject
) -> None:
    array = np.array(values, np.int64)
    ordered = Ordered(array)
    centre = ordered.quantile(0.5)
    distances = np.sort(np.abs(array - centre))
    rank = data.draw(st.integers(0, array.size - 1))
    assert ordered.distance_at(rank, centre) == pytest.approx(distances[rank], abs=1)
    assert ordered.distance_median(centre) == pytest.approx(
        np.median(distances), rel=1e-9, abs=1
    )


def test_one_freeze_in_a_thousand_frames_moves_the_maximum_and_not_the_p99() -> None:
    # The worked value of frame tools: 999 x 8 ms and one of 200 ms.
    array = of_ms([8.0] * 999 + [200.0]).intervals_ns
    found = describe_spread(array, Ordered(array))
    assert 1e9 / found.p99_ns == 125.0
    assert found.max_ns == 200 * MS
    assert found.mean_ns == pytest.approx(8.192 * MS)


def test_lag1_tells_frames_that_take_turns_from_frames_that_do_not() -> None:
    turns = of_ms([12.0, 20.0] * 200).intervals_ns
    noise = of_ms(np.random.default_rng(1).normal(16, 1, 5000)).intervals_ns
    assert describe_spread(turns, Ordered(turns)).lag1 < -0.99
    assert abs(describe_spread(noise, Ordered(noise)).lag1) < 0.05


@pytest.mark.parametrize(
    ("intervals_ms", "fields", "expected_ns"),
    [
        pytest.param([16, 17, 17] * 20, {}, 1 * MS, id="millisecond-stamps"),
        pytest.param([15.6, 15.6, 31.2] * 20, {}, 15_600_000, id="windows-tick"),
        pytest.param([16.0] * 60, {}, 1, id="exact-cadence-says-nothing"),
        pytest.param([16, 17, 17], {}, 1, id="too-few"),
        pytest.param([16.0, 0.0, 16.0] * 20, {}, 1, id="duplicates-do-not-count"),
        pytest.param(
            [16.0, 32.0] * 20, {"event": Event.DISPLAY}, 1, id="refreshes-are-no-tick"
        ),
        pytest.param(
            [16.0, 17.0] * 20, {"resolution_ns": 100}, 100, id="declared-is-believed"
        ),
    ],
)
def test_quantum(
    intervals_ms: list[float], fields: dict[str, object], expected_ns: int
) -> None:
    series = of_ms(intervals_ms, **({"resolution_ns": None} | fields))
    assert quantum_ns(series) == expected_ns


def test_a_quantum_is_found_behind_the_first_chunk_too() -> None:
    steps = np.full(5000, 16_000_000)
    steps[4500] = 15_999_999
    series = FrameSeries.from_intervals(steps, event=Event.PTS, clock=Clock.MEDIA)
    assert quantum_ns(series) == 1
