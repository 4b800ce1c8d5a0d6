"""What tools do that nobody would expect, one small file each.

The other tests of this folder hold the quirks that need more than one file.
"""

from __future__ import annotations

import importlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from pytest_veo.errors import CaptureError
from pytest_veo.frames.series import Event
from pytest_veo.readers import Capture
from pytest_veo.readers import CapturedSeries
from pytest_veo.readers import afterburner
from pytest_veo.readers import read_capture


PRESENTS = (
    "Application,ProcessID,SwapChainAddress,Runtime,Dropped,TimeInSeconds,"
    "MsBetweenPresents,MsBetweenDisplayChange,MsUntilDisplayed"
)


def capture(path: Path, text: str | bytes) -> Capture:
    file = path / "capture"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_capture(file)


def refused(path: Path, text: str) -> CaptureError:
    with pytest.raises(CaptureError) as caught:
        capture(path, text)
    return caught.value


def frame_ms(series: CapturedSeries) -> list[float]:
    assert series.frame_times_ns is not None
    return [ns / 1e6 for ns in series.frame_times_ns.tolist()]


def step_ms(series: CapturedSeries) -> list[float]:
    return [ns / 1e6 for ns in series.intervals_ns.tolist()]


def lost(series: CapturedSeries) -> list[bool]:
    assert series.dropped is not None
    return [bool(gone) for gone in series.dropped]


def rows(row: str, count: int = 6) -> str:
    """`row` for each frame of 16 ms: `{i}`, `{s}` seconds, `{ms}`, `{qpc}` ..."""
    return "".join(
        row.format(
            i=i,
            s=f"{i * 0.016:.6f}",
            ms=i * 16.0,
            us=i * 16_000.0,
            ns=i * 16_000_000,
            qpc=i * 160_000,
        )
        + "\n"
        for i in range(count)
    )


# PresentMon


def test_a_zero_length_display_of_version_2_is_not_dropped(tmp_path: Path) -> None:
    read = capture(
        tmp_path,
        "Application,ProcessID,SwapChainAddress,CPUStartTime,FrameTime,DisplayLatency,"
        "DisplayedTime\n"
        "g.exe,1,0xA,0.0,16.0,30.0,16.0\n"
        "g.exe,1,0xA,16.0,16.0,30.0,NA\n"
        "g.exe,1,0xA,32.0,16.0,NA,NA\n"
        "g.exe,1,0xA,48.0,16.0,30.0,16.0\n",
    )
    assert lost(read.pick(event="cpu_start")) == [False, False, True, False]


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param("QPCTime,{s}", id="QPC milliseconds that are seconds"),
        pytest.param("QPCTime,{i}", id="QPC ticks"),
        pytest.param("MsPCLatency,4599812.3", id="a latency with a sentinel's prefix"),
    ],
)
def test_columns_with_traps_do_not_move_a_stamp(tmp_path: Path, extra: str) -> None:
    name, cell = extra.split(",")
    read = capture(
        tmp_path,
        f"{PRESENTS},{name}\n"
        + rows("g.exe,1,0xA,DXGI,0,{s},16.000,16.000,20.000," + cell),
    )
    assert step_ms(read.pick(event="display")) == [16.0] * 5


def test_presents_without_a_swapchain_are_a_series_of_their_own(tmp_path: Path) -> None:
    text = f"{PRESENTS}\n" + "".join(
        f"g.exe,1,0x0000000000000000,Other,0,{i * 0.010:.6f},10.0,10.0,12.0\n"
        f"g.exe,1,0x00000000000000AB,DXGI,0,{i * 0.016:.6f},16.0,16.0,20.0\n"
        for i in range(5)
    )
    presents = {
        series.swapchain: step_ms(series)
        for series in capture(tmp_path, text).select(event="present")
    }
    assert presents == {0: [10.0] * 4, 0xAB: [16.0] * 4}


