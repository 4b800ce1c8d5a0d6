"""WebRTC statistics (`getStats`): counters of received video, and no frame.

Three shapes are read: dumps of `chrome://webrtc-internals`, lists of polls, and single
reports. Whatever the shape, objects of the type `inbound-rtp` for video are looked for.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any
from typing import ClassVar

from pytest_veo.frames.figures import Figure
from pytest_veo.frames.series import DropCounter
from pytest_veo.readers.capture import Capture
from pytest_veo.readers.json_walk import Object
from pytest_veo.readers.json_walk import head_has
from pytest_veo.readers.json_walk import is_json
from pytest_veo.readers.json_walk import number_of
from pytest_veo.readers.json_walk import objects
from pytest_veo.readers.source import Source


_WANTED = (
    "framesDecoded",
    "framesReceived",
    "framesDropped",
    "freezeCount",
    "totalFreezesDuration",
    "pauseCount",
    "totalInterFrameDelay",
    "totalSquaredInterFrameDelay",
    "jitter",
    "framesPerSecond",
)
_TRACK = "RTCMediaStreamTrack_"
"""What ids of tracks began with before dumps told the type."""


@dataclass(frozen=True, slots=True)
class Poll:
    """The counters of one stream at one moment."""

    stream: str
    stamp_ms: float
    values: tuple[tuple[str, float], ...]

    def get(self, name: str) -> float | None:
        """A counter, or None when the browser does not have it."""
        return dict(self.values).get(name)


class WebRtcReader:
    """Dumps of `getStats`."""

    name: ClassVar[str] = "webrtc"

    def claims(self, source: Source) -> bool:
        """Inbound streams, or the dump's own first key."""
        if not is_json(source):
            return False
        text = "\n".join(source.head)
        return head_has(source, "PeerConnections") or '"inbound-rtp"' in text

    def read(self, source: Source) -> Capture:
        """Frames dropped, freezes, and the spread of inter-frame delays."""
        polls = _polls(source.document())
        if not polls:
            raise source.error("no inbound video stream")
        counters: list[DropCounter] = []
        summary: list[Figure] = []
        notes = [
            "getStats counts, it stamps no frame: drop rates can be told, jitter not"
        ]
        for stream in dict.fromkeys(poll.stream for poll in polls):
            own = sorted(
                (p for p in polls if p.stream == stream), key=lambda p: p.stamp_ms
            )
            own = _since_reset(own, notes)
            counters.extend(_counters(own[-1]))
            summary.extend(_figures(own[-1]))
        return Capture(
            file=source.name,
            format=self.name,
            counters=tuple(counters),
            summary=tuple(summary),
            notes=tuple(notes),
        )


def _polls(document: Any) -> list[Poll]:
    found: list[Poll] = []
    tracks: list[Poll] = []
    for path, entry in objects(document):
        if entry.get("type") == "inbound-rtp" and _is_video(entry):
            found.append(_poll(path, entry))
        elif entry.get("type") == "track" and "framesReceived" in entry:
            tracks.append(_poll(path, entry))
    if not found:
        return _dumped(document)
    # Until 2021 tracks, not streams, knew what was dropped.
    knows = any(poll.get("framesDropped") is not None for poll in found)
    return found if knows else found + tracks


def _is_video(entry: Object) -> bool:
    kind = entry.get("kind") or entry.get("mediaType")
    return kind == "video" or (kind is None and "framesDecoded" in entry)


def _poll(path: str, entry: Object) -> Poll:
    name = entry.get("ssrc") or entry.get("id") or path
    values = [(n, v) for n in _WANTED if (v := number_of(entry, n)) is not None]
    return Poll(str(name), number_of(entry, "timestamp") or 0.0, tuple(values))


def _dumped(document: Any) -> list[Poll]:
    """Polls of a `webrtc-internals` dump: one list of values a counter.

    Older releases of Chrome tell a stream's frames once more as those of its track.
    Only where streams do not know what was dropped, tracks are asked.
    """
    lists: dict[str, dict[str, list[Any]]] = {}
    tracks: set[str] = set()
    for path, entry in objects(document):
        values = entry.get("values")
        key = path.rpartition("stats.")[2]
        # A star marks what the standard did not have yet.
        stream, dash, counter = key.removesuffix("*").rpartition("-")
        if not dash or counter not in _WANTED or not isinstance(values, str):
            continue
        try:
            parsed = json.loads(values, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            continue
        if isinstance(parsed, list) and parsed:
            lists.setdefault(stream, {})[counter] = parsed
            if entry.get("statsType") == "track" or _TRACK in stream:
                tracks.add(stream)
    streams = {name: found for name, found in lists.items() if name not in tracks}
    if any("framesDropped" in found for found in streams.values()):
        lists = streams
    polls = []
    for stream, counters in lists.items():
        if "framesDecoded" not in counters:
            continue
        last = {name: values[-1] for name, values in counters.items()}
        values = [(n, v) for n in _WANTED if (v := number_of(last, n)) is not None]
        polls.append(Poll(stream, 0.0, tuple(values)))
    return polls


def _since_reset(polls: list[Poll], notes: list[str]) -> list[Poll]:
    """The polls since the counters last began anew."""
    start = 0
    for index in range(1, len(polls)):
        before = polls[index - 1].get("framesDecoded") or 0
        if (polls[index].get("framesDecoded") or 0) < before:
            start = index
    if start:
        notes.append(
            f"stream {polls[0].stream}: counters began anew after {start} polls; only "
            f"what followed counts"
        )
    return polls[start:]


def _counters(last: Poll) -> list[DropCounter]:
    dropped = last.get("framesDropped")
    if dropped is None:
        return []
    decoded = last.get("framesDecoded") or 0
    total = last.get("framesReceived") or decoded + dropped
    name = f"framesDropped ({last.stream})"
    counted = max(int(total), int(dropped))
    return [DropCounter(name=name, dropped=int(dropped), total=counted)]


def _figures(last: Poll) -> list[Figure]:
    found = [
        Figure(f"{name} ({last.stream})", value, unit)
        for name, unit in (
            ("framesDecoded", "frames"),
            ("freezeCount", "freezes"),
            ("totalFreezesDuration", "s"),
        )
        if (value := last.get(name)) is not None
    ]
    spread = inter_frame_ms(last)
    if spread is not None:
        found.append(Figure(f"inter-frame delay mean ({last.stream})", spread[0], "ms"))
        found.append(Figure(f"inter-frame delay std ({last.stream})", spread[1], "ms"))
    return found


def inter_frame_ms(poll: Poll) -> tuple[float, float] | None:
    """Mean and standard deviation of the delays between frames, in milliseconds.

    W3C webrtc-stats: variance is `(squares - sum**2 / n) / n`.
    """
    n = poll.get("framesDecoded")
    total = poll.get("totalInterFrameDelay")
    squares = poll.get("totalSquaredInterFrameDelay")
    if not n or total is None or squares is None:
        return None
    try:
        variance = max((squares - total**2 / n) / n, 0.0)
    except OverflowError:
        return None
    return 1000 * total / n, 1000 * math.sqrt(variance)


READER = WebRtcReader()
