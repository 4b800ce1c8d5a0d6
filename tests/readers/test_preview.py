from __future__ import annotations

import asyncio
import base64
import importlib
import json
import logging
import re
from collections.abc import Awaitable
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs
from urllib.parse import urlsplit

import pytest

from pytest_veo.errors import BadSetting
from pytest_veo.errors import FramesError
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.readers.preview import Preview
from pytest_veo.readers.preview import PreviewCounts
from pytest_veo.readers.preview import PreviewRequest
from pytest_veo.readers.preview import collect_preview
from pytest_veo.readers.preview import jpeg_size


pytest.importorskip("websockets")

Send = Callable[[str | bytes], Awaitable[None]]
Script = Callable[[Send, int | None], Awaitable[int | None]]
"""Sends the messages of one connection; the code to close with, None for 1000."""


def jpeg(width: int = 640, height: int = 360) -> bytes:
    comment = b"\xff\xfe\x00\x04ok"
    size = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return b"\xff\xd8" + comment + b"\xff\xc0\x00\x0b\x08" + size + b"\x01\x01\x11\x00"


def frame(
    index: int, *, image: bytes | None = None, key: str = "data", **more: Any
) -> str:
    data = base64.b64encode(jpeg() if image is None else image).decode()
    message = {"frame_index": index, "timestamp_ms": 1000.0 + index * 10, key: data}
    return json.dumps({**message, **more})


class Service:
    """A preview service on loopback that follows a script for each connection."""

    def __init__(self, *scripts: Script) -> None:
        self._scripts = list(scripts)
        self.queries: list[dict[str, list[str]]] = []
        self.headers: list[str | None] = []

    async def _handle(self, connection: Any) -> None:
        query = parse_qs(urlsplit(connection.request.path).query)
        self.queries.append(query)
        self.headers.append(connection.request.headers.get("Authorization"))
        script = self._scripts.pop(0) if self._scripts else sends([])
        start = query.get("resume_from")
        code = await script(connection.send, int(start[0]) if start else None)
        await connection.close(code or 1000)

    def collect(self, key: str | None = None, **options: Any) -> Preview:
        server = importlib.import_module("websockets.asyncio.server")

        async def run() -> Preview:
            async with server.serve(self._handle, "127.0.0.1", 0) as running:
                port = next(iter(running.sockets)).getsockname()[1]
                request = PreviewRequest(
                    url=f"ws://127.0.0.1:{port}",
                    request_id="render-1",
                    interval_ms=200,
                    key=key,
                    most_frame_bytes=4096,
                )
                before = asyncio.all_tasks()
                try:
                    return await collect_preview(request, pause=no_pause, **options)
                finally:
                    left = asyncio.all_tasks() - before
                    # The server's own handlers run in this loop as well.
                    mine = [t for t in left if "pytest_veo" in repr(t.get_coro())]
                    assert not mine

        return asyncio.run(asyncio.wait_for(run(), 20))


async def no_pause(seconds: float) -> None:
    assert 0 < seconds < 1


def sends(messages: list[str | bytes], code: int | None = None) -> Script:
    async def script(send: Send, start: int | None) -> int | None:
        for message in messages:
            await send(message)
        return code

    return script


def test_a_steady_stream_is_a_series_of_arrivals() -> None:
    preview = Service(sends([frame(i) for i in range(20)])).collect()
    series = preview.series
    assert preview.counts == PreviewCounts(frames=20)
    assert preview.ended == "closed"
    assert (series.event, series.clock) == (Event.RECEIVE, Clock.PERF_COUNTER)
    assert series.sequence is not None
    assert series.sequence.tolist() == list(range(20))
    sent = series.stage(Event.SEND)
    assert sent is not None
    assert sent.clock is Clock.SENDER
    assert sent.t_ns[:2].tolist() == [1_000_000_000, 1_010_000_000]


@pytest.mark.parametrize(
    ("messages", "counts"),
    [
        pytest.param(
            [frame(0), frame(3)], PreviewCounts(frames=2, lost=2), id="a gap of two"
        ),
        pytest.param(
            [frame(0), frame(1), frame(1)],
            PreviewCounts(frames=2, duplicates=1),
            id="a duplicate",
        ),
        pytest.param(
            [frame(0), frame(2), frame(1), frame(3)],
            PreviewCounts(frames=4, reordered=1),
            id="out of order",
        ),
        pytest.param(
            [frame(0), frame(1).replace('"data": "', '"data": "%'), frame(2)],
            PreviewCounts(frames=2, broken_base64=1),
            id="broken base64 is no gap",
        ),
        pytest.param(
            [frame(0), frame(1, image=b"\x89PNG....")],
            PreviewCounts(frames=1, broken_image=1),
            id="no JPEG",
        ),
        pytest.param(
            [frame(0), frame(1, image=jpeg(960, 540))],
            PreviewCounts(frames=1, oversized=1),
            id="more pixels than asked for",
        ),
        pytest.param(
            [frame(0), frame(1, image=jpeg() + b"\0" * 5000)],
            PreviewCounts(frames=1, oversized=1),
            id="more bytes than allowed",
        ),
        pytest.param(
            [frame(0), frame(1, timestamp_ms=500.0)],
            PreviewCounts(frames=2, late=1),
            id="late by its own stamp",
        ),
        pytest.param(
            [frame(0), "{", "[]", frame(-1), frame(1, timestamp_ms=None), b"\xff"],
            PreviewCounts(frames=1, malformed=5),
            id="malformed",
        ),
        pytest.param(
            [frame(0), '{"progress": 0.5}'],
            PreviewCounts(frames=1, other=1),
            id="progress",
        ),
        pytest.param(
            [frame(0, key="preview_frame"), frame(1, key="preview_frame")],
            PreviewCounts(frames=2),
            id="the image under preview_frame",
        ),
        pytest.param(
            [frame(0, key="preview_frame", data=None)],
            PreviewCounts(frames=1),
            id="the image under preview_frame beside data of nothing",
        ),
    ],
)
def test_every_fault_is_counted_once(
    messages: list[str | bytes], counts: PreviewCounts
) -> None:
    assert Service(sends(messages)).collect().counts == counts