def test_a_name_that_was_found_out_later_is_the_process_from_the_start(
    tmp_path: Path,
) -> None:
    text = f"{PRESENTS}\n" + rows("g.exe,1,0xA,DXGI,0,{s},16.0,16.0,20.0")
    read = capture(tmp_path, text.replace("g.exe", "<error>", 2))
    assert [(s.process, len(s)) for s in read.select(event="present")] == [("g.exe", 6)]


@pytest.mark.parametrize("digits", ["4\u00b2", "9" * 5000])
def test_a_process_id_that_is_none_is_left_out(tmp_path: Path, digits: str) -> None:
    read = capture(
        tmp_path, f"{PRESENTS}\n" + rows(f"g.exe,{digits},0xA,,0,{{s}},16.0,16.0,20.0")
    )
    assert {series.process_id for series in read.series} == {None}
    with pytest.raises(CaptureError, match="nothing with process="):
        read.pick(process=digits)


@pytest.mark.parametrize("kind", ["NotSet", "Repeated", "Application"])
def test_repeated_frames_are_the_application_s(tmp_path: Path, kind: str) -> None:
    read = capture(
        tmp_path,
        "Application,ProcessID,SwapChainAddress,FrameType,TimeInMs,MsBetweenPresents,"
        "MsUntilDisplayed,MsBetweenAppStart\n"
        + rows(f"g.exe,1,0xA,{kind},{{ms}},16.0,20.0,16.0"),
    )
    assert len(read.pick(event="present")) == 6


def test_generated_frames_do_not_hide_a_counter_s_frequency(tmp_path: Path) -> None:
    read = capture(
        tmp_path,
        "Application,ProcessID,SwapChainAddress,FrameType,CPUStartQPC,FrameTime,"
        "DisplayLatency,DisplayedTime\n"
        + rows(
            "g.exe,1,0xA,Application,{qpc},16.0,20.0,8.0\n"
            "g.exe,1,0xA,AMD_AFMF,{qpc},NA,28.0,8.0"
        ),
    )
    assert len(read.pick(event="cpu_start")) == 6
    assert len(read.pick(event="display")) == 12


def test_one_trace_in_three_schemas_is_one_trace(tmp_path: Path) -> None:
    # Frame 3 is never displayed; the newer schemas hold the last frame back.
    ms = [16.0, 17.0, 15.0, 18.0, 16.0, 16.5]
    stamps = [round(100 + sum(ms[1 : i + 1]), 4) for i in range(6)]
    shown = [t + 20 for t in stamps]
    change = [16.0, 17.0, 15.0, 0.0, 34.0, 16.5]
    v1 = f"{PRESENTS},QPCTime\n" + "".join(
        f"g.exe,1,0x{10:016X},DXGI,{int(i == 3)},{t / 1000:.7f},{ms[i]:.4f},"
        f"{change[i]:.4f},{0 if i == 3 else 20:.4f},{round(t * 1e4)}\n"
        for i, t in enumerate(stamps)
    )
    newer = (
        "Application,ProcessID,SwapChainAddress,TimeInQPC,MsBetweenPresents,"
        "MsBetweenDisplayChange,MsUntilDisplayed,CPUStartQPC,MsBetweenAppStart\n"
    ) + "".join(
        f"g.exe,1,0xA,{round(t * 1e4)},{ms[i]:.4f},"
        f"{'NA,NA' if i == 3 else f'{change[i]:.4f},20.0000'},{round(t * 1e4)},"
        f"{ms[i + 1]:.4f}\n"
        for i, t in enumerate(stamps[:-1])
    )
    on_screen = ["17.0000", "15.0000", "34.0000", "NA", "16.5000"]
    v2 = (
        "Application,ProcessID,SwapChainAddress,CPUStartQPC,FrameTime,DisplayLatency,"
        "DisplayedTime\n"
    ) + "".join(
        f"g.exe,1,0xA,{round(t * 1e4)},{ms[i + 1]:.4f},"
        f"{'NA' if i == 3 else '20.0000'},{on_screen[i]}\n"
        for i, t in enumerate(stamps[:-1])
    )
    old, new, two = (capture(tmp_path, text) for text in (v1, newer, v2))
    assert frame_ms(old.pick(event="present")) == ms
    assert frame_ms(new.pick(event="present")) == ms[:-1]
    assert frame_ms(two.pick(event="cpu_start")) == ms[1:]
    assert lost(old.pick(event="present"))[:-1] == lost(new.pick(event="present"))
    assert lost(new.pick(event="present")) == lost(two.pick(event="cpu_start"))
    displays = step_ms(new.pick(event="display"))
    assert displays == [17.0, 15.0, 34.0]
    assert frame_ms(two.pick(event="display")) == [*displays, 16.5]
    assert frame_ms(old.pick(event="display"))[1:-1] == displays
    assert shown[0] == old.pick(event="display").t_ns[0] / 1e6


