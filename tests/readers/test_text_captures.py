from __future__ import annotations

from pathlib import Path

import pytest

from pytest_veo.errors import CaptureError
from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.jitter import judge
from pytest_veo.frames.series import Event
from pytest_veo.frames.verdict import Outcome
from pytest_veo.readers import Capture
from pytest_veo.readers import read_capture


def capture(path: Path, text: str, encoding: str = "utf-8") -> Capture:
    file = path / "capture.txt"
    file.write_bytes(text.encode(encoding))
    return read_capture(file)


AFTERBURNER = (
    "00, 24-10-2025 16:56:05, Hardware monitoring log v1.6 ,,,,\r\n"
    "01, 24-10-2025 16:56:05, Radeon RX 580 Series,,,,\r\n"
    "02, 24-10-2025 16:56:05, Power               ,Framerate           ,"
    "Frametime           ,Framerate           ,Frametime           \r\n"
    "03, 24-10-2025 16:56:05,0,,,300,10,          ,%.1f\r\n"
    "80, 24-10-2025 16:56:05,142.515,119.4,8.854,119.4,8.854\r\n"
    "80, 24-10-2025 16:56:06,143.281,118.4,9.571,118.4,9.571\r\n"
    "80, 24-10-2025 16:56:06,143.281,N/A                 ,N/A  ,N/A  ,N/A  \r\n"
    "80, 24-10-2025 16:56:07,143.281,100.0,10.000,100.0,10.000\r\n"
)


def test_afterburner_s_rows_are_samples(tmp_path: Path) -> None:
    read = capture(tmp_path, AFTERBURNER)
    series = read.series[0]
    assert (read.format, series.sampled, series.resolution_ns) == (
        "afterburner",
        True,
        10**9,
    )
    assert series.frame_times_ns is not None
    assert series.frame_times_ns.tolist() == [8_854_000, 9_571_000, 10_000_000]
    assert series.rows is not None
    assert series.rows.tolist() == [5, 6, 8]
    assert read.facts == (("GPU", "Radeon RX 580 Series"),)
    assert read.notes[0] == "samples: 1 rows have no frame time: left out"


def test_sessions_that_afterburner_appended_stay_apart(tmp_path: Path) -> None:
    read = capture(tmp_path, AFTERBURNER + AFTERBURNER.replace("24-10", "23-10"))
    assert [series.name for series in read.series] == ["session 1", "session 2"]


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        pytest.param(
            "9.571\r", "9.572\r", 6, "two columns have this name and", id="twins"
        ),
        pytest.param("10-2025 16:56:06", "10-25", 6, "is no date and time", id="date"),
        pytest.param("16:56:07", "16:56:01", 8, "time goes back", id="back"),
        pytest.param("9.571,", "abc,", 6, "'abc' is no number", id="number"),
        pytest.param("9.571", "97200000", 6, "a frame of 27.0 hours", id="27 hours"),
        pytest.param(
            "80, 24", "81, 24", 5, "a row of the unknown kind '81'", id="kind"
        ),
    ],
)
def test_a_damaged_afterburner_log_names_the_line(
    tmp_path: Path, old: str, new: str, line: int, reason: str
) -> None:
    with pytest.raises(CaptureError) as caught:
        capture(tmp_path, AFTERBURNER.replace(old, new))
    assert caught.value.line == line
    assert reason in caught.value.reason


OBS = """\
12:00:00.100: OBS 30.1.2 (64-bit, windows)
12:10:00.100: Output 'adv_stream': stopping
12:10:00.100: Output 'adv_stream': Total frames output: 35950 (36000 attempted)
12:10:00.101: Output 'adv_stream': Total drawn frames: 35990 (36000 attempted)
{more}12:10:00.102: ==== Profiler Results ====
"""


def test_obs_gives_three_counts_and_no_frame(tmp_path: Path) -> None:
    more = (
        "12:10:00.101: Output 'adv_stream': Number of lagged frames due to rendering "
        "lag/stalls: 10 (0.0%)\n"
        "12:10:00.101: Output 'adv_stream': Number of dropped frames due to "
        "insufficient bandwidth/connection stalls: 50 (0.1%)\n"
        "12:10:00.102: Video stopped, number of skipped frames due to encoding lag: "
        "7/36000 (0.0%)\n"
    )
    read = capture(tmp_path, OBS.format(more=more))
    assert (read.format, read.version, read.series) == ("obs", "30.1.2", ())
    assert [(c.name, c.dropped, c.total) for c in read.counters] == [
        ("lagged (adv_stream)", 10, 36_000),
        ("network (adv_stream)", 50, 36_000),
        ("encoder skipped", 7, 36_000),
    ]


