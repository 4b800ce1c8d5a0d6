"""A preview stream over WebSocket: `/v1/preview/{request_id}`.

Each message is JSON with `frame_index`, `timestamp_ms` and a JPEG in base64 under
`data` or `preview_frame`. Frames are checked and counted, then let go: memory holds
stamps only. An image is never decoded; its size is read from its header.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import dataclasses
import importlib
import json
import logging
import math
import re
import time
from array import array
from collections.abc import Awaitable
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode
from urllib.parse import urlsplit

import numpy as np

from pytest_veo.errors import BadSetting
from pytest_veo.errors import FramesError
from pytest_veo.errors import MissingDependency
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import StageStamps
from pytest_veo.readers.capture import CapturedSeries


RESOLUTIONS = {"320x180": (320, 180), "640x360": (640, 360), "960x540": (960, 540)}
SHORTEST_INTERVAL_MS, LONGEST_INTERVAL_MS = 200, 2000
MOST_RECONNECTS = 3

_REQUEST_ID = re.compile(r"[A-Za-z0-9._~-]{1,200}")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MOST_MISSING = 100_000
_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRequest:
    """What to connect to, and what to ask of it.

    Raises:
        BadSetting: a value the service does not know; the message shows a right one.
    """

    url: str
    """The service: `wss://host`; the path is added."""
    request_id: str
    interval_ms: int = 500
    resolution: str = "640x360"
    key: str | None = dataclasses.field(default=None, repr=False)
    """Sent as a bearer token; never part of an address, a log or a message."""
    most_frame_bytes: int = 2 << 20
    """A larger image is counted and not looked into."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("ws", "wss") or not parts.hostname:
            raise BadSetting("url: write an address such as 'wss://host'")
        if self.key and parts.scheme == "ws" and parts.hostname not in _LOOPBACK:
            raise BadSetting(
                f"url: a key is not sent unencrypted to {parts.hostname}: use wss://"
            )
        if not _REQUEST_ID.fullmatch(self.request_id):
            raise BadSetting(
                f"request_id: {self.request_id[:40]!r} is none: letters, digits and "
                f"the signs . _ ~ - only"
            )
        interval = self.interval_ms
        if not SHORTEST_INTERVAL_MS <= interval <= LONGEST_INTERVAL_MS:
            raise BadSetting(
                f"preview_interval_ms: {interval}: choose {SHORTEST_INTERVAL_MS} to "
                f"{LONGEST_INTERVAL_MS}"
            )
        if self.resolution not in RESOLUTIONS:
            known = ", ".join(RESOLUTIONS)
            raise BadSetting(
                f"preview_resolution: {self.resolution!r}: choose one of {known}"
            )

    def address(self, resume_from: int | None) -> str:
        """The address to connect to, from a frame on when one is named."""
        query: dict[str, int | str] = {
            "preview_interval_ms": self.interval_ms,
            "preview_resolution": self.resolution,
        }
        if resume_from is not None:
            query["resume_from"] = resume_from
        base = self.url.rstrip("/")
        return f"{base}/v1/preview/{self.request_id}?{urlencode(query)}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PreviewCounts:
    """What went wrong, and how often."""

    frames: int = 0
    """Frames that arrived whole, once each: the length of the series."""
    lost: int = 0
    """Numbers that never came: gaps."""
    duplicates: int = 0
    reordered: int = 0
    """Frames that came after one with a higher number."""
    late: int = 0
    """Frames more than one interval behind the fastest one's delay."""
    broken_base64: int = 0
    broken_image: int = 0
    """Bytes that are no JPEG, or one without a size."""
    oversized: int = 0
    """More bytes or more pixels than were asked for."""
    malformed: int = 0
    """Messages that are no JSON object, or whose number or stamp is none."""
    other: int = 0
    """Messages without a frame, such as progress."""
    reconnects: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A preview stream as it was received."""

    series: CapturedSeries
    """When frames arrived; `sequence` is their number, the stage `send` their
    `timestamp_ms` on the sender's clock."""
    counts: PreviewCounts
    ended: str
    """Why it ended: `closed`, `frames`, `time` or `gave up`."""


