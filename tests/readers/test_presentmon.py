from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_veo.errors import CaptureError
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.readers import Capture
from pytest_veo.readers import read_capture
from pytest_veo.readers import read_series


V1 = (
    "Application,ProcessID,SwapChainAddress,Runtime,SyncInterval,PresentFlags,"
    "AllowsTearing,PresentMode,Dropped,TimeInSeconds,MsBetweenPresents,"
    "MsBetweenDisplayChange,MsInPresentAPI,MsUntilRenderComplete,MsUntilDisplayed\n"
)
V19 = (
    "Application,ProcessID,SwapChainAddress,Runtime,SyncInterval,PresentFlags,Dropped,"
    "TimeInSeconds,msInPresentAPI,msBetweenPresents,AllowsTearing,PresentMode,"
    "msUntilRenderComplete,msUntilDisplayed,msBetweenDisplayChange,QPCTime\n"
)
V2 = (
    "Application,ProcessID,SwapChainAddress,PresentRuntime,SyncInterval,PresentFlags,"
    "AllowsTearing,PresentMode,FrameType,{start},FrameTime,CPUBusy,CPUWait,"
    "DisplayLatency,DisplayedTime\n"
)
DEFAULT = (
    "Application,ProcessID,SwapChainAddress,PresentRuntime,SyncInterval,PresentFlags,"
    "AllowsTearing,PresentMode,FrameType,{stamp},MsBetweenPresents,"
    "MsBetweenDisplayChange,MsUntilDisplayed,CPUStartTime,MsBetweenAppStart\n"
)


def v1_row(
    t: float,
    between: float,
    *,
    until: float = 20.0,
    change: float = 16.0,
    who: str = "game.exe,42,0x00000000000000AB",
    dropped: int = 0,
) -> str:
    return (
        f"{who},DXGI,0,0,0,Composed: Flip,{dropped},{t:.6f},{between:.3f},"
        f"{change:.3f},0.1,4.0,{until:.3f}\n"
    )


def capture(path: Path, text: str | bytes) -> Capture:
    file = path / "log.csv"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_capture(file)


def v1_frames(count: int = 5, start: float = 10.0) -> str:
    return "".join(v1_row(start + i * 0.016, 16.0) for i in range(count))


def test_version_1_gives_presents_and_displays(tmp_path: Path) -> None:
    rows = [
        v1_row(10.000, 16.0),
        v1_row(10.016, 16.0, dropped=1, until=0, change=0),
        v1_row(10.032, 16.0, change=32.0),
    ]
    read = capture(tmp_path, V1 + "".join(rows))
    present, display = read.series
    assert (read.format, read.version) == ("presentmon", "v1")
    assert present.event is Event.PRESENT
    assert present.t_ns.tolist() == [10_000_000_000, 10_016_000_000, 10_032_000_000]
    assert present.frame_times_ns is not None
    assert present.frame_times_ns.tolist() == [16_000_000] * 3
    assert present.dropped is not None
    assert present.dropped.tolist() == [False, True, False]
    assert present.rows is not None
    assert present.rows.tolist() == [2, 3, 4]
    assert display.event is Event.DISPLAY
    assert display.stamps_ns.tolist() == [10_020_000_000, 10_052_000_000]
    assert display.frame_times_ns is not None
    assert display.frame_times_ns.tolist() == [16_000_000, 32_000_000]


def test_presents_are_not_taken_for_displays_where_no_display_was_tracked(
    tmp_path: Path,
) -> None:
    rows = "".join(v1_row(i * 0.016, 16.0, until=0, change=0) for i in range(5))
    read = capture(tmp_path, V1 + rows)
    assert [series.event for series in read.series] == [Event.PRESENT]
    with pytest.raises(CaptureError, match="nothing with event=display; there is game"):
        read.pick(event="display")


def test_lower_case_names_are_version_1_too(tmp_path: Path) -> None:
    row = "game.exe,42,0xAB,DXGI,0,0,0,{t},0.1,16.0,0,Flip,4.0,20.0,16.0,{q}\n"
    rows = "".join(
        row.format(t=f"{i * 0.016:.14f}", q=1000 + i * 160_000) for i in range(3)
    )
    read = capture(tmp_path, V19 + rows)
    assert read.version == "v1"
    assert read.series[0].intervals_ns.tolist() == [16_000_000] * 2


