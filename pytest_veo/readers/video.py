"""Video files: presentation stamps of packets, exact, without decoding a frame.

The container is opened as a stream with its format named, so that nothing in the file
can make the library open another file or an address.
"""

from __future__ import annotations

import importlib
from fractions import Fraction
from typing import Any
from typing import ClassVar

import numpy as np

from pytest_veo.errors import CaptureError
from pytest_veo.errors import MissingDependency
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.readers.capture import Capture
from pytest_veo.readers.capture import CapturedSeries
from pytest_veo.readers.present_checks import LONGEST_FRAME_NS
from pytest_veo.readers.source import Source


_ATOMS = (b"ftyp", b"styp", b"moov", b"mdat", b"free", b"skip", b"wide", b"moof")
"""What may stand first in an mp4 or mov."""
_ATTACHED_PICTURE = 0x400
"""`AV_DISPOSITION_ATTACHED_PIC`."""
_MOST_PACKETS = 50_000_000


def _format_of(magic: bytes) -> str | None:
    """FFmpeg's name of a container, told by its first bytes."""
    if magic[4:8] in _ATOMS:
        return "mov"
    if magic.startswith(b"\x1a\x45\xdf\xa3"):
        return "matroska"
    if magic.startswith(b"RIFF") and magic[8:12] == b"AVI ":
        return "avi"
    if magic.startswith(b"FLV\x01"):
        return "flv"
    if magic.startswith(b"OggS"):
        return "ogg"
    if magic.startswith(b"DKIF"):
        return "ivf"
    if magic.startswith(b"\x30\x26\xb2\x75\x8e\x66\xcf\x11"):
        return "asf"
    if magic.startswith(b"\x00\x00\x01\xba"):
        return "mpeg"
    # Packets of 188 bytes; on discs each has four bytes before it.
    if any(magic[at : at + 189 : 188] == b"\x47\x47" for at in (0, 4)):
        return "mpegts"
    return None


class VideoReader:
    """mp4, mov, mkv, webm, avi, flv, ogg, ivf, MPEG streams and asf."""

    name: ClassVar[str] = "video"

    def claims(self, source: Source) -> bool:
        """A container by its first bytes."""
        return _format_of(source.magic) is not None

    def read(self, source: Source) -> Capture:
        """One series for each video stream, in the order of presentation."""
        try:
            av = importlib.import_module("av")
        except ImportError as error:
            raise MissingDependency("av", "video", "Reading a video file") from error
        notes: list[str] = []
        kind = _format_of(source.magic)
        try:
            with (
                source.path.open("rb") as file,
                _open(av, file, kind) as container,
            ):
                series = _streams(source, container, notes)
                version = str(container.format.name)
        except CaptureError:
            raise
        except (av.error.FFmpegError, ValueError) as error:
            # PyAV turns some damage into errors of Python's own.
            reason = f"no video that can be read: {error}"
            raise source.error(reason) from error
        if not series:
            raise source.error("no video stream with stamps")
        return Capture(
            file=source.name,
            format=self.name,
            version=version,
            series=tuple(series),
            notes=tuple(notes),
        )


def _open(av: Any, file: Any, kind: str | None) -> Any:
    try:
        # A title in an old code page must not hide the frames.
        return av.open(file, mode="r", format=kind, metadata_errors="replace")
    except TypeError:
        # PyAV 19 and later do so unasked, and do not know the argument.
        return av.open(file, mode="r", format=kind)


def _streams(source: Source, container: Any, notes: list[str]) -> list[CapturedSeries]:
    streams = [s for s in container.streams.video if not _is_cover(s)]
    stamps: dict[int, list[int]] = {stream.index: [] for stream in streams}
    without = unseen = 0
    if not stamps:
        return []
    for count, packet in enumerate(container.demux(*streams)):
        if count > _MOST_PACKETS:
            raise source.error("more packets than a capture has")
        # The last packet of a stream is empty: it flushes the decoder.
        if packet.size == 0:
            continue
        if packet.is_discard:
            unseen += 1
            continue
        if packet.pts is None:
            without += 1
            continue
        stamps[packet.stream_index].append(packet.pts)
    if without:
        notes.append(f"{without} packets carry no presentation stamp and are left out")
    if unseen:
        notes.append(f"{unseen} packets are cut off by an edit list and never shown")
    return [
        _series(source, stream, stamps[stream.index], notes)
        for stream in streams
        if stamps[stream.index]
    ]


def _is_cover(stream: Any) -> bool:
    """Whether a stream is one picture: the cover of an album."""
    return bool(int(getattr(stream, "disposition", 0)) & _ATTACHED_PICTURE)


def _series(
    source: Source, stream: Any, ticks: list[int], notes: list[str]
) -> CapturedSeries:
    # Packets come in the order of decoding.
    ordered = np.sort(np.array(ticks, np.int64))
    # A codec that FFmpeg does not know has none; its stamps are as good.
    codec = stream.codec_context.name if stream.codec_context else "unknown codec"
    name = f"stream {stream.index} ({codec})"
    if not stream.time_base or stream.time_base <= 0:
        raise source.error(f"{name}: stamps without a unit")
    base = Fraction(stream.time_base)
    step_ns = base * 10**9
    notes.append(f"{name}: {len(ordered)} stamps in units of {base} s")
    if base >= Fraction(1, 1000):
        notes.append(
            f"{name}: the container rounds stamps to {float(step_ns) / 1e6:g} ms; the "
            f"pace of frames is not known finer than that"
        )
    twins = int((np.diff(ordered) == 0).sum())
    if twins:
        notes.append(f"{name}: {twins} frames share their stamp with another")
    t_ns = _to_ns(source, ordered, base)
    steps = np.diff(t_ns)
    if bool((steps >= LONGEST_FRAME_NS).any()):
        hours = int(steps.max()) / 3.6e12
        raise source.error(f"{name}: a frame of {hours:.1f} hours")
    return CapturedSeries(
        t_ns=t_ns,
        event=Event.PTS,
        clock=Clock.MEDIA,
        name=name,
        source=source.name,
        tool="video",
        resolution_ns=max(round(step_ns), 1),
        ticks=ordered,
        time_base=base,
    )


def _to_ns(
    source: Source, ticks: np.ndarray[Any, np.dtype[np.int64]], base: Fraction
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Whole nanoseconds, each rounded from the exact rational."""
    scale = base * 10**9
    most = max(abs(int(ticks[0])), abs(int(ticks[-1])))
    if most * scale >= 1 << 62:
        raise source.error("a stamp beyond 63 bits of nanoseconds")
    if scale.denominator == 1:
        return ticks * int(scale)
    up, down = scale.numerator, scale.denominator
    if most * up < 1 << 62:
        return (ticks * up + down // 2) // down
    exact = [(int(tick) * up + down // 2) // down for tick in ticks]
    return np.array(exact, np.int64)


READER = VideoReader()
