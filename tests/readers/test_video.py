from __future__ import annotations

import builtins
import importlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_veo.errors import BadSetting
from pytest_veo.errors import CaptureError
from pytest_veo.errors import MissingDependency
from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.jitter import judge
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.readers import read_capture
from pytest_veo.readers import read_series


BASE = Fraction(1, 90_000)
VARIABLE = [0, 1500, 3003, 6006, 7500, 10_500, 10_501, 13_505]


def write_clip(path: Path, ticks: list[int]) -> None:
    av = importlib.import_module("av")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=60)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        stream.time_base = stream.codec_context.time_base = BASE
        for index, tick in enumerate(ticks):
            image = np.full((32, 32, 3), index * 20 % 256, np.uint8)
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = tick, BASE
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


@pytest.fixture(autouse=True)
def _needs_av() -> None:
    pytest.importorskip("av")


def test_every_stamp_of_a_variable_rate_mp4_is_exact(tmp_path: Path) -> None:
    clip = tmp_path / "clip.mp4"
    write_clip(clip, VARIABLE)
    read = read_capture(clip)
    series = read.series[0]
    assert (read.format, series.event, series.clock) == (
        "video",
        Event.PTS,
        Clock.MEDIA,
    )
    assert series.ticks is not None
    assert series.time_base is not None
    exact = [int(tick) * series.time_base for tick in series.ticks]
    assert [stamp - exact[0] for stamp in exact] == [tick * BASE for tick in VARIABLE]
    rounded = [round(stamp * 10**9) for stamp in exact]
    assert np.abs(series.t_ns - np.array(rounded)).max() <= 1


def test_the_millisecond_of_a_matroska_file_is_told(tmp_path: Path) -> None:
    clip = tmp_path / "clip.mkv"
    write_clip(clip, VARIABLE)
    read = read_capture(clip)
    series = read.series[0]
    assert series.resolution_ns == 1_000_000
    assert (series.t_ns % 1_000_000 == 0).all()
    assert any("the container rounds stamps to 1 ms" in note for note in read.notes)


def test_a_budget_finer_than_the_container_is_refused(tmp_path: Path) -> None:
    clip = tmp_path / "clip.mkv"
    write_clip(clip, [index * 1500 for index in range(20)])
    series = read_series(clip)
    with pytest.raises(BadSetting):
        judge(series, JitterBudget(max_mad_ms=0.5))
    assert judge(series, JitterBudget(max_ms=40.0)).findings


def test_a_file_s_name_plays_no_part(tmp_path: Path) -> None:
    clip = tmp_path / "clip.mp4"
    write_clip(clip, VARIABLE)
    renamed = clip.rename(tmp_path / "log.csv")
    assert read_capture(renamed).format == "video"


def test_a_cut_file_is_refused_or_its_stamps_are_right(tmp_path: Path) -> None:
    clip = tmp_path / "clip.mp4"
    write_clip(clip, VARIABLE)
    clip.write_bytes(clip.read_bytes()[:200])
    with pytest.raises(CaptureError, match="no video"):
        read_capture(clip)


def test_a_codec_that_nobody_knows_has_stamps_all_the_same(tmp_path: Path) -> None:
    clip = tmp_path / "clip.mp4"
    write_clip(clip, VARIABLE)
    clip.write_bytes(clip.read_bytes().replace(b"avc1", b"zzzz"))
    (series,) = read_capture(clip).series
    assert series.name == "stream 0 (unknown codec)"
    assert series.ticks is not None
    assert (series.ticks - series.ticks[0]).tolist() == VARIABLE


def test_a_title_in_an_old_code_page_does_no_harm(tmp_path: Path) -> None:
    clip = tmp_path / "clip.mp4"
    write_clip(clip, VARIABLE)
    whole = clip.read_bytes()
    assert b"VideoHandler" in whole
    clip.write_bytes(whole.replace(b"VideoHandler", b"Vid\xe9oHandler"))
    assert len(read_series(clip)) == len(VARIABLE)


def test_a_frame_of_hours_is_refused_in_these_words(tmp_path: Path) -> None:
    clip = tmp_path / "clip.mp4"
    write_clip(clip, [0, 1500, 2 * 3600 * 90_000])
    with pytest.raises(CaptureError) as caught:
        read_capture(clip)
    assert caught.value.reason == "stream 0 (h264): a frame of 2.0 hours"


def test_a_playlist_is_no_video(tmp_path: Path) -> None:
    clip = tmp_path / "clip.m3u8"
    clip.write_text("#EXTM3U\n#EXTINF:1,\nhttp://example.com/x.ts\n")
    with pytest.raises(CaptureError, match="no known capture format"):
        read_capture(clip)


def test_without_pyav_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = tmp_path / "clip.mp4"
    write_clip(clip, VARIABLE)
    real = importlib.import_module

    def refuse(name: str, package: str | None = None) -> Any:
        if name == "av":
            raise builtins.ImportError(name)
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(MissingDependency) as caught:
        read_capture(clip)
    assert str(caught.value) == (
        "Reading a video file needs av, which is not installed: "
        "pip install 'pytest-veo[video]'"
    )
