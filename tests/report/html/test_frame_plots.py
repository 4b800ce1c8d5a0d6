from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from pytest_veo.report.html import frame_plots
from tests.report.html import runs


TIMES = st.lists(st.integers(0, 10**10), min_size=1, max_size=3000)


@hypothesis.given(TIMES)
def test_a_strip_keeps_the_longest_and_the_shortest_and_its_size(
    times: list[int],
) -> None:
    found = frame_plots.strip(times, points=100)
    assert len(found.longest_us) <= 100
    assert len(found.longest_us) * found.per_point >= len(times)
    assert max(found.longest_us) == round(max(times) / 1000)
    if found.per_point == 1:
        assert found.shortest_us == ()
        assert len(found.longest_us) == len(times)
    else:
        assert min(found.shortest_us) == round(min(times) / 1000)


@hypothesis.given(TIMES)
def test_a_histogram_has_every_frame_once_between_rising_edges(
    times: list[int],
) -> None:
    found = frame_plots.histogram(times)
    assert sum(found.counts) == len(times)
    assert len(found.edges_us) == len(found.counts) + 1
    assert list(found.edges_us) == sorted(found.edges_us)


def test_one_freeze_does_not_squeeze_all_other_frames_into_one_bar() -> None:
    times = [16_000_000 + 10_000 * (number % 100) for number in range(1000)]
    found = frame_plots.histogram([*times, 200_000_000])
    assert sum(1 for count in found.counts if count) >= 3
    even = frame_plots.histogram(times)
    widths = np.diff(even.edges_us)
    assert widths.max() - widths.min() < 0.2


@hypothesis.given(st.lists(st.integers(1, 10**9), min_size=1, max_size=400))
def test_percentiles_are_numpys(times: list[int]) -> None:
    found = frame_plots.percentiles(times)
    for share, us in found:
        assert us == pytest.approx(np.quantile(times, share) / 1000, abs=0.51)
    assert found[-1][0] == 1.0
    values = [us for _, us in found]
    assert values == sorted(values)


def test_a_share_that_the_frames_cannot_tell_is_left_out() -> None:
    shares = [share for share, _ in frame_plots.percentiles(list(range(1, 101)))]
    assert 0.95 in shares
    assert 0.999 not in shares


def test_a_series_has_limits_on_frame_times_and_its_warm_up_is_not_judged() -> None:
    found = frame_plots.series(runs.frames(freeze_ms=80.0))
    assert found["limits"] == [
        ("p99_ms", 18.0, 0.99, "pass"),
        ("max_ms", 33.4, 1.0, "fail"),
    ]
    assert found["warmup"] == 30
    assert sum(found["histogram"].counts) == 1000 - 30
    assert len(found["strip"][1]) == 1000
    # The plot says what the verdict says.
    spread = runs.frames(freeze_ms=80.0)["stats"]["spread"]
    shown = dict(found["percentiles"])
    for share, name in ((0.5, "p50_ns"), (0.95, "p95_ns"), (0.99, "p99_ns")):
        assert shown[share] == round(spread[name] / 1000)


def test_a_series_without_frame_times_shows_the_figures_it_has() -> None:
    found = frame_plots.series({**runs.frames(), "intervals_ns": None})
    assert [share for share, _ in found["percentiles"]] == [0.5, 0.95, 0.99, 1.0]
    assert "strip" not in found
