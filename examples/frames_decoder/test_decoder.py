"""A decoder's pace, and the cadence of the stamps it hands out.

Needs PyAV. Run: pytest examples/frames_decoder
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries


av = pytest.importorskip("av")

FRAMES = 120


def make_clip(path, lost=()):
    """A 30 fps clip, 160 x 90, without the frames in `lost`."""
    with av.open(str(path), "w") as clip:
        stream = clip.add_stream("mpeg4", rate=30)
        stream.width, stream.height, stream.pix_fmt = 160, 90, "yuv420p"
        for number in range(FRAMES):
            if number in lost:
                continue
            shade = np.full((90, 160, 3), 2 * number % 256, np.uint8)
            frame = av.VideoFrame.from_ndarray(shade, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 30)
            clip.mux(stream.encode(frame))
        clip.mux(stream.encode())


def decode(path):
    with av.open(str(path)) as clip:
        yield from clip.decode(video=0)


def stamps_of(path):
    """The presentation stamps of a clip as a series, exact to the nanosecond."""
    stamps = [frame.pts * frame.time_base for frame in decode(path)]
    return FrameSeries(
        t_ns=np.array([round(stamp * 1_000_000_000) for stamp in stamps]),
        event=Event.PTS,
        clock=Clock.MEDIA,
        name="stamps",
        source=path.name,
        resolution_ns=1,
    )


@pytest.mark.veo_jitter(series="decode", p50_ms=33)
@pytest.mark.veo_jitter(series="stamps", target_fps=30, max_ms=34, max_drop_rate=0)
def test_clip_decodes_in_real_time(veo_frames, tmp_path):
    make_clip(tmp_path / "clip.mp4")
    decoder = veo_frames.series("decode", event="decode")
    for _ in decode(tmp_path / "clip.mp4"):
        decoder.tick()
    veo_frames.use(stamps_of(tmp_path / "clip.mp4"))


@pytest.mark.veo_jitter(target_fps=30, max_ms=34, max_drop_rate=0)
def test_clip_has_lost_frames(veo_frames, tmp_path):
    make_clip(tmp_path / "clip.mp4", lost=(40, 41, 90))
    veo_frames.use(stamps_of(tmp_path / "clip.mp4"))
