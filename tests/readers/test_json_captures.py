from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_veo.errors import CaptureError
from pytest_veo.readers import Capture
from pytest_veo.readers import read_capture


def capture(path: Path, document: Any) -> Capture:
    file = path / "capture.json"
    text = document if isinstance(document, str) else json.dumps(document, indent=1)
    file.write_text(text)
    return read_capture(file)


def capframex(**data: Any) -> dict[str, Any]:
    run: dict[str, Any] = {
        "TimeInSeconds": [0, 0.016, 0.032, 0.048],
        "MsBetweenPresents": [16, 16.0, 16, 16.0],
        "MsUntilDisplayed": [20.0, 0, 20.0, 20.0],
        "MsBetweenDisplayChange": [16.0, 0, 32.0, 16.0],
        "Dropped": [False, True, False, False],
        "PcLatency": None,
    }
    run.update(data)
    info = {"ProcessName": "game.exe", "AppVersion": "1.7", "GPU": "RTX"}
    return {"Info": info, "Runs": [{"Hash": "x", "CaptureData": run}]}


def test_a_capframex_run_mixes_whole_and_broken_numbers(tmp_path: Path) -> None:
    read = capture(tmp_path, capframex())
    present, display = read.series
    assert (read.format, read.version, present.process) == (
        "capframex",
        "1.7",
        "game.exe",
    )
    assert present.intervals_ns.tolist() == [16_000_000] * 3
    assert present.dropped is not None
    assert present.dropped.tolist() == [False, True, False, False]
    assert present.rows is None
    assert display.stamps_ns.tolist() == [20_000_000, 52_000_000, 68_000_000]


def test_lists_that_are_null_are_left_out(tmp_path: Path) -> None:
    document = capframex(
        MsUntilDisplayed=None, MsBetweenDisplayChange=None, Dropped=None
    )
    read = capture(tmp_path, document)
    assert len(read.series) == 1
    assert read.series[0].dropped is None


def test_runs_of_an_aggregation_stay_apart(tmp_path: Path) -> None:
    document = capframex()
    document["Runs"] *= 2
    read = capture(tmp_path, document)
    assert [s.name for s in read.select(event="present")] == [
        "game.exe run 1",
        "game.exe run 2",
    ]
    assert "2 runs in one file: each is a series of its own" in read.notes


@pytest.mark.parametrize(
    ("change", "column", "reason"),
    [
        pytest.param(
            {"TimeInSeconds": [0, "x", 1, 2]},
            "Runs[0].CaptureData.TimeInSeconds[1]",
            "'x' is no number",
            id="text",
        ),
        pytest.param(
            {"TimeInSeconds": [0, None, 1, 2]},
            "Runs[0].CaptureData.TimeInSeconds[1]",
            "no value, where a time must be",
            id="null",
        ),
        pytest.param(
            {"TimeInSeconds": [0, 1e300, 1, 2]},
            "Runs[0].CaptureData.TimeInSeconds[1]",
            "1e+300, where a time must be",
            id="beyond",
        ),
        pytest.param(
            {"MsBetweenPresents": [16, 16]},
            "Runs[0].CaptureData.MsBetweenPresents",
            "2 entries beside 4 stamps",
            id="lengths",
        ),
        pytest.param(
            {"TimeInSeconds": None},
            "Runs[0].CaptureData.TimeInSeconds",
            "not there",
            id="no stamps",
        ),
        pytest.param(
            {"TimeInSeconds": [0, 0.016, 97_200, 97_200.016]},
            "Runs[0].CaptureData.TimeInSeconds[2]",
            "a frame of 27.0 hours: the clock jumped, or two captures are in one file",
            id="27 hours",
        ),
        pytest.param(
            {"TimeInSeconds": [0.1, 0.116, 0.0, 0.016]},
            "Runs[0].CaptureData.TimeInSeconds[2]",
            "time of game.exe goes back by 116 ms: two captures in one file, or a "
            "clock that was set; split the file here",
            id="time goes back",
        ),
    ],
)
def test_a_damaged_run_names_the_path(
    tmp_path: Path, change: dict[str, Any], column: str, reason: str
) -> None:
    with pytest.raises(CaptureError) as caught:
        capture(tmp_path, capframex(**change))
    assert (caught.value.column, caught.value.reason) == (column, reason)