def test_the_counts_of_a_log_can_be_held_against_a_drop_rate(tmp_path: Path) -> None:
    more = (
        "12:10:00.101: Output 'adv_stream': Number of lagged frames due to rendering "
        "lag/stalls: 720 (2.0%)\n"
    )
    totals = capture(tmp_path, OBS.format(more=more)).pick()
    assert (len(totals), totals.counters[0].dropped) == (0, 720)
    strict = judge(totals, JitterBudget(max_drop_rate=0.01))
    generous = judge(totals, JitterBudget(max_drop_rate=0.03))
    assert (strict.outcome, generous.outcome) == (Outcome.FAIL, Outcome.PASS)


def test_a_count_obs_left_out_is_zero_beside_its_total(tmp_path: Path) -> None:
    read = capture(tmp_path, OBS.format(more=""))
    assert [(c.name, c.dropped) for c in read.counters] == [
        ("lagged (adv_stream)", 0),
        ("network (adv_stream)", 0),
    ]


def test_an_obs_log_without_counts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="written when an output stops"):
        capture(tmp_path, OBS.split("\n")[0] + "\n")


FENCE = "---PROFILEDATA---\n"
M_ERA = (
    "Flags,IntendedVsync,Vsync,OldestInputEvent,NewestInputEvent,HandleInputStart,"
    "AnimationStart,PerformTraversalsStart,DrawStart,SyncQueued,SyncStart,"
    "IssueDrawCommandsStart,SwapBuffers,FrameCompleted,\n"
)
LATER = (
    "Flags,FrameTimelineVsyncId,IntendedVsync,Vsync,InputEventId,FrameCompleted,"
    "DequeueBufferDuration,QueueBufferDuration,GpuCompleted,DisplayPresentTime,\n"
)


def m_row(vsync: int, took: int, flags: int = 0) -> str:
    middle = ",".join(["9223372036854775807"] + ["0"] * 8)
    return f"{flags},{vsync},{vsync},{middle},{vsync + took // 2},{vsync + took},\n"


def test_android_counts_ordinary_frames_only(tmp_path: Path) -> None:
    start = 1_500_000_000_000
    rows = "".join(m_row(start + i * 16_666_667, 12_000_000 + i) for i in range(4))
    text = "Window: com.app/com.app.Main\n\n" + FENCE + M_ERA
    text += m_row(start - 10**8, 10**8, flags=1) + rows + FENCE
    read = capture(tmp_path, text)
    series = read.series[0]
    assert (series.name, series.event) == ("com.app/com.app.Main", Event.GPU_END)
    assert series.frame_times_ns is not None
    assert series.frame_times_ns.tolist() == [12_000_000 + i for i in range(4)]
    vsync = series.stage(Event.VSYNC)
    assert vsync is not None
    assert vsync.t_ns[0] == start
    assert read.notes == (
        "com.app/com.app.Main: 1 rows with flags are no ordinary frames and left out",
    )


def test_later_columns_are_found_by_name_and_tell_displays(tmp_path: Path) -> None:
    start = 1_500_000_000_000
    rows = "".join(
        f"0,{i},{start + i * 10**7},0,0,{start + i * 10**7 + 5_000_000},1,1,2,"
        f"{start + i * 10**7 + 20_000_000 if i != 1 else 0},\n"
        for i in range(4)
    )
    read = capture(tmp_path, FENCE + LATER + rows + FENCE)
    completed, display = read.series
    assert completed.intervals_ns.tolist() == [10**7] * 3
    assert display.event is Event.DISPLAY
    assert display.stamps_ns.size == 3


def test_two_windows_that_draw_for_one_vsync_are_two_frames(tmp_path: Path) -> None:
    rows = m_row(10**12, 5_000_000) + m_row(10**12, 7_000_000)
    read = capture(tmp_path, FENCE + M_ERA + rows + FENCE)
    times = read.series[0].times().frame_times_ns
    assert times.tolist() == [5_000_000, 7_000_000]


def test_dumps_that_overlap_count_a_frame_once(tmp_path: Path) -> None:
    rows = [m_row(10**12 + i * 10**7, 5_000_000) for i in range(6)]
    window = "com.app/com.app.Main\n"
    text = window + FENCE + M_ERA + "".join(rows[:4]) + FENCE
    text += window + FENCE + M_ERA + "".join(rows[2:]) + FENCE
    read = capture(tmp_path, text)
    assert len(read.series[0]) == 6
    assert read.notes[0].endswith("2 frames appear in two dumps and count once")


