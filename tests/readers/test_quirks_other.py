"""What the other tools do that nobody would expect, one small file each."""

from __future__ import annotations

import importlib
import json
from fractions import Fraction
from pathlib import Path

import pytest

from pytest_veo.frames.series import Event
from pytest_veo.readers import afterburner
from pytest_veo.readers import read_capture
from tests.readers.quirks import capture
from tests.readers.quirks import frame_ms
from tests.readers.quirks import refused
from tests.readers.quirks import rows
from tests.readers.quirks import step_ms


# MSI Afterburner

HML = (
    "00, 24-10-2025 16:56:05, Hardware monitoring log v1.6\n"
    "02, 24-10-2025 16:56:05, Power,Framerate,Frametime\n"
    "80, 24-10-2025 16:56:05,100.1,60.0,16.66\n"
    "80, 24-10-2025 16:56:06,100.1,60.0,16.66\n"
)


def test_a_copy_of_afterburner_s_log_without_its_title_is_read(tmp_path: Path) -> None:
    read = capture(tmp_path, HML.partition("\n")[2])
    assert (read.format, read.version) == ("afterburner", "")
    assert frame_ms(read.series[0]) == [16.66] * 2


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


# OBS


def test_losses_of_nobody_knows_how_many_are_no_rate(tmp_path: Path) -> None:
    lagged = "Number of lagged frames due to rendering lag/stalls"
    read = capture(
        tmp_path,
        "21:05:05.429: OBS 32.2.2\n"
        "21:05:05.429: Output 'file': Total frames output: 3600\n"
        f"21:05:05.429: Output 'file': {lagged}: 12 (0.3%)\n"
        f"21:05:05.429: Output 'stream': {lagged}: 40 (0.1%)\n",
    )
    assert [(c.name, c.dropped, c.total) for c in read.counters] == [
        ("lagged (file)", 12, 3600),
        ("network (file)", 0, 3600),
    ]
    assert read.notes[1:] == (
        "lagged (stream): 40 frames, but not of how many: left out",
    )


# PerfDog, Macrobenchmark and WebRTC


def test_an_export_without_frame_times_says_what_to_switch_on(tmp_path: Path) -> None:
    row = {"TimeStamp": "0", "IosFps": {"fps": 18.0, "Jank": -1.0}, "IsDelete": False}
    error = refused(tmp_path, json.dumps({"data": {"report": {"DataList": [row]}}}))
    assert error.reason == (
        "no list of rows with frame times: switch FrameTime on before recording"
    )


def test_a_group_named_like_its_metric_is_looked_into(tmp_path: Path) -> None:
    still, frozen = [16.0] * 10, [16.0] * 4 + [200.0]
    rows = [
        {
            "TimeStamp": str(second * 1000),
            "IosFps": {"fps": len(times), "Jank": float(max(times) > 100)},
            "BigJank": {"BigJank": float(max(times) > 100)},
            "FrameDetails": {"FrameTimes": times, "InterFrameIndex": []},
        }
        for second, times in enumerate([still, frozen])
    ]
    document = {"ret": 0, "data": {"report": {"DataList": rows}}}
    read = capture(tmp_path, json.dumps(document))
    assert frame_ms(read.series[0]) == still + frozen
    assert [(f.name, f.value) for f in read.summary] == [
        ("Jank", 1.0),
        ("BigJank", 1.0),
    ]
    assert read.notes == ()


def test_percentiles_without_their_runs_are_figures(tmp_path: Path) -> None:
    metrics = {"frameDurationCpuMs": {"P50": 8.0}, "frameOverrunMs": {"P50": -2.0}}
    document = {"benchmarks": [{"name": "scroll", "sampledMetrics": metrics}]}
    read = capture(tmp_path, json.dumps(document))
    assert [(f.name, f.value) for f in read.summary] == [
        ("scroll frameDurationCpuMs P50", 8.0),
        ("scroll frameOverrunMs P50", -2.0),
    ]
    assert (read.series, read.counters) == ((), ())


def test_a_track_tells_what_its_stream_dropped(tmp_path: Path) -> None:
    stream = {"type": "inbound-rtp", "mediaType": "video", "ssrc": 7, "timestamp": 1}
    track = {"type": "track", "id": "receiver_2", "kind": "video", "timestamp": 1}
    polls = [
        {**stream, "framesDecoded": 297},
        {**track, "framesDecoded": 297, "framesDropped": 3, "framesReceived": 300},
    ]
    read = capture(tmp_path, json.dumps(polls))
    assert [(c.name, c.dropped, c.total) for c in read.counters] == [
        ("framesDropped (receiver_2)", 3, 300)
    ]


def test_a_star_behind_a_counter_is_no_part_of_its_name(tmp_path: Path) -> None:
    stats = {"V1-framesDecoded": "[10,30]", "V1-freezeCount*": "[0,2]"}
    entries = {name: {"values": values} for name, values in stats.items()}
    dump = {"PeerConnections": {"7-1": {"stats": entries}}}
    read = capture(tmp_path, json.dumps(dump))
    assert [(f.name, f.value) for f in read.summary] == [
        ("framesDecoded (V1)", 30.0),
        ("freezeCount (V1)", 2.0),
    ]


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
    "above",
    [
        "",
        "Processing [a.sqlite] with [nvtx.py]... \n\n",
        "Generating 'a.sqlite'\n[1/1] Executing 'nvtx' stats report\n\n ** NVTX:\n\n",
    ],
    ids=["bare", "above", "executing"],
)
def test_a_trace_says_its_unit(
    tmp_path: Path, start: str, cell: str, above: str
) -> None:
    text = f"{above}{start},Duration (ns),Name\n" + rows(f"{cell},5,frame")
    read = capture(tmp_path, text)
    assert (read.format, step_ms(read.series[0])) == ("nsys", [16.0] * 5)


def test_ranges_of_two_processes_are_told_apart(tmp_path: Path) -> None:
    body = rows("{ns},5,Frame,53\n{ns},5,Frame,54")
    read = capture(tmp_path, f"Start (ns),Duration (ns),Name,PID\n{body}")
    assert {s.name: step_ms(s) for s in read.series} == {
        "Frame[53]": [16.0] * 5,
        "Frame[54]": [16.0] * 5,
    }


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
        pytest.param("ts_ns", Event.FRAME, id="ts"),
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


@pytest.mark.parametrize(
    ("header", "row", "sampled"),
    [
        pytest.param("Time (s),FPS", "{i},60", True, id="a row a second"),
        pytest.param("t_ms,Frame Rate", "{i}00,59.9", True, id="ten a second"),
        pytest.param("t_ms;fps", "{i}00;59,9", True, id="semicolons"),
        pytest.param("t_ms,frame_ms", "{i}00,16.7", True, id="frame times"),
        pytest.param("t_ms,frame_ms", "{ms},16.0", False, id="every frame"),
        pytest.param("t_ms,fps", "{ms},62.5", False, id="every frame's rate"),
        pytest.param("t_ms,fps", "{ms},", False, id="no rate told"),
        pytest.param("t_s,load", "{i},60", False, id="nothing beside it"),
    ],
)
def test_samples_of_a_rate_are_no_frames(
    tmp_path: Path, header: str, row: str, sampled: bool
) -> None:
    read = capture(tmp_path, f"{header}\n" + rows(row, 12))
    assert read.series[0].sampled is sampled
    assert any("samples, not frames" in note for note in read.notes) is sampled


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