async def collect_preview(
    request: PreviewRequest,
    *,
    frames: int | None = None,
    seconds: float | None = None,
    clock: Callable[[], int] = time.perf_counter_ns,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Preview:
    """Receive a preview stream until it closes, or enough has come.

    Args:
        request: what to connect to.
        frames: stop after so many whole frames.
        seconds: stop after so long.
        clock: stamps arrivals, in nanoseconds.
        pause: waits before a new connection.

    Raises:
        FramesError: not one whole frame came; the message says what did.
        MissingDependency: the package `websockets` is not installed.
    """
    received = _Received(request, clock)
    try:
        async with asyncio.timeout(seconds):
            ended = await _receive(request, received, frames, pause)
    except TimeoutError:
        ended = "time"
    return received.done(ended)


async def _receive(
    request: PreviewRequest,
    received: _Received,
    frames: int | None,
    pause: Callable[[float], Awaitable[None]],
) -> str:
    client, errors = _websockets()
    headers = {"Authorization": f"Bearer {request.key}"} if request.key else {}
    # A message beyond this ends the connection before it fills memory.
    most = 2 * request.most_frame_bytes + (64 << 10)
    for attempt in range(MOST_RECONNECTS + 1):
        if attempt:
            received.count("reconnects")
            await pause(0.05 * 2**attempt)
        try:
            async with client.connect(
                request.address(received.next_index),
                additional_headers=headers,
                max_size=most,
                max_queue=4,
                # A sender that goes on while we leave would hold us for long.
                close_timeout=0.5,
                logger=_silent_logger(),
            ) as connection:
                async for message in connection:
                    received.take(message)
                    if frames is not None and received.frames >= frames:
                        return "frames"
                return "closed"
        except errors.ConnectionClosedError as error:
            if error.sent is not None and error.sent.code == 1009:
                received.count("oversized")
            received.trouble = "the connection broke"
        except errors.InvalidStatus as error:
            received.trouble = f"refused with HTTP {error.response.status_code}"
        except (OSError, errors.WebSocketException) as error:
            received.trouble = type(error).__name__
    return "gave up"


def _websockets() -> tuple[Any, Any]:
    try:
        client = importlib.import_module("websockets.asyncio.client")
    except ImportError as error:
        raise MissingDependency("websockets", "preview", "A preview stream") from error
    return client, importlib.import_module("websockets.exceptions")


def _silent_logger() -> logging.Logger:
    """A logger that drops everything: at DEBUG the library logs headers and keys."""
    logger = logging.Logger("pytest_veo.preview")
    logger.disabled = True
    return logger


class _Received:
    """The frames of a stream so far: stamps and counts."""

    def __init__(self, request: PreviewRequest, clock: Callable[[], int]) -> None:
        self._request = request
        self._clock = clock
        self._counts: dict[str, int] = {}
        self._arrived = array("q")
        self._sent = array("q")
        self._numbers = array("q")
        self._missing: set[int] = set()
        self._lost_for_good = 0
        self._numbered = True
        self.next_index: int | None = None
        self.trouble = ""

    @property
    def frames(self) -> int:
        """Whole frames so far."""
        return len(self._arrived)

    def count(self, what: str) -> None:
        """Add one to a count."""
        self._counts[what] = self._counts.get(what, 0) + 1

    def take(self, message: str | bytes) -> None:
        """Check one message and keep its stamps."""
        arrived = self._clock()
        try:
            fields = json.loads(message, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            return self.count("malformed")
        if not isinstance(fields, dict):
            return self.count("malformed")
        image = fields.get("data")
        if image is None:
            image = fields.get("preview_frame")
        if isinstance(image, dict):
            fields = {**fields, **image}
            image = image.get("data")
        if image is None:
            return self.count("other")
        number = self._number(fields)
        stamp_ns = _stamp_ns(fields.get("timestamp_ms"))
        if number is None or stamp_ns is None or not isinstance(image, str):
            return self.count("malformed")
        fault = image_fault(image, self._request)
        new, disorder = self._see(number)
        if fault is not None:
            # The number came, though its image is of no use: it is no gap.
            return self.count(fault)
        if disorder is not None:
            self.count(disorder)
        if new:
            self._arrived.append(arrived)
            self._sent.append(stamp_ns)
            self._numbers.append(number)
        return None

    def _number(self, fields: dict[str, Any]) -> int | None:
        if "frame_index" not in fields:
            self._numbered = False
            return self.next_index or 0
        number = fields["frame_index"]
        if isinstance(number, bool) or not isinstance(number, int):
            return None
        return number if 0 <= number < 1 << 53 else None

    def _see(self, number: int) -> tuple[bool, str | None]:
        """Whether this number is new, and what is odd about when it came."""
        expected = self.next_index
        if expected is None or number >= expected:
            if expected is not None:
                self._note_gap(expected, number)
            self.next_index = number + 1
            return True, None
        if number in self._missing:
            self._missing.discard(number)
            return True, "reordered"
        return False, "duplicates"

    def _note_gap(self, first: int, end: int) -> None:
        room = _MOST_MISSING - len(self._missing)
        kept = range(max(first, end - room), end)
        self._missing.update(kept)
        self._lost_for_good += end - first - len(kept)

    def done(self, ended: str) -> Preview:
        """The stream as series and counts."""
        counts = PreviewCounts(
            frames=self.frames,
            lost=len(self._missing) + self._lost_for_good,
            late=self._late(),
            **self._counts,
        )
        if not self.frames:
            why = self.trouble or "nothing whole was sent"
            host = urlsplit(self._request.url).netloc.rpartition("@")[2]
            raise FramesError(
                f"preview {self._request.request_id}: no frame from {host}: {why}"
            )
        sent = np.array(self._sent, np.int64)
        series = CapturedSeries(
            t_ns=np.array(self._arrived, np.int64),
            event=Event.RECEIVE,
            clock=Clock.PERF_COUNTER,
            name="preview",
            source=f"preview {self._request.request_id}",
            tool="preview",
            sequence=np.array(self._numbers, np.int64) if self._numbered else None,
            stages=(StageStamps(event=Event.SEND, t_ns=sent, clock=Clock.SENDER),),
        )
        return Preview(series=series, counts=counts, ended=ended)

    def _late(self) -> int:
        delays = np.array(self._arrived, np.int64) - np.array(self._sent, np.int64)
        if not delays.size:
            return 0
        return int((delays - delays.min() > self._request.interval_ms * 10**6).sum())


def _stamp_ns(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # 2**43 ms after 1970 is the year 2248.
    usable = math.isfinite(value) and 0 <= value < 1 << 43
    return round(value * 1e6) if usable else None


def image_fault(text: str, request: PreviewRequest) -> str | None:
    """What is wrong with an image in base64, as a name of `PreviewCounts`."""
    if len(text) * 3 // 4 > request.most_frame_bytes + 2:
        return "oversized"
    try:
        image = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return "broken_base64"
    size = jpeg_size(image)
    if size is None:
        return "broken_image"
    width, height = RESOLUTIONS[request.resolution]
    return "oversized" if size[0] * size[1] > width * height else None


def jpeg_size(image: bytes) -> tuple[int, int] | None:
    """Width and height from a JPEG's header; None when it has none."""
    if not image.startswith(b"\xff\xd8"):
        return None
    at = 2
    while at + 9 <= len(image):
        if image[at] != 0xFF:
            return None
        marker = image[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        if marker in _START_OF_FRAME:
            height = int.from_bytes(image[at + 5 : at + 7], "big")
            width = int.from_bytes(image[at + 7 : at + 9], "big")
            return (width, height) if width and height else None
        at += 2 + int.from_bytes(image[at + 2 : at + 4], "big")
    return None