@pytest.mark.parametrize(
    ("row", "line", "reason"),
    [
        pytest.param("0,1,2\n", 3, "3 cells under a header of 14 names", id="cut"),
        pytest.param(
            m_row(5, 5).replace("0,5", "0,x", 1), 3, "'x' is no number", id="x"
        ),
        pytest.param(
            m_row(5 * 10**9, -(10**9)), 3, "completed before the vsync", id="<0"
        ),
        pytest.param(
            m_row(10**12, 97_200 * 10**9), 3, "a frame of 27.0 hours", id="27 hours"
        ),
        pytest.param("", None, "no ordinary frame (0 with flags", id="nothing"),
    ],
)
def test_damaged_profile_data_names_the_line(
    tmp_path: Path, row: str, line: int | None, reason: str
) -> None:
    with pytest.raises(CaptureError) as caught:
        capture(tmp_path, FENCE + M_ERA + row + FENCE)
    assert caught.value.line == line
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("header", "cells", "intervals_ns"),
    [
        pytest.param("t_ns", ["100", "250", "400"], [150, 150], id="t_ns"),
        pytest.param("timestamp_us", ["1", "3"], [2000], id="timestamp_us"),
        pytest.param("Time (s)", ["0.5", "0.516"], [16_000_000], id="Time (s)"),
        pytest.param("timestampMs", ["1.5", "3"], [1_500_000], id="timestampMs"),
        pytest.param("time in seconds", ["1", "2"], [10**9], id="time in seconds"),
    ],
)
def test_a_plain_table_says_its_unit_in_the_name(
    tmp_path: Path, header: str, cells: list[str], intervals_ns: list[int]
) -> None:
    series = capture(tmp_path, "\n".join([header, *cells]) + "\n").series[0]
    assert series.event is Event.FRAME
    assert series.intervals_ns.tolist() == intervals_ns


def test_a_number_without_a_unit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no known capture format"):
        capture(tmp_path, "time\n1\n2\n3\n")
    with pytest.raises(CaptureError, match="no known capture format"):
        capture(tmp_path, "1\n2\n3\n")


def test_frame_times_alone_are_laid_end_to_end(tmp_path: Path) -> None:
    read = capture(tmp_path, "frame_ms\n16.0\n17.5\n16.5\n")
    series = read.series[0]
    assert series.frame_times_ns is not None
    assert series.frame_times_ns.tolist() == [16_000_000, 17_500_000, 16_500_000]
    assert series.intervals_ns.tolist() == [17_500_000, 16_500_000]


def test_columns_of_several_events_are_several_series(tmp_path: Path) -> None:
    text = "frame_index,submit_ns,gpu_end_ns,actualPresentTime_ns,desired_ns\n"
    text += "".join(f"{i},{i * 10},{i * 10 + 3},{i * 10 + 5},1\n" for i in range(4))
    read = capture(tmp_path, text)
    assert [series.event for series in read.series] == [
        Event.SUBMIT,
        Event.GPU_END,
        Event.DISPLAY,
    ]
    assert read.series[0].sequence is not None
    assert read.series[0].sequence.tolist() == [0, 1, 2, 3]


def test_vulkan_s_present_timing_needs_no_unit(tmp_path: Path) -> None:
    text = "presentID,desiredPresentTime,actualPresentTime,presentMargin\n"
    text += "".join(f"{i},{i},{10**12 + i * 4_166_667},0\n" for i in range(5))
    series = capture(tmp_path, text).series[0]
    assert series.event is Event.DISPLAY
    assert series.intervals_ns.tolist() == [4_166_667] * 4
    assert series.sequence is not None


def test_a_column_of_names_tells_series_apart(tmp_path: Path) -> None:
    text = "series,t_ms\n" + "".join(f"{'ab'[i % 2]},{i}\n" for i in range(6))
    read = capture(tmp_path, text)
    assert [(s.name, len(s)) for s in read.series] == [("a", 3), ("b", 3)]


def test_time_that_goes_back_in_a_plain_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError) as caught:
        capture(tmp_path, "t_ms\n1\n2\n1\n")
    assert (caught.value.line, caught.value.column) == (4, "t_ms")


def test_an_nsys_table_of_calls_gives_a_series_a_name(tmp_path: Path) -> None:
    text = "Start (ns),Duration (ns),Name\n"
    text += "".join(f"{i * 16_000_000},5,vkQueuePresentKHR\n" for i in range(5))
    text += "".join(f"{i * 16_000_000 + 9},5,vkQueueSubmit\n" for i in range(4))
    read = capture(tmp_path, text)
    assert [(s.name, str(s.event), len(s)) for s in read.series] == [
        ("vkQueuePresentKHR", "present", 5),
        ("vkQueueSubmit", "frame", 4),
    ]
