from __future__ import annotations

import cupy


STREAMS = [cupy.cuda.Stream() for _ in range(3)]


def test_every_stream_works() -> None:
    for stream in STREAMS:  # an arena each, filled once
        with stream:
            cupy.empty(1 << 20, dtype=cupy.uint8)
