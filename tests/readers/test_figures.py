from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_veo.errors import FramesError
from pytest_veo.frames.figures import TOOLS
from pytest_veo.frames.figures import FrameTimes
from pytest_veo.frames.figures import figures_of
from pytest_veo.frames.figures import perfdog_janks


def figures(ms: list[float], tool: str, end_ms: float = 0.0) -> dict[str, float]:
    times = FrameTimes(
        frame_times_ns=np.rint(np.array(ms) * 1e6).astype(np.int64),
        end_ns=round(end_ms * 1e6),
    )
    return {figure.name: figure.value for figure in figures_of(times, tool)}


ONE_FREEZE = [8.0] * 999 + [200.0]


def test_one_freeze_tells_the_tools_apart() -> None:
    # The published table: 5.0, 36.8 and 125 for the same frames.
    def low(tool: str, name: str) -> float:
        return figures(ONE_FREEZE, tool)[name]

    assert low("capframex", "1% Low Integral") == pytest.approx(5.0)
    assert low("mangohud:0.7", "1% Min FPS") == pytest.approx(36.76, abs=0.01)
    assert low("presentmon", "1st Percentile FPS") == pytest.approx(125)
    assert low("mangohud:0.8", "1% Min FPS") == pytest.approx(125)
    assert low("mangohud:0.6", "1% Min FPS") == pytest.approx(113.0)
    # FrameView takes one frame more: floor(n/100) + 1.
    assert low("frameview", "1% Low FPS") == pytest.approx(39.29, abs=0.01)


def test_capframex_s_own_test_values() -> None:
    assert figures([10.0] * 4 + [100.0], "capframex")["1% Low Integral"] == (
        pytest.approx(10.0)
    )
    assert figures([float(n) for n in range(1, 11)], "capframex")["Median"] == (
        pytest.approx(float(np.median(1000 / np.arange(1, 11))))
    )


def test_frameview_ranks_by_floor() -> None:
    ms = [10.0 + n for n in range(250)]
    found = figures(ms, "frameview")
    slowest = sorted(ms, reverse=True)
    assert found["1% FPS"] == pytest.approx(1000 / slowest[2])
    assert found["1% Low FPS"] == pytest.approx(1000 / np.mean(slowest[:3]))
    assert found["0.1% FPS"] == pytest.approx(1000 / slowest[0])
    assert found["10% FPS"] == pytest.approx(1000 / slowest[25])


def test_mangohud_s_97_percentile_is_among_the_fastest_frames() -> None:
    ms = [float(n) for n in range(1, 101)]
    found = figures(ms, "mangohud")
    assert found["97% Percentile FPS"] == pytest.approx(1000 / 4)
    assert found["1% Min FPS"] == pytest.approx(10.0)


def test_mean_of_fps_is_not_fps_of_the_mean() -> None:
    assert figures([5.0, 20.0], "mangohud:0.6")["Average FPS"] == pytest.approx(125.0)
    assert figures([5.0, 20.0], "mangohud:0.7")["Average FPS"] == pytest.approx(80.0)


def test_ocat_divides_by_the_last_stamp() -> None:
    found = figures([10.0, 10.0], "ocat", end_ms=40.0)
    assert found["Average FPS (Application)"] == pytest.approx(50.0)


@pytest.mark.parametrize(
    ("ms", "jank", "big"),
    [
        pytest.param([16.0] * 3 + [83.0], [], [], id="below two film frames"),
        pytest.param([16.0] * 3 + [84.0], [3], [], id="jank"),
        pytest.param([16.0] * 3 + [126.0], [3], [3], id="big jank"),
        pytest.param([60.0] * 3 + [119.0], [], [], id="below twice the mean"),
        pytest.param([500.0, 16.0, 16.0], [], [], id="three frames must go before"),
    ],
)
def test_perfdog_s_janks(ms: list[float], jank: list[int], big: list[int]) -> None:
    found = perfdog_janks(np.array(ms))
    assert np.flatnonzero(found.jank).tolist() == jank
    assert np.flatnonzero(found.big).tolist() == big


def test_unreal_counts_hitches_a_minute() -> None:
    found = figures([10.0] * 94 + [60.0], "unreal")
    assert found["Hitches/Min"] == pytest.approx(60.0)
    assert found["HitchTimePercent"] == pytest.approx(0.0)


def test_android_prints_edges_of_its_histogram() -> None:
    assert figures([3.0], "android")["50th percentile"] == 5
    assert figures([16.9], "android")["50th percentile"] == 16
    assert figures([35.9], "android")["50th percentile"] == 34
    assert figures([51.9], "android")["50th percentile"] == 48
    assert figures([220.0], "android")["50th percentile"] == 200
    assert figures([16.0, 17.0], "android")["Janky frames"] == 1


def test_capframex_s_published_stutter_values() -> None:
    found = figures([16.0, 16.0, 16.0, 16.0, 100.0], "capframex")
    assert found["Stuttering count"] == pytest.approx(20.0)
    assert found["Stuttering time"] == pytest.approx(60.97560975609756)


def test_capframex_s_stutter_time_is_the_share_of_stuttering_frames() -> None:
    found = figures([16.0] * 99 + [100.0], "capframex")
    assert found["Stuttering time"] == pytest.approx(100 * 100 / (99 * 16 + 100))
    assert figures([16.0] * 100, "capframex")["Stuttering time"] == 0.0


def test_a_tool_that_is_not_known_is_refused() -> None:
    with pytest.raises(FramesError) as caught:
        figures([1.0], "fraps")
    assert str(caught.value) == (
        "no figures of 'fraps' are known; there are frameview, presentmon, capframex, "
        "mangohud:0.8, mangohud:0.7, mangohud:0.6, ocat, perfdog, unreal, android"
    )


def test_no_frame_gives_no_figure() -> None:
    with pytest.raises(FramesError, match="no frame time above 0"):
        figures([], "frameview")


@settings(max_examples=50, derandomize=True, deadline=None)
@given(
    st.lists(st.floats(0.1, 5000.0), min_size=1, max_size=300),
    st.sampled_from([tool.name for tool in TOOLS]),
)
def test_figures_are_finite_and_lows_lie_between_the_extremes(
    ms: list[float], tool: str
) -> None:
    times = np.rint(np.array(ms) * 1e6).astype(np.int64)
    for figure in figures_of(FrameTimes(frame_times_ns=times), tool):
        assert np.isfinite(figure.value)
        if "Low" in figure.name or "1%" in figure.name:
            fps = 1e9 / times
            assert fps.min() * 0.999999 <= figure.value <= fps.max() * 1.000001


def test_every_figure_is_documented_under_its_name() -> None:
    text = (Path(__file__).parents[2] / "docs" / "captures.md").read_text("utf-8")
    times = FrameTimes(frame_times_ns=np.full(99, 16_000_000), end_ns=99 * 16_000_000)
    for tool in TOOLS:
        assert f"`{tool.name}`" in text
        for figure in figures_of(times, tool.name):
            shown = {figure.name, figure.name.removesuffix(" percentile frame time")}
            assert any(f"`{name}`" in text for name in shown), figure.name
