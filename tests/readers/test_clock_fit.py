from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_veo.errors import CaptureError
from pytest_veo.errors import FramesError
from pytest_veo.frames.clock_fit import bring_to
from pytest_veo.frames.clock_fit import fit_brackets
from pytest_veo.frames.clock_fit import fit_one_way
from pytest_veo.frames.clock_fit import fit_pairs
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries
from pytest_veo.readers import read_capture
from pytest_veo.readers.clock_pairs import read_clock_fit


def clocks(
    seed: int, count: int, ppm: float, span_s: float = 30.0
) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    device = np.unique(rng.integers(0, int(span_s * 1e9), count)) + (1 << 50)
    host = device + 5_000_000_000.0 + ppm * 1e-6 * (device - device[0])
    return rng, device, host


@settings(max_examples=50, derandomize=True, deadline=None)
@given(
    st.integers(0, 2**31),
    st.integers(2, 300),
    st.floats(-200, 200),
    st.floats(0.1, 600),
)
def test_the_truth_lies_within_the_bound(
    seed: int, count: int, ppm: float, span_s: float
) -> None:
    rng, device, host = clocks(seed, count, ppm, span_s)
    if device.size < 2:
        return
    before = np.floor(host - rng.exponential(50_000, device.size)).astype(np.int64)
    after = np.ceil(host + rng.exponential(80_000, device.size)).astype(np.int64)
    fit = fit_brackets(device, before, after)
    assert np.abs(fit.to_host(device) - host).max() <= fit.bound_ns + 1
    assert abs(fit.drift_ppm - ppm) <= fit.drift_bound_ppm + 1e-6


def test_many_pairs_bound_more_than_the_tightest_one() -> None:
    rng, device, host = clocks(1, 1500, -37.5)
    reach = rng.uniform(0, 100_000, device.size)
    before = np.floor(host - reach).astype(np.int64)
    after = np.ceil(host + 100_000 - reach).astype(np.int64)
    fit = fit_brackets(device, before, after)
    assert fit.bound_ns < 1_000
    assert fit.drift_ppm == pytest.approx(-37.5, abs=0.05)


def test_clocks_that_do_not_run_evenly_widen_the_bound() -> None:
    _, device, host = clocks(2, 500, 0.0)
    bent = host + 1e6 * ((device - device[0]) / 30e9) ** 2
    before, after = (bent - 100).astype(np.int64), (bent + 100).astype(np.int64)
    fit = fit_brackets(device, before, after)
    worst = np.abs(fit.to_host(device) - bent).max()
    assert worst > 10_000
    assert fit.bound_ns >= worst - 100


def test_pairs_without_a_deviation_are_bounded_by_their_scatter() -> None:
    rng, device, host = clocks(3, 400, 12.0)
    noisy = np.rint(host + rng.normal(0, 2_000, device.size)).astype(np.int64)
    fit = fit_pairs(device, noisy)
    assert np.abs(fit.to_host(device) - noisy).max() <= fit.bound_ns + 1
    assert fit.drift_ppm == pytest.approx(12.0, abs=0.5)
    assert "cannot be seen" in fit.meaning


def test_calibrated_pairs_are_bounded_by_their_deviation() -> None:
    rng, device, host = clocks(4, 400, 12.0)
    noisy = np.rint(host + rng.uniform(-2_000, 2_000, device.size)).astype(np.int64)
    fit = fit_pairs(device, noisy, deviation_ns=2_001)
    assert np.abs(fit.to_host(device) - host).max() <= fit.bound_ns + 1
    assert fit.bound_ns < 500


def test_messages_one_way_are_fitted_along_the_fastest() -> None:
    rng = np.random.default_rng(5)
    sent = np.arange(1500, dtype=np.int64) * 20_000_000
    delay = 239_000 + rng.exponential(700_000, sent.size)
    received = np.rint(sent * (1 - 37.5e-6) + 5e9 + delay).astype(np.int64)
    fit = fit_one_way(sent, received)
    assert fit.drift_ppm == pytest.approx(-37.5, abs=5.0)
    assert fit.offset_ns == pytest.approx(5_000_239_000, abs=150_000)
    # The shortest delay stays in the offset: no line lies below a message.
    assert (received - fit.to_host(sent) >= -2).all()


