from __future__ import annotations

from pathlib import Path

import pytest

from pytest_veo.errors import CaptureError
from pytest_veo.errors import FramesError
from pytest_veo.readers import Capture
from pytest_veo.readers import read_capture


MACHINE = "os,cpu,gpu,ram,kernel,driver,cpuscheduler\n{machine}\n"
LINUX = "Arch,Ryzen 7,RX 9070,65438132,6.17,,performance"


def log(
    path: Path,
    columns: str,
    rows: list[str],
    *,
    before: str = "",
    between: str = "",
    machine: str = LINUX,
) -> Capture:
    text = before + MACHINE.format(machine=machine) + between + columns + "\n"
    file = path / "game_2026.csv"
    file.write_text(text + "".join(row + "\n" for row in rows))
    return read_capture(file)


def frames(step_ms: float, count: int, cell: str = "{ms}") -> list[str]:
    """Rows of fps, frametime and elapsed."""
    return [
        f"{1000 / step_ms:.3f},{cell.format(ms=step_ms, us=round(step_ms * 1000))},50,"
        f"{round((i + 1) * step_ms * 1e6)}"
        for i in range(count)
    ]


OLD = "fps,frametime,cpu_load,elapsed"


@pytest.mark.parametrize(
    ("columns", "extra", "version"),
    [
        pytest.param("", "", "0.6.1 or later", id="0.6"),
        pytest.param(",swap_used,process_rss", ",0,0", "0.7 or later", id="0.7"),
        pytest.param(
            ",cpu_power,swap_used,process_rss", ",0,0,0", "0.8.0 or later", id="0.8.0"
        ),
        pytest.param(
            ",cpu_power,swap_used,cpu_mhz", ",0,0,4499", "0.8.2 or later", id="0.8.2"
        ),
    ],
)
def test_every_generation_of_columns_is_read_by_name(
    tmp_path: Path, columns: str, extra: str, version: str
) -> None:
    rows = [f"100.0,10.0,50{extra},{(i + 1) * 10_000_000}" for i in range(6)]
    read = log(tmp_path, f"fps,frametime,cpu_load{columns},elapsed", rows)
    assert (read.format, read.version) == ("mangohud", version)
    assert read.series[0].intervals_ns.tolist() == [10_000_000] * 5
    assert not read.series[0].sampled
    assert read.facts[:2] == (("os", "Arch"), ("cpu", "Ryzen 7"))
    assert read.notes == ()


@pytest.mark.parametrize("version", ["v0.8.2", "0.8.2"])
def test_the_version_of_a_versioned_log_is_read(tmp_path: Path, version: str) -> None:
    read = log(
        tmp_path,
        OLD,
        frames(10.0, 6),
        before=f"v1\n{version}\n-----------------SYSTEM INFO-----------------\n",
        between="--------------------FRAME METRICS--------------------\n",
    )
    assert read.version == "0.8.2"
    assert read.series[0].rows is not None
    assert read.series[0].rows[0] == 8


def test_whole_microseconds_are_told_by_the_fps(tmp_path: Path) -> None:
    read = log(tmp_path, OLD, frames(10.0, 6, "{us}"))
    times = read.series[0].frame_times_ns
    assert times is not None
    assert times.tolist() == [10_000_000] * 6
    assert read.notes == (
        "frametime is in microseconds (0.6.8 or earlier), told by the fps",
    )


def test_a_smoothed_fps_does_not_hide_the_unit(tmp_path: Path) -> None:
    rows = [row.replace("100.000,", "175.8,") for row in frames(10.0, 6, "{us}")]
    times = log(tmp_path, OLD, rows).series[0].frame_times_ns
    assert times is not None
    assert times.tolist() == [10_000_000] * 6


def test_without_usable_fps_the_stamps_tell_the_unit(tmp_path: Path) -> None:
    rows = [row.replace("100.000,", "0,") for row in frames(10.0, 6, "{us}")]
    times = log(tmp_path, OLD, rows).series[0].frame_times_ns
    assert times is not None
    assert times.tolist() == [10_000_000] * 6