def test_programs_and_swapchains_are_told_apart_though_rows_are_mixed(
    tmp_path: Path,
) -> None:
    game = [v1_row(0.010 + i * 0.010, 10.0) for i in range(20)]
    other = [
        v1_row(0.004 + i * 0.010, 10.0, who="game.exe,42,0x0000000000000000")
        for i in range(2)
    ]
    dwm = [v1_row(0.003 + i * 0.010, 10.0, who="dwm.exe,7,0xCD") for i in range(20)]
    rows = "".join(g + d for g, d in zip(game, dwm, strict=True)) + "".join(other)
    read = capture(tmp_path, V1 + rows)
    presents = read.select(event="present")
    assert [(s.name, len(s)) for s in presents] == [
        ("game.exe[42] 0xab", 20),
        ("dwm.exe[7] 0xcd", 20),
        ("game.exe[42] 0x0", 2),
    ]
    assert read.pick().name == "game.exe[42] 0xab"
    assert read.pick(process="DWM").process_id == 7
    assert read.pick(process=7).process == "dwm.exe"
    assert read.pick(swapchain="0x00000000000000AB").swapchain == 0xAB


def test_two_busy_programs_need_a_choice(tmp_path: Path) -> None:
    rows = "".join(
        v1_row(i * 0.01, 10.0, who=who)
        for who in ("game.exe,42,0xAB", "browser.exe,9,0xEF")
        for i in range(10)
    )
    read = capture(tmp_path, V1 + rows)
    with pytest.raises(CaptureError) as caught:
        read.pick()
    assert caught.value.reason == (
        "several series could be meant (game.exe[42] 0xab, browser.exe[9] 0xef): "
        "choose with process=, swapchain= or event= (--process, --swapchain, --event)"
    )
    assert len(read.pick(process="browser")) == 10


def test_addresses_with_and_without_zeros_are_one_swapchain(tmp_path: Path) -> None:
    rows = v1_row(0.0, 16.0) + v1_row(0.016, 16.0, who="game.exe,42,0xAB")
    assert len(capture(tmp_path, V1 + rows).select(event="present")) == 1


def test_rows_out_of_order_are_sorted_when_frame_times_prove_it(tmp_path: Path) -> None:
    rows = [v1_row(i * 0.016, 16.0) for i in range(12)]
    rows[3], rows[4] = rows[4], rows[3]
    read = capture(tmp_path, V1 + "".join(rows))
    assert read.series[0].intervals_ns.tolist() == [16_000_000] * 11
    assert read.notes == (
        "game.exe[42] 0xab: 1 rows out of order, the first at line 6; sorted by "
        "TimeInSeconds, which the frame times confirm",
    )


def test_neighbours_out_of_order_are_sorted_and_told(tmp_path: Path) -> None:
    rows = [v1_row(i * 0.016, 15.0 + i % 3) for i in range(40)]
    rows[3], rows[4] = rows[4], rows[3]
    read = capture(tmp_path, V1 + "".join(rows))
    assert read.series[0].intervals_ns.tolist() == [16_000_000] * 39
    assert read.notes[0] == (
        "game.exe[42] 0xab: 1 rows out of order, the first at line 6; sorted by "
        "TimeInSeconds"
    )


def test_two_captures_of_one_swapchain_are_refused_with_the_line(
    tmp_path: Path,
) -> None:
    with pytest.raises(CaptureError) as caught:
        capture(tmp_path, V1 + v1_frames(10) + v1_frames(10, start=9.995))
    assert (caught.value.line, caught.value.column) == (12, "TimeInSeconds")
    assert caught.value.reason == (
        "time of game.exe[42] 0xab goes back by 149 ms: two captures in one file, or a "
        "clock that was set; split the file here"
    )


def test_a_frame_of_27_hours_is_refused(tmp_path: Path) -> None:
    rows = v1_frames(5) + v1_row(10.064 + 97_200, 97_200_000.0)
    with pytest.raises(CaptureError) as caught:
        capture(tmp_path, V1 + rows)
    assert (caught.value.line, caught.value.column) == (7, "TimeInSeconds")
    assert caught.value.reason == (
        "a frame of 27.0 hours: the clock jumped, or two captures are in one file"
    )