def test_a_broken_connection_is_taken_up_where_it_broke() -> None:
    service = Service(
        sends([frame(0), frame(1)], code=1011),
        sends([frame(2), frame(3)], code=1011),
        sends([frame(4)]),
    )
    preview = service.collect()
    assert preview.counts == PreviewCounts(frames=5, reconnects=2)
    assert [query.get("resume_from") for query in service.queries] == [
        None,
        ["2"],
        ["4"],
    ]
    assert service.queries[0]["preview_interval_ms"] == ["200"]
    assert service.queries[0]["preview_resolution"] == ["640x360"]


def test_after_three_reconnects_it_gives_up_with_what_it_has() -> None:
    service = Service(*(sends([frame(i)], code=1011) for i in range(9)))
    preview = service.collect()
    assert preview.ended == "gave up"
    assert preview.counts == PreviewCounts(frames=4, reconnects=3)
    assert len(service.queries) == 4


def test_a_message_beyond_all_measure_ends_the_connection_and_is_counted() -> None:
    service = Service(
        sends([frame(0), frame(1, image=jpeg() + b"\0" * 200_000)]),
        sends([frame(2)]),
    )
    preview = service.collect()
    assert preview.counts == PreviewCounts(frames=2, lost=1, oversized=1, reconnects=1)


def test_it_stops_when_enough_has_come() -> None:
    preview = Service(sends([frame(i) for i in range(50)])).collect(frames=7)
    assert (preview.ended, preview.counts.frames) == ("frames", 7)


def test_it_stops_when_time_is_up() -> None:
    async def stalls(send: Send, start: int | None) -> int | None:
        await send(frame(0))
        while True:
            await send('{"progress": 0.5}')
            await asyncio.sleep(0.05)

    preview = Service(stalls).collect(seconds=0.3)
    assert (preview.ended, preview.counts.frames) == ("time", 1)


def test_a_stream_without_a_frame_says_what_came() -> None:
    with pytest.raises(FramesError) as caught:
        Service(sends(['{"progress": 1}'])).collect()
    assert re.fullmatch(
        r"preview render-1: no frame from 127\.0\.0\.1:\d+: nothing whole was sent",
        str(caught.value),
    )


def test_long_faults_are_all_counted_and_memory_holds_stamps_only() -> None:
    messages: list[str | bytes] = []
    for index in range(0, 3000, 10):
        good = [frame(index + i, timestamp_ms=1000.0) for i in range(10)]
        good[4] = good[4].replace('"data": "', '"data": "%')
        good[6], good[7] = good[7], good[6]
        del good[8]
        messages += [*good, good[0]]
    preview = Service(sends(messages)).collect()
    assert preview.counts == PreviewCounts(
        frames=8 * 300, lost=300, broken_base64=300, reordered=300, duplicates=300
    )


def test_the_key_is_sent_and_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    secret = "s3cr3t-key"
    caplog.set_level(logging.DEBUG)
    service = Service(sends([frame(0)], code=1011), sends([frame(1)]))
    preview = service.collect(key=secret)
    assert service.headers == [f"Bearer {secret}"] * 2
    client_side = [r for r in caplog.records if r.name == "pytest_veo.preview"]
    assert not client_side
    assert secret not in repr(preview)
    request = PreviewRequest(url="wss://host", request_id="a", key=secret)
    assert secret not in repr(request)
    assert secret not in request.address(None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            {"interval_ms": 199},
            "preview_interval_ms: 199: choose 200 to 2000",
            id="fast",
        ),
        pytest.param(
            {"interval_ms": 2001},
            "preview_interval_ms: 2001: choose 200 to 2000",
            id="slow",
        ),
        pytest.param(
            {"resolution": "1920x1080"},
            "preview_resolution: '1920x1080': choose one of 320x180, 640x360, 960x540",
            id="resolution",
        ),
        pytest.param(
            {"request_id": "../admin"},
            "request_id: '../admin' is none: letters, digits and the signs . _ ~ - "
            "only",
            id="a path in the request",
        ),
        pytest.param(
            {"url": "http://host"},
            "url: write an address such as 'wss://host'",
            id="http",
        ),
        pytest.param(
            {"url": "ws://render.example", "key": "k"},
            "url: a key is not sent unencrypted to render.example: use wss://",
            id="a key in the clear",
        ),
    ],
)
def test_a_request_that_means_nothing_is_refused(
    change: dict[str, Any], message: str
) -> None:
    fields: dict[str, Any] = {"url": "wss://host", "request_id": "a", **change}
    with pytest.raises(BadSetting) as caught:
        PreviewRequest(**fields)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("image", "size"),
    [
        pytest.param(jpeg(320, 180), (320, 180), id="baseline"),
        pytest.param(
            jpeg().replace(b"\xff\xc0", b"\xff\xc2"), (640, 360), id="progressive"
        ),
        pytest.param(b"\xff\xd8\xff\xfe\x00\x00" * 9, None, id="segments of nothing"),
        pytest.param(jpeg(0, 5), None, id="no width"),
        pytest.param(b"\xff\xd8", None, id="cut"),
        pytest.param(b"", None, id="empty"),
    ],
)
def test_a_jpeg_s_size_is_read_from_its_header(
    image: bytes, size: tuple[int, int] | None
) -> None:
    assert jpeg_size(image) == size