def test_the_capture_application_s_results_without_a_comma(tmp_path: Path) -> None:
    # With no animation error it writes "00" for two values.
    read = capture(
        tmp_path,
        "Duration,Total Frames,Average FPS,Minimum FPS,1st Percentile FPS,5th "
        "Percentile FPS,Maximum FPS,AnimationErrorPerSecond,AnimationErrorPerFrame\n"
        "10.1,600,59.9,30.1,40.2,45.1,90.2,00\n",
    )
    told = {figure.name: figure.value for figure in read.summary}
    assert (told["1st Percentile FPS"], told["Total Frames"]) == (40.2, 600)
    assert "AnimationErrorPerFrame" not in told
    assert read.notes == (
        "line 2: 8 cells under 9 names; cells are taken from the left",
    )


def test_a_file_whose_end_was_never_written_is_told_as_damaged(tmp_path: Path) -> None:
    text = f"{PRESENTS}\n" + rows("g.exe,1,0xA,DXGI,0,{s},16.0,16.0,20.0", 30)
    error = refused(tmp_path, text + "\0" * 100)
    assert error.reason == "a NUL byte in the text: the file is damaged"


# FrameView


def frameview(first: str, more: str = "") -> str:
    return f"{PRESENTS},{first}Render Queue Depth,GPU0Util(%)\n" + rows(
        "g.exe,1,0xA,D3D12,0," + "{s},16.000,16.000,20.000," + more + " 1, 45"
    )


@pytest.mark.parametrize(
    ("names", "cells"),
    [
        pytest.param("", "", id="1.4"),
        pytest.param("FlipToken,", "0x1A,", id="flip token"),
        pytest.param("MsBetweenSimulationStart,", "NA,", id="simulation start"),
        pytest.param("MsPCLatency,", "NA,", id="latency"),
    ],
)
def test_frameview_s_columns_come_and_go(
    tmp_path: Path, names: str, cells: str
) -> None:
    read = capture(tmp_path, frameview(names, cells))
    assert read.format == "frameview"
    assert frame_ms(read.pick(event="present")) == [16.0] * 6


def test_frameview_counts_time_from_its_own_start(tmp_path: Path) -> None:
    text = frameview("").replace(",0.", ",7433.")
    series = capture(tmp_path, text).pick(event="present")
    assert int(series.t_ns[0]) == 7_433_000_000_000
    assert step_ms(series) == [16.0] * 5


def test_frameview_s_summary_holds_seconds_and_a_blank_name(tmp_path: Path) -> None:
    run = "2024,g.exe,RTX,{fps},50,NA,,40,70,29.967\n"
    read = capture(
        tmp_path,
        "TimeStamp,Application,GPU,Avg FPS,1% Low FPS,AvgPCLatency (ms),,Min FPS,"
        "Max FPS,Time (ms)\n" + run.format(fps=60) + run.format(fps=61),
    )
    told = {figure.name: (figure.value, figure.unit) for figure in read.summary}
    assert (read.format, read.version) == ("frameview", "summary")
    assert told["run 1: Time"] == (29.967, "s")
    assert told["run 1: Avg FPS"] == (60, "fps")
    assert told["run 2: Avg FPS"] == (61, "fps")
    assert "run 1: " not in told


# MangoHud


def mangohud(*lines: str) -> str:
    return (
        "os,cpu,gpu,ram\nArch,Ryzen,RX,1\nfps,frametime,cpu_load,elapsed\n"
        + "\n".join(lines)
        + "\n"
    )