def test_a_frame_time_that_the_stamps_deny_is_refused(tmp_path: Path) -> None:
    rows = v1_frames(5) + v1_row(10.080, 97_200_000.0)
    with pytest.raises(CaptureError) as caught:
        capture(tmp_path, V1 + rows)
    assert (caught.value.line, caught.value.column) == (7, "MsBetweenPresents")
    assert caught.value.reason == ("a frame of 97200 s between stamps 16 ms apart")


def test_a_first_frame_time_that_reaches_back_for_hours_is_left_out(
    tmp_path: Path,
) -> None:
    rows = v1_row(10.0, 97_200_000.0) + v1_frames(5, start=10.016)
    read = capture(tmp_path, V1 + rows)
    times = read.series[0].frame_times_ns
    assert times is not None
    assert times.tolist() == [0] + [16_000_000] * 5
    assert read.series[0].figures("frameview")[0].value == pytest.approx(62.5)
    assert read.notes == (
        "game.exe[42] 0xab: line 2: a frame time of 27.0 hours reaches out of the "
        "capture; it is left out",
    )


def test_a_long_freeze_is_kept_and_told(tmp_path: Path) -> None:
    rows = v1_frames(5) + v1_row(22.064, 12_000.0)
    read = capture(tmp_path, V1 + rows)
    assert read.notes == ("line 7: a frame of 12 s, kept as it is",)
    assert read.series[0].intervals_ns.max() == 12_000_000_000


def test_missing_rows_are_told(tmp_path: Path) -> None:
    rows = v1_frames(5) + v1_frames(5, start=10.5)
    notes = capture(tmp_path, V1 + rows).notes
    assert notes == (
        "game.exe[42] 0xab: the frame times sum to 144 ms, the stamps span 564 ms: "
        "rows are missing",
    )


def v2(path: Path, start: str, stamps: list[str]) -> Capture:
    rows = "".join(
        f"game.exe,42,0xAB,DXGI,0,0,0,Flip,Application,{stamp},16.0000,15.0000,1.0000,"
        f"{latency},{shown}\n"
        for stamp, latency, shown in zip(
            stamps, ["30.0", "NA", "30.0"], ["16.0", "NA", "NA"], strict=True
        )
    )
    return capture(path, V2.format(start=start) + rows)


@pytest.mark.parametrize(
    ("start", "stamps", "clock"),
    [
        pytest.param("CPUStartTime", ["5.0", "21.0", "37.0"], Clock.TOOL, id="ms"),
        pytest.param(
            "CPUStartTime", ["0.005", "0.021", "0.037"], Clock.TOOL, id="seconds"
        ),
        pytest.param("CPUStartQPC", ["50000", "210000", "370000"], Clock.QPC, id="QPC"),
        pytest.param(
            "CPUStartQPCTime", ["5.0", "21.0", "37.0"], Clock.QPC, id="QPC ms"
        ),
    ],
)
def test_version_2_proves_the_unit_of_its_stamps(
    tmp_path: Path, start: str, stamps: list[str], clock: Clock
) -> None:
    read = v2(tmp_path, start, stamps)
    cpu, display = read.series
    assert read.version == "v2"
    assert (cpu.event, cpu.clock) == (Event.CPU_START, clock)
    assert cpu.t_ns.tolist() == [5_000_000, 21_000_000, 37_000_000]
    assert cpu.dropped is not None
    # A time on screen of zero is NA too: only a missing latency means dropped.
    assert cpu.dropped.tolist() == [False, True, False]
    assert display.stamps_ns.tolist() == [35_000_000, 67_000_000]


def test_the_frequency_of_an_old_counter_is_told_by_the_frame_times(
    tmp_path: Path,
) -> None:
    hz = 3_579_545
    stamps = [str(round(1_000_000 + i * 0.016 * hz)) for i in range(3)]
    read = v2(tmp_path, "CPUStartQPC", stamps)
    steps = read.series[0].intervals_ns
    assert np.abs(steps - 16_000_000).max() < 300
    assert read.notes[0].startswith("CPUStartQPC counts at 3.5795")