def test_beyond_the_pairs_the_bound_grows() -> None:
    _, device, host = clocks(6, 50, 3.0)
    fit = fit_brackets(
        device, (host - 1000).astype(np.int64), (host + 1000).astype(np.int64)
    )
    last = int(device[-1])
    assert fit.bound_at(last) == fit.bound_ns
    assert fit.bound_at(last + 3600 * 10**9) > 10 * fit.bound_ns


@pytest.mark.parametrize(
    ("device", "host", "message"),
    [
        pytest.param([1], [1], "1 clock pairs: at least 2 are needed", id="one pair"),
        pytest.param(
            [1, 1], [1, 2], "clock pair 1: the device's clock does not", id="0"
        ),
        pytest.param([1, 2], [1], "the columns have different lengths", id="lengths"),
        pytest.param([0, 1000, 2000], [0, 1, 2], "rates .* % apart", id="other unit"),
    ],
)
def test_pairs_that_no_line_fits_are_refused(
    device: list[int], host: list[int], message: str
) -> None:
    with pytest.raises(FramesError, match=message):
        fit_pairs(np.array(device), np.array(host))


def test_a_bracket_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(FramesError, match="clock pair 1: read after it was read again"):
        fit_brackets(np.array([1, 2]), np.array([1, 5]), np.array([2, 4]))


def test_a_series_is_brought_to_the_host_s_clock_with_its_doubt() -> None:
    _, device, host = clocks(7, 50, 3.0)
    before, after = (host - 1000).astype(np.int64), (host + 1000).astype(np.int64)
    fit = fit_brackets(device, before, after)
    series = FrameSeries(t_ns=device, event=Event.GPU_END, clock=Clock.GPU)
    moved = bring_to(series, fit, Clock.MONOTONIC)
    assert moved.clock is Clock.MONOTONIC
    assert moved.resolution_ns == round(fit.bound_ns)
    assert np.abs(moved.t_ns - host).max() <= fit.bound_ns + 1
    with pytest.raises(FramesError, match="its stamps are of the clock gpu already"):
        bring_to(series, fit, Clock.GPU)


@pytest.mark.parametrize(
    ("header", "row", "method"),
    [
        pytest.param("gpu_ns,cpu_ns", "{d},{h}", "pairs", id="pairs"),
        pytest.param(
            "gpu_ns,cpu_ns,deviation_ns", "{d},{h},50", "pairs", id="deviation"
        ),
        pytest.param(
            "gpu_ns,before_ns,after_ns", "{d},{h},{a}", "brackets", id="bracket"
        ),
        pytest.param("sent_ns,received_ns", "{d},{h}", "one-way", id="one way"),
    ],
)
def test_pairs_are_read_from_a_table(
    tmp_path: Path, header: str, row: str, method: str
) -> None:
    file = tmp_path / "pairs.csv"
    rows = [
        row.format(d=i * 10**9, h=i * 10**9 + 77, a=i * 10**9 + 78) for i in range(9)
    ]
    file.write_text("\n".join([header, *rows]) + "\n")
    fit = read_clock_fit(file)
    assert fit.method == method
    assert fit.offset_ns == pytest.approx(77, abs=1)


def test_pairs_that_no_line_fits_name_their_file(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("gpu_ns,cpu_ns\n1000,5001000\n1000,6001010\n")
    with pytest.raises(CaptureError) as caught:
        read_clock_fit(file)
    assert str(caught.value) == (
        f"{file}: clock pair 1: the device's clock does not go on"
    )


def test_pairs_are_no_frames(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("gpu_ns,before_ns,after_ns\n1000,1,2\n2000,3,4\n")
    with pytest.raises(CaptureError, match=r"no frames: read them with .*_clock_fit"):
        read_capture(file)


def test_a_table_without_pairs_says_which_columns_to_name(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("gpu_ns,frame\n1,2\n3,4\n")
    with pytest.raises(CaptureError, match="name the columns gpu_ns, cpu_ns or"):
        read_clock_fit(file)