def test_a_log_begins_late_and_with_an_artefact(tmp_path: Path) -> None:
    text = mangohud(
        "2300.02,0.434778,36,147855925",
        "99.629,10.0372,36,157894598",
        "100,10.0,36,167894598",
    )
    series = capture(tmp_path, text).series[0]
    assert frame_ms(series) == [0.434778, 10.0372, 10.0]
    assert int(series.t_ns[0]) == 147_855_925
    assert frame_ms(series.after(1)) == [10.0372, 10.0]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "os;cpu;gpu;ram\nArch;Ryzen;RX;1\nfps;frametime;cpu_load;elapsed\n"
            "62,5;16,0;50;16000000\n62,5;16,0;50;32000000\n62,5;16,0;50;48000000\n",
            id="whole",
        ),
        pytest.param(
            "fps;frametime;cpu_load;elapsed\n"
            "62,5;16,0;50;16000000\n62,5;16,0;50;32000000\n62,5;16,0;50;48000000\n",
            id="without its head",
        ),
    ],
)
def test_a_log_that_a_spreadsheet_saved_is_read(tmp_path: Path, text: str) -> None:
    read = capture(tmp_path, text)
    assert (read.format, frame_ms(read.series[0])) == ("mangohud", [16.0] * 3)


def test_a_log_twice_in_one_file_is_told_as_such(tmp_path: Path) -> None:
    text = mangohud(*(f"62.5,16.0,50,{i * 16_000_000}" for i in range(4)))
    error = refused(tmp_path, text + text)
    assert (error.line, error.reason) == (
        8,
        "the header appears again: two captures in one file; split it here",
    )


# CapFrameX and OCAT


def capframex(**data: Any) -> dict[str, Any]:
    frames = {
        "TimeInSeconds": [0, 0.016, 0.032],
        "MsBetweenPresents": [16, 16.0, 16],
        "MsBetweenDisplayChange": [16, 16, 16],
        "MsUntilDisplayed": [20.0, 20.0, 20.0],
        "Dropped": [False, False, False],
    }
    run = {"PresentMonRuntime": "DXGI", "CaptureData": {**frames, **data}}
    return {"Hash": "", "Info": {"ProcessName": "g.exe"}, "Runs": [run]}


def test_no_value_is_written_as_a_text_by_capframex(tmp_path: Path) -> None:
    document = capframex(MsUntilDisplayed=["NaN", 20.0, 20.0])
    read = capture(tmp_path, json.dumps(document))
    assert step_ms(read.pick(event="present")) == [16.0] * 2
    assert lost(read.pick(event="display")) == [True, False, False]


def test_sensors_may_stand_before_the_frames(tmp_path: Path) -> None:
    document = capframex()
    (run,) = document["Runs"]
    document["Runs"] = [{"SensorData2": {"x": list(range(30_000))}, **run}]
    read = capture(tmp_path, json.dumps(document))
    assert (read.format, len(read.pick(event="present"))) == ("capframex", 3)


def test_a_second_gpu_stands_under_no_name_in_ocat_s_first_row(tmp_path: Path) -> None:
    row = "g.exe,1,0xA,DXGI,0,{s},16.000,16.000,20.000"
    first, *others = rows(row).splitlines()
    text = "\n".join(
        [
            f"{PRESENTS},Motherboard,Processor,GPU #,GPU,GPU Core Clock (MHz)",
            f'{first},"MSI, Inc.",i9,2,RTX,1350,UHD,300',
            *others,
            "",
        ]
    )
    read = capture(tmp_path, text)
    assert read.format == "ocat"
    assert frame_ms(read.pick(event="present")) == [16.0] * 6
    assert ("GPU", "RTX") in read.facts


def test_ocat_s_results_are_figures(tmp_path: Path) -> None:
    read = capture(
        tmp_path,
        "\ufeffFile,Application Name,Average FPS (Application),"
        "99th-percentile frame time (ms) (Application)\nx.csv,g.exe,60.1,22.0\n",
    )
    assert (read.format, read.version) == ("ocat", "summary")
    assert [(f.value, f.unit) for f in read.summary] == [(60.1, "fps"), (22.0, "ms")]