def test_a_counter_that_no_frame_time_matches_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="the counter's frequency cannot be told"):
        v2(tmp_path, "CPUStartQPC", ["1", "2", "3"])


def test_version_2_0_adds_busy_and_wait(tmp_path: Path) -> None:
    header = V2.format(start="CPUStartTime").replace("FrameTime,", "")
    rows = "".join(
        f"g.exe,1,0x1,DXGI,0,0,0,Flip,Application,{i * 16.0},15.0,1.0,30.0,16.0\n"
        for i in range(3)
    )
    read = capture(tmp_path, header + rows)
    assert read.series[0].frame_times_ns is not None
    assert read.series[0].frame_times_ns.tolist() == [16_000_000] * 3


def default(
    path: Path, stamp: str, stamps: list[str], kinds: list[str] | None = None
) -> Capture:
    kinds = kinds or ["Application"] * len(stamps)
    until = ["20.0" if i != 1 else "NA" for i in range(len(stamps))]
    rows = "".join(
        f"game.exe,42,0xAB,DXGI,0,0,0,Flip,{kind},{t},16.0,16.0,{u},{i * 16.0},16.0\n"
        for i, (kind, t, u) in enumerate(zip(kinds, stamps, until, strict=True))
    )
    return capture(path, DEFAULT.format(stamp=stamp) + rows)


@pytest.mark.parametrize(
    ("stamp", "stamps", "clock"),
    [
        pytest.param("TimeInSeconds", ["0.5", "0.516", "0.532"], Clock.TOOL, id="s"),
        pytest.param("TimeInMs", ["500.0", "516.0", "532.0"], Clock.TOOL, id="ms"),
        pytest.param(
            "TimeInQPC", ["5000000", "5160000", "5320000"], Clock.QPC, id="QPC"
        ),
        pytest.param(
            "TimeInDateTime",
            [
                "2024-1-5 9:05:07.000000000",
                "2024-1-5 9:05:07.016000000",
                "2024-1-5 9:05:07.032000000",
            ],
            Clock.REALTIME,
            id="date and time without zeros",
        ),
    ],
)
def test_the_default_header_reads_in_every_unit(
    tmp_path: Path, stamp: str, stamps: list[str], clock: Clock
) -> None:
    read = default(tmp_path, stamp, stamps)
    present = read.series[0]
    assert (read.version, present.clock) == ("default", clock)
    assert present.intervals_ns.tolist() == [16_000_000] * 2
    assert present.dropped is not None
    assert present.dropped.tolist() == [False, True, False]


def test_generated_frames_are_displays_and_no_presents(tmp_path: Path) -> None:
    stamps = ["0.500", "0.500", "0.516", "0.516", "0.532", "0.532"]
    kinds = ["Application", "Intel XeSS-FG"] * 3
    read = default(tmp_path, "TimeInSeconds", stamps, kinds)
    present = read.pick(event="present")
    assert present.intervals_ns.tolist() == [16_000_000] * 2
    assert "3 generated frames count as displays, not as presents" in read.notes[0]


def test_the_capture_application_s_coarse_stamps_are_rebuilt(tmp_path: Path) -> None:
    header = DEFAULT.format(stamp="TimeInSeconds").strip() + ",CPUUtilization\n"
    times, rows = 0.0, ""
    intervals = [0.0] + [5.1234 + (i % 5) * 0.4321 for i in range(1, 400)]
    for between in intervals:
        times += between / 1000
        rows += (
            f"game.exe,42,0xAB,DXGI,0,0,0,Flip,Application,{times:.4g},"
            f"{between:.4f},16.0,20.0,NA,16.0,50.1\n"
        )
    read = capture(tmp_path, header + rows)
    assert read.version == "app"
    steps = read.series[0].intervals_ns
    assert np.abs(steps - np.array(intervals[1:]) * 1e6).max() < 60
    assert read.notes == (
        "game.exe[42] 0xab: TimeInSeconds is written coarsely; stamps are rebuilt from "
        "MsBetweenPresents, which agrees and is finer",
    )


