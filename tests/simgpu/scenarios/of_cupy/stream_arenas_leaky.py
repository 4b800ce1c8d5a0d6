from __future__ import annotations

import cupy


KEPT: list[cupy.ndarray] = []
STREAMS = [cupy.cuda.Stream() for _ in range(3)]


def test_every_stream_works() -> None:
    for stream in STREAMS:
        with stream:
            cupy.empty(1 << 20, dtype=cupy.uint8)
    with STREAMS[0]:
        KEPT.append(cupy.empty(512, dtype=cupy.uint8))