# MSI Afterburner

HML = (
    "00, 24-10-2025 16:56:05, Hardware monitoring log v1.6\n"
    "02, 24-10-2025 16:56:05, Power,Framerate,Frametime\n"
    "80, 24-10-2025 16:56:05,100.1,60.0,16.66\n"
    "80, 24-10-2025 16:56:06,100.1,60.0,16.66\n"
)


def test_a_decimal_comma_does_not_shift_afterburner_s_columns(tmp_path: Path) -> None:
    error = refused(tmp_path, HML.replace("100.1", "100,1"))
    assert (error.line, error.reason) == (
        3,
        "6 cells under a row of 5 names; numbers with a decimal comma need another "
        "separator",
    )


def test_afterburner_s_log_with_semicolons_is_read(tmp_path: Path) -> None:
    body = HML.replace(",", ";").replace("100.1", "100,1").replace("16.66", "16,66")
    assert frame_ms(capture(tmp_path, body).series[0]) == [16.66] * 2


def test_afterburner_s_rows_at_once_are_those_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = HML + (
        "80, 24-10-2025 16:56:07,100.1               ,60.0,N/A                 \n"
        "80, 24-10-2025 16:56:08,100.1,0.0,0.0\n"
        "80, 24-10-2025 16:56:09,100.1,59.9,16.69\n"
    )
    at_once = capture(tmp_path, body)
    monkeypatch.setattr(afterburner, "_session_at_once", lambda source: None)
    row_by_row = capture(tmp_path, body)
    assert at_once.notes == row_by_row.notes
    assert at_once.facts == row_by_row.facts
    one, other = at_once.series[0], row_by_row.series[0]
    assert frame_ms(one) == [16.66, 16.66, 16.666667, 16.69]
    assert frame_ms(one) == frame_ms(other)
    assert one.t_ns.tolist() == other.t_ns.tolist()
    assert one.rows is not None
    assert other.rows is not None
    assert one.rows.tolist() == other.rows.tolist() == [3, 4, 5, 7]


@pytest.mark.parametrize("cut", [1, 2, 4, 6])
def test_a_last_row_of_afterburner_that_was_cut_is_left_out(
    tmp_path: Path, cut: int
) -> None:
    read = capture(tmp_path, HML[: -1 - cut])
    assert frame_ms(read.series[0]) == [16.66]
    assert any("has no end and may be cut" in note for note in read.notes)


# Android

STATS = "Flags,IntendedVsync,FrameCompleted,\n"
FRAMES = "0,1000000000,1009000000,\n0,1016000000,1026000000,\n"


def test_a_table_of_frame_stats_without_its_fence_is_read(tmp_path: Path) -> None:
    read = capture(tmp_path, STATS + FRAMES)
    assert (read.format, frame_ms(read.series[0])) == ("android", [9.0, 10.0])


def test_a_row_of_frame_stats_that_was_cut_is_left_out(tmp_path: Path) -> None:
    read = capture(tmp_path, f"---PROFILEDATA---\n{STATS}{FRAMES}0,1032000000,104")
    assert frame_ms(read.series[0]) == [9.0, 10.0]
    assert read.notes == ("window 1: 1 rows end early and are left out",)


def test_lines_behind_a_block_have_their_numbers(tmp_path: Path) -> None:
    filler = "x" * 99 + "\n"
    text = f"---PROFILEDATA---\n{STATS}{FRAMES}---PROFILEDATA---\n"
    fence = f"---PROFILEDATA---\n{STATS}0,x,1,\n"
    error = refused(tmp_path, text + filler * 30_000 + fence)
    assert error.line == 5 + 30_000 + 3