def test_json_that_is_cut_has_line_and_column(tmp_path: Path) -> None:
    text = json.dumps(capframex(), indent=1)
    with pytest.raises(CaptureError) as caught:
        capture(tmp_path, text[: len(text) // 2])
    assert caught.value.reason.startswith("no JSON at column ")
    assert caught.value.line is not None


def test_nesting_without_end_is_refused(tmp_path: Path) -> None:
    text = '{"Runs": [{"CaptureData": ' + "[" * 100_000
    with pytest.raises(CaptureError, match="no JSON that can be read"):
        capture(tmp_path, text)


def perfdog(rows: list[list[float]], jank: int, big: int) -> list[dict[str, Any]]:
    made = [
        {"FrameTimes": times, "Jank": 0, "BigJank": 0, "Stutter": 0.0} for times in rows
    ]
    made[-1].update(Jank=jank, BigJank=big)
    return made


def test_perfdog_s_seconds_are_one_series_and_its_janks_agree(tmp_path: Path) -> None:
    read = capture(
        tmp_path, perfdog([[], [16.0] * 60, [16.0, 90.0, 16.0, 300.0]], 2, 1)
    )
    series = read.series[0]
    assert len(series) == 64
    figures = {figure.name: figure.value for figure in series.figures("perfdog")}
    assert (figures["Jank"], figures["BigJank"]) == (2, 1)
    assert read.notes == ()


def test_a_jank_count_that_disagrees_is_told(tmp_path: Path) -> None:
    read = capture(tmp_path, {"data": perfdog([[16.0] * 60, [16.0, 200.0]], 0, 0)})
    assert read.notes == (
        "the file counts 0 janks and 0 big ones, the frame times 1 and 1",
    )


def test_macrobenchmark_s_durations_are_no_pace(tmp_path: Path) -> None:
    document = {
        "context": {"build": {"model": "Pixel"}},
        "benchmarks": [
            {
                "name": "scroll",
                "metrics": {"frameCount": {"minimum": 3, "median": 3, "maximum": 3}},
                "sampledMetrics": {
                    "frameDurationCpuMs": {
                        "P50": 5.0,
                        "runs": [[5.0, 6.0, 4.0], [5.0]],
                    },
                    "frameOverrunMs": {"P50": -6.0, "runs": [[-6.0, 2.5, 0.0], [1.0]]},
                },
            }
        ],
    }
    read = capture(tmp_path, document)
    assert [series.name for series in read.series] == ["scroll run 1", "scroll run 2"]
    assert all(series.sampled for series in read.series)
    counter = read.counters[0]
    assert (counter.name, counter.dropped, counter.total) == (
        "missed deadline (scroll)",
        2,
        4,
    )
    assert read.facts == (("model", "Pixel"),)
    assert "scroll frameDurationCpuMs P50" in [figure.name for figure in read.summary]


def inbound(frames: int, dropped: int, stamp: float, **more: Any) -> dict[str, Any]:
    return {
        "type": "inbound-rtp",
        "kind": "video",
        "ssrc": 7,
        "timestamp": stamp,
        "framesDecoded": frames,
        "framesDropped": dropped,
        "framesReceived": frames + dropped,
        **more,
    }


def test_webrtc_counters_are_read_from_the_last_poll(tmp_path: Path) -> None:
    spread = {
        "totalInterFrameDelay": 9.635,
        "totalSquaredInterFrameDelay": 0.3352990000000002,
    }
    polls = [
        {"stats": [inbound(10, 0, 1000.0), {"type": "inbound-rtp", "kind": "audio"}]},
        {"stats": [inbound(292, 8, 2000.0, **spread)]},
    ]
    read = capture(tmp_path, polls)
    counter = read.counters[0]
    assert (counter.dropped, counter.total) == (8, 300)
    figures = {figure.name: figure.value for figure in read.summary}
    assert figures["inter-frame delay std (7)"] == pytest.approx(7.714289484088831)
    with pytest.raises(CaptureError, match="can tell drop rates, never jitter"):
        read.pick(event="present")


def test_webrtc_counters_that_begin_anew_count_from_there(tmp_path: Path) -> None:
    polls = [inbound(500, 90, 1.0), inbound(600, 90, 2.0), inbound(50, 1, 3.0)]
    read = capture(tmp_path, polls)
    assert read.counters[0].dropped == 1
    assert read.notes[1] == (
        "stream 7: counters began anew after 2 polls; only what followed counts"
    )


def test_a_dump_of_webrtc_internals_is_read(tmp_path: Path) -> None:
    stats = {
        f"IT01V7-{name}": {"values": json.dumps(values)}
        for name, values in (
            ("framesDecoded", [10, 200]),
            ("framesDropped", [0, 5]),
            ("framesReceived", [10, 205]),
        )
    }
    read = capture(tmp_path, {"PeerConnections": {"1-1": {"stats": stats}}})
    assert (read.counters[0].dropped, read.counters[0].total) == (5, 205)


@pytest.mark.parametrize(
    "typed", [{"statsType": "track"}, {}], ids=["told by type", "told by name"]
)
def test_a_dump_s_tracks_repeat_their_stream_s_frames(
    tmp_path: Path, typed: dict[str, str]
) -> None:
    counts = {"framesDecoded": "[1, 200]", "framesReceived": "[1, 205]"}

    def stats(stream: str, more: dict[str, str]) -> dict[str, Any]:
        lists = {**counts, "framesDropped": "[0, 5]"}
        return {f"{stream}-{n}": {"values": v, **more} for n, v in lists.items()}

    track = stats("RTCMediaStreamTrack_receiver_2", typed)
    both = stats("RTCInboundRTPVideoStream_1", {}) | track
    for given in (both, track):
        read = capture(tmp_path, {"PeerConnections": {"1-1": {"stats": given}}})
        assert [(c.dropped, c.total) for c in read.counters] == [(5, 205)]


def test_perfdog_s_metrics_are_found_in_their_groups_too(tmp_path: Path) -> None:
    seconds = [
        {"FPS": {"Jank": 0, "BigJank": 0, "FrameTimes": [16.6] * 6}},
        {"FPS": {"Jank": 1, "BigJank": 1, "FrameTimes": [16.7, 130.0]}},
    ]
    read = capture(tmp_path, {"DataList": seconds})
    times = read.series[0].frame_times_ns
    assert times is not None
    assert times.tolist() == [16_600_000] * 6 + [16_700_000, 130_000_000]
    assert [figure.value for figure in read.summary] == [1, 1]
    assert read.notes == ()


def test_a_json_file_of_no_known_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no known capture format"):
        capture(tmp_path, {"hello": [1, 2, 3]})


def test_frame_times_are_the_file_s_own(tmp_path: Path) -> None:
    times = capture(tmp_path, capframex()).series[0].frame_times_ns
    assert times is not None
    assert np.array_equal(times, np.full(4, 16_000_000))