def test_display_stamps_that_contradict_each_other_make_no_series(
    tmp_path: Path,
) -> None:
    rows = "".join(
        v1_row(i * 0.016, 16.0, until=60.0 if i % 3 == 0 else 5.0) for i in range(30)
    )
    read = capture(tmp_path, V1 + rows)
    assert [series.event for series in read.series] == [Event.PRESENT]
    assert read.notes == (
        "game.exe[42] 0xab: the display stamps contradict each other (20 of 30 lie "
        "before an earlier frame's): no series of displays",
    )


def test_samples_of_a_shrunken_log_are_recognised(tmp_path: Path) -> None:
    rows = "".join(v1_row(i * 0.25, 10.0) for i in range(20))
    assert capture(tmp_path, V1 + rows).series[0].sampled


def test_a_byte_order_mark_and_crlf_change_nothing(tmp_path: Path) -> None:
    text = "\ufeff" + (V1 + v1_frames()).replace("\n", "\r\n")
    assert len(capture(tmp_path, text).series[0]) == 5


def test_read_series_gives_the_one_that_is_meant(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text(V1 + v1_frames())
    assert read_series(file).event is Event.PRESENT
    assert read_series(str(file), event="display").event is Event.DISPLAY


FRAMEVIEW = (
    "Application,GPU,CPU,Resolution,Runtime,AllowsTearing,ProcessID,SwapChainAddress,"
    "SyncInterval,PresentFlags,PresentMode,Dropped,TimeInSeconds,MsBetweenPresents,"
    "MsBetweenDisplayChange,MsInPresentAPI,MsRenderPresentLatency,MsUntilDisplayed,"
    "Render Queue Depth,MsPCLatency,GPU0Util(%)\n"
)


def test_frameview_s_padded_cells_and_na_are_read(tmp_path: Path) -> None:
    row = (
        "game.exe,RTX 9,CPU 1,{res},D3D12,0,42,0xAB,0,0,Flip,{lost}, {t},33.333,"
        " {change},1.0,2.0, {until}, 1,NA, 45\n"
    )
    rows = [
        row.format(res="WINDOWED", lost=0, t="7433.100", change="33.3", until="50.0"),
        row.format(res="3840x2160", lost=1, t="7433.133333", change="NA", until="NA"),
        row.format(
            res="3840x2160", lost=0, t="7433.166666", change="66.6", until="50.0"
        ),
    ]
    read = capture(tmp_path, FRAMEVIEW + "".join(rows))
    present, display = read.series
    assert (read.format, present.tool) == ("frameview", "frameview")
    assert present.dropped is not None
    assert present.dropped.tolist() == [False, True, False]
    assert display.stamps_ns.size == 2
    assert read.facts[0] == ("GPU", "RTX 9")


OCAT = V1.strip() + ',Motherboard,OS,Processor,System RAM,GPU,"GPU Clock, MHz"\n'


def test_ocat_s_ragged_rows_are_read_and_told(tmp_path: Path) -> None:
    first = v1_row(0.012, 12.0).strip() + ',"MSI, Inc. (Z390)",Win,i9,32 GB,RTX,-\n'
    text = OCAT + first + v1_row(0.028, 16.0) + v1_row(0.044, 16.0)
    read = capture(tmp_path, text)
    assert read.format == "ocat"
    assert ("Motherboard", "MSI, Inc. (Z390)") in read.facts
    assert len(read.series[0]) == 3
    assert read.notes[0].startswith(
        "2 rows are shorter than the header, from line 3 on"
    )
    figures = {figure.name: figure.value for figure in read.series[0].figures("ocat")}
    # OCAT divides by the last stamp: time before the first frame counts.
    assert figures["Average FPS (Application)"] == pytest.approx(3 / 0.044)


def test_a_capframex_csv_has_its_preamble(tmp_path: Path) -> None:
    preamble = "//GameName=Metro\n//Processor=i9\n//Comment=\n"
    header = V1.replace("Dropped", "WasBatched,DwmNotified,Dropped")
    rows = v1_frames(4).replace("Composed: Flip,0", "Composed: Flip,0,0,0")
    read = capture(tmp_path, preamble + header + rows)
    assert (read.format, read.version) == ("capframex", "csv")
    assert read.facts == (("GameName", "Metro"), ("Processor", "i9"))
    assert read.series[0].rows is not None
    assert read.series[0].rows[0] == 5