def test_android_s_own_totals_are_figures(tmp_path: Path) -> None:
    totals = (
        "Applications Graphics Acceleration Info:\nTotal frames rendered: 200\n"
        "Janky frames: 20 (10.00%)\n90th percentile: 12ms\n"
    )
    read = capture(tmp_path, totals)
    assert [(f.name, f.value, f.unit) for f in read.summary] == [
        ("Total frames rendered", 200, "frames"),
        ("Janky frames", 20, "frames"),
        ("Janky frames share", 10, "%"),
        ("90th percentile", 12, "ms"),
    ]
    assert (read.series, len(read.notes)) == ((), 1)
    fenced = f"{totals}---PROFILEDATA---\n{STATS}{FRAMES}---PROFILEDATA---\n"
    assert len(capture(tmp_path, fenced).series[0]) == 2
    flagged = f"{totals}---PROFILEDATA---\n{STATS}1,1,2,\n---PROFILEDATA---\n"
    assert refused(tmp_path, flagged).reason.startswith("no ordinary frame")


# OBS


def test_a_count_of_more_digits_than_a_count_has_is_none(tmp_path: Path) -> None:
    line = f"10:20:00.000: Output 'r': Total drawn frames: {'9' * 5000}\n"
    assert "without counts" in refused(tmp_path, line).reason


def test_a_count_that_was_cut_in_writing_is_left_out(tmp_path: Path) -> None:
    drawn = "10:20:00.000: Output 'r': Total drawn frames: 71950\n"
    lagged = (
        "10:20:00.000: Output 'r': Number of lagged frames due to rendering "
        "lag/stalls: 150"
    )
    read = capture(tmp_path, drawn + lagged)
    assert [(c.dropped, c.total) for c in read.counters] == [(0, 71950)]
    assert read.notes[-1] == ("the last line has no end and may be cut: it is left out")
    whole = capture(tmp_path, f"{drawn}{lagged} (0.2%)\n")
    assert [(c.dropped, c.total) for c in whole.counters] == [(150, 71950)]


# PerfDog and WebRTC


def test_a_second_without_frames_is_left_out_and_told(tmp_path: Path) -> None:
    rows = [
        {"FrameTimes": [16.0, 17.0], "Jank": 0, "BigJank": 0},
        {"FrameTimes": None, "Jank": 0, "BigJank": 0},
        {"Jank": 0, "BigJank": 0},
        {"FrameTimes": [18.0], "Jank": 0, "BigJank": 0},
    ]
    read = capture(tmp_path, json.dumps(rows))
    assert frame_ms(read.series[0]) == [16.0, 17.0, 18.0]
    assert read.notes == ("2 rows have no frame times and are left out",)


def test_a_poll_a_line_is_a_dump_as_well(tmp_path: Path) -> None:
    poll = {"type": "inbound-rtp", "kind": "video", "ssrc": 7, "framesDropped": 3}
    lines = [{**poll, "timestamp": i, "framesDecoded": 30 * i} for i in (1, 2)]
    read = capture(tmp_path, "\n".join(map(json.dumps, lines)) + "\n")
    assert [(c.dropped, c.total) for c in read.counters] == [(3, 63)]


# Nsight Systems


@pytest.mark.parametrize(
    ("start", "cell"),
    [
        pytest.param("Start (ns)", "{ns}", id="ns"),
        pytest.param("Start (us)", "{us}", id="us"),
        pytest.param("Start (ms)", "{ms}", id="ms"),
        pytest.param("Start (sec)", "{s}", id="s"),
        pytest.param("start_ns", "{ns}", id="our own selection"),
    ],
)
@pytest.mark.parametrize(
    "above", ["", "Processing [a.sqlite] with [nvtx.py]... \n\n"], ids=["bare", "above"]
)
def test_a_trace_says_its_unit(
    tmp_path: Path, start: str, cell: str, above: str
) -> None:
    text = f"{above}{start},Duration (ns),Name\n" + rows(f"{cell},5,frame")
    read = capture(tmp_path, text)
    assert (read.format, step_ms(read.series[0])) == ("nsys", [16.0] * 5)


def test_a_summary_of_nsight_is_no_trace(tmp_path: Path) -> None:
    error = refused(
        tmp_path,
        "Time (%),Total Time (ns),Instances,Avg (ns),Name\n60.0,1000,3,333,a\n",
    )
    assert error.reason.startswith("a summary of Nsight Systems")


