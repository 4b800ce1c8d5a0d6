"""Receive a preview stream and print how steady it was."""

from __future__ import annotations

import asyncio
import sys

from pytest_veo.readers.preview import PreviewRequest
from pytest_veo.readers.preview import collect_preview


async def main(name: str, port: str) -> None:
    request = PreviewRequest(
        url=f"ws://127.0.0.1:{port}", request_id=name, interval_ms=200
    )
    preview = await collect_preview(request, seconds=20)
    steps_ms = preview.series.intervals_ns / 1e6
    print(f"{preview.counts.frames} frames, ended: {preview.ended}")
    print(
        f"lost {preview.counts.lost}, twice {preview.counts.duplicates}, "
        f"broken {preview.counts.broken_base64}, "
        f"connected again {preview.counts.reconnects} times"
    )
    print(f"median step {sorted(steps_ms)[len(steps_ms) // 2]:.0f} ms")


if __name__ == "__main__":
    name = sys.argv[1] if len(sys.argv) > 1 else "steady"
    port = sys.argv[2] if len(sys.argv) > 2 else "8765"
    asyncio.run(main(name, port))
