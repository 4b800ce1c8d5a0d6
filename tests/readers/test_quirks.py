"""What tools that log presents do that nobody would expect, one small file each.

The other tests of this folder hold the quirks that need more than one file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_veo.errors import CaptureError
from tests.readers.quirks import PRESENTS
from tests.readers.quirks import capture
from tests.readers.quirks import frame_ms
from tests.readers.quirks import lost
from tests.readers.quirks import refused
from tests.readers.quirks import rows
from tests.readers.quirks import step_ms


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


def test_presents_completed_last_one_first_are_sorted(tmp_path: Path) -> None:
    read = capture(
        tmp_path,
        "Application,ProcessID,SwapChainAddress,PresentRuntime,TimeInMs,"
        "MsBetweenPresents,MsUntilDisplayed\n"
        "a.exe,1,0xA,DXGI,250.3881,85.2106,13.1781\n"
        "b.exe,2,0xB,DXGI,566.3335,0.0000,NA\n"
        "b.exe,2,0xB,DXGI,551.2604,0.0000,NA\n"
        "b.exe,2,0xB,DXGI,536.2604,0.0000,NA\n"
        "b.exe,2,0xB,DXGI,582.3335,46.0731,9.1\n",
    )
    thrown = read.pick(process="b.exe")
    assert step_ms(thrown) == [15.0, 15.0731, 16.0]
    assert lost(thrown) == [True, True, True, False]
    assert read.notes == (
        "b.exe[2] 0xb: 2 rows out of order, the first at line 4; sorted by TimeInMs",
    )


def test_seconds_that_are_milliseconds_are_told_by_the_header(tmp_path: Path) -> None:
    header = (
        "Application,ProcessID,SwapChainAddress,PresentRuntime,TimeInSeconds,"
        "MsBetweenPresents,CPUStartQPCTimeInMs\n"
    )
    body = header + "g.exe,1,0xA,D3D9,435.6989,107.9125,85754722.1368\n"
    read = capture(tmp_path, body)
    assert read.series[0].stamps_ns.tolist() == [435_698_900]
    assert read.notes == ("TimeInSeconds is in milliseconds, told by the header",)


@pytest.mark.parametrize(
    ("columns", "cells"),
    [
        pytest.param("TimeInSeconds", "{s}", id="no frame times"),
        pytest.param("CPUStartTimeInMs,MsCPUBusy", "{ms},3", id="busy times only"),
        pytest.param("CPUStartQPCTimeInMs", "{ms}", id="counter in ms"),
        pytest.param("CPUStartTime,MsBetweenPresents", "{s},16.0", id="presents"),
    ],
)
def test_stamps_alone_do_not_mix_programs(
    tmp_path: Path, columns: str, cells: str
) -> None:
    body = rows(f"a.exe,1,{cells}\nb.exe,2,{cells}")
    read = capture(tmp_path, f"Application,ProcessID,{columns}\n{body}")
    assert {s.name: step_ms(s) for s in read.series} == {
        "a.exe[1]": [16.0] * 5,
        "b.exe[2]": [16.0] * 5,
    }


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        pytest.param(
            "PresentFlags,MsBetweenPresents",
            "no column tells the time of a present: none of TimeInSeconds, TimeInMs, "
            "TimeInQPC, TimeInDateTime or CPUStartTime is there",
            id="no time",
        ),
        pytest.param(
            "PresentFlags,CPUStartTime",
            "the unit cannot be told: frame times do not match its steps",
            id="no unit",
        ),
    ],
)
def test_presents_without_a_time_are_refused(
    tmp_path: Path, columns: str, reason: str
) -> None:
    body = f"Application,ProcessID,{columns}\n" + rows("g.exe,1,0,{ms}")
    assert refused(tmp_path, body).reason == reason


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


@pytest.mark.parametrize(
    ("row", "figures"),
    [
        pytest.param('x.csv,"1,234",60.5', [60.5], id="thousands in quotes"),
        pytest.param("x.csv;1,234;60,5", [1.234, 60.5], id="decimal commas"),
    ],
)
def test_a_comma_in_a_result_is_what_its_table_says(
    tmp_path: Path, row: str, figures: list[float]
) -> None:
    header = "File,Missed frames,Average FPS (Application)"
    mark = ";" if ";" in row else ","
    read = capture(tmp_path, f"{header.replace(',', mark)}\n{row}\n")
    assert [figure.value for figure in read.summary] == figures


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


@pytest.mark.parametrize(
    ("names", "cells"),
    [
        pytest.param("\ufeffFile,Application Name", "x.csv,g.exe", id="newer"),
        pytest.param("Application Name,Date and Time", "g.exe,2019-02-20", id="older"),
    ],
)
def test_ocat_s_results_are_figures(tmp_path: Path, names: str, cells: str) -> None:
    read = capture(
        tmp_path,
        f"{names},Average FPS (Application),"
        f"99th-percentile frame time (ms) (Application)\n{cells},60.1,22.0\n",
    )
    assert (read.format, read.version) == ("ocat", "summary")
    assert [(f.value, f.unit) for f in read.summary] == [(60.1, "fps"), (22.0, "ms")]