# Plain tables


def test_durations_beside_stamps_are_no_stamps(tmp_path: Path) -> None:
    text = "t_ms,decode_time_ms\n" + "".join(
        f"{i * 16.0},{7 + i % 2}\n" for i in range(10)
    )
    read = capture(tmp_path, text)
    assert [series.name for series in read.series] == ["t_ms"]
    assert read.notes == (
        "decode_time_ms: values that go up and down are no stamps: left out",
    )


@pytest.mark.parametrize(
    "header",
    [
        pytest.param("Time (\u00b5s)".encode(), id="micro sign"),
        pytest.param("Time (\u03bcs)".encode(), id="Greek letter"),
        pytest.param("Time (\u00b5s)".encode("latin-1"), id="old code page"),
        pytest.param(b"t_us", id="us"),
        pytest.param(b"timestamp_usec", id="usec"),
    ],
)
def test_microseconds_are_no_seconds(tmp_path: Path, header: bytes) -> None:
    read = capture(tmp_path, header + b"\n0\n16000\n32000\n")
    assert step_ms(read.series[0]) == [16.0] * 2


@pytest.mark.parametrize(
    ("header", "event"),
    [
        pytest.param("imageFirstPixelOut", Event.DISPLAY, id="Vulkan"),
        pytest.param("image_first_pixel_out_ns", Event.DISPLAY, id="its words"),
        pytest.param("queue_operations_end_ns", Event.GPU_END, id="queue end"),
        pytest.param("actual_present_time_ns", Event.DISPLAY, id="actual"),
        pytest.param("present_ns", Event.PRESENT, id="present"),
    ],
)
def test_a_name_says_what_is_stamped(tmp_path: Path, header: str, event: Event) -> None:
    read = capture(tmp_path, f"{header}\n0\n16000000\n32000000\n")
    assert read.series[0].event is event
    assert step_ms(read.series[0]) == [16.0] * 2


@pytest.mark.parametrize(
    "header",
    [
        "Frame/s",
        "1/s",
        "cpu_time_ms",
        "gpu_time_ms",
        "total time ms",
        "Avg Time (ms)",
        "latency_ms",
    ],
)
def test_times_that_are_no_stamps_are_refused(tmp_path: Path, header: str) -> None:
    error = refused(tmp_path, f"{header}\n1\n2\n3\n")
    assert error.reason.startswith("no known capture format")


def test_a_comment_above_the_header_says_nothing(tmp_path: Path) -> None:
    read = capture(tmp_path, "# made by hand\nt_ms\n0\n16\n32\n")
    assert step_ms(read.series[0]) == [16.0] * 2
    assert read.series[0].rows is not None
    assert read.series[0].rows.tolist() == [3, 4, 5]


# Video


@pytest.mark.parametrize(
    ("container", "codec", "base"),
    [
        pytest.param("mpegts", "mpeg2video", Fraction(1, 90_000), id="stream"),
        pytest.param("mpeg", "mpeg2video", Fraction(1, 90_000), id="program stream"),
        pytest.param("asf", "wmv2", Fraction(1, 1000), id="asf"),
        pytest.param("avi", "mpeg4", Fraction(1, 25), id="avi"),
    ],
)
def test_a_container_is_told_by_its_first_bytes(
    tmp_path: Path, container: str, codec: str, base: Fraction
) -> None:
    av = pytest.importorskip("av")
    numpy = importlib.import_module("numpy")
    file = tmp_path / "clip"
    with av.open(str(file), "w", format=container) as made:
        stream = made.add_stream(codec, rate=25)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        for index in range(12):
            image = numpy.full((32, 32, 3), index * 20, numpy.uint8)
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = index, Fraction(1, 25)
            made.mux(stream.encode(frame))
        made.mux(stream.encode(None))
    read = read_capture(file)
    (series,) = read.series
    assert (read.format, series.event, series.time_base) == ("video", Event.PTS, base)
    assert step_ms(series) == [40.0] * 11