def test_a_unit_that_nothing_tells_is_refused(tmp_path: Path) -> None:
    rows = [f"0,37.0,1,{(i + 1) * 10**9}" for i in range(6)]
    with pytest.raises(CaptureError) as caught:
        log(tmp_path, OLD, rows)
    assert caught.value.column == "frametime"
    assert caught.value.reason == (
        "the unit of `frametime` cannot be told: neither fps nor elapsed match it"
    )


def test_samples_at_an_interval_are_recognised(tmp_path: Path) -> None:
    rows = [f"240.0,4.16,50,{333_000_000 + i * 100_000_000}" for i in range(30)]
    read = log(tmp_path, OLD, rows)
    assert read.series[0].sampled
    assert read.notes == (
        "rows are samples 100 ms apart (log_interval), not frames: most frames are "
        "missing, so nothing can be said about jitter",
    )


def test_frames_of_a_slow_program_are_no_samples(tmp_path: Path) -> None:
    assert not log(tmp_path, OLD, frames(100.0, 30)).series[0].sampled


def test_a_corrupt_row_in_scientific_notation_is_left_out_and_told(
    tmp_path: Path,
) -> None:
    rows = frames(10.0, 6)
    rows[3] = "1.00327e-05,9.96739e+07,50,40000000"
    read = log(tmp_path, OLD, rows)
    times = read.series[0].frame_times_ns
    assert times is not None
    assert times.tolist() == [10_000_000] * 5
    assert len(read.series[0]) == 6
    assert read.notes == (
        "line 7: a frame time of 9.96739e+07 ms cannot be; it is left out of the frame "
        "times",
    )


def test_commas_in_the_name_of_a_gpu_do_not_shift_the_columns(tmp_path: Path) -> None:
    machine = "Arch,Ryzen 7,Navi, XT (RADV, LLVM 15),65438132,6.17,,performance"
    read = log(tmp_path, OLD, frames(10.0, 6), machine=machine)
    assert read.facts == (("machine", machine),)
    assert len(read.series[0]) == 6


def test_a_log_of_0_5_has_stamps_only(tmp_path: Path) -> None:
    rows = [f"100.0,50,{(i + 1) * 10_000_000}" for i in range(6)]
    read = log(tmp_path, "fps,cpu_load,elapsed", rows)
    assert read.version == "0.5 or earlier"
    assert read.series[0].frame_times_ns is None
    average = read.series[0].figures("mangohud")[3]
    assert average.value == pytest.approx(100)


def test_fps_alone_tells_no_frame(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="fps alone is a smoothed figure"):
        log(tmp_path, "fps,cpu_load", ["100.0,50"] * 6)


def test_two_logs_in_one_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError) as caught:
        log(tmp_path, OLD, frames(10.0, 6) + frames(10.0, 6))
    assert (caught.value.line, caught.value.column) == (10, "elapsed")
    assert caught.value.reason == (
        "time goes back: two captures in one file; split it here"
    )


def test_stamps_in_another_unit_are_refused(tmp_path: Path) -> None:
    rows = [f"100.0,10.0,50,{(i + 1) * 10_000}" for i in range(6)]
    with pytest.raises(CaptureError) as caught:
        log(tmp_path, OLD, rows)
    assert caught.value.reason == (
        "the frame times sum to 1.2e+03 times the span of the stamps: these are no "
        "nanoseconds"
    )


def test_a_summary_is_figures_and_no_frames(tmp_path: Path) -> None:
    file = tmp_path / "game_summary.csv"
    file.write_text(
        "0.1% Min FPS,1% Min FPS,97% Percentile FPS,Average FPS,GPU Load,CPU Load,"
        "Average Frame Time\n30.5,55.1,144.0,120.3,97.1,40.0,8.3\n"
    )
    read = read_capture(file)
    assert (read.format, read.version, read.series) == ("mangohud", "summary", ())
    assert {f.name: (f.value, f.unit) for f in read.summary}["1% Min FPS"] == (
        55.1,
        "fps",
    )
    with pytest.raises(CaptureError, match="holds no frames, only totals"):
        read.pick()


def test_samples_without_frame_times_give_no_figures(tmp_path: Path) -> None:
    rows = [f"240.0,4.16,50,{i * 100_000_000}" for i in range(30)]
    read = log(tmp_path, OLD, rows)
    assert read.series[0].figures("mangohud")
    with pytest.raises(FramesError, match="no figures of 'fraps' are known; there are"):
        read.series[0].figures("fraps")
