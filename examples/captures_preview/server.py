"""A preview service for trying the client: one frame an interval, and some faults.

Run it, then `python client.py` beside it. Faults are told by the request's name:
`steady` has none, `rough` loses, repeats and breaks frames, `dropping` hangs up.
A port may be named (0 takes any that is free), and how many frames there are.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
from urllib.parse import parse_qs
from urllib.parse import urlsplit

from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve


PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 8765
FRAMES = int(sys.argv[2]) if len(sys.argv) > 2 else 40


def jpeg(width: int, height: int) -> bytes:
    """The header of a JPEG: all that a size check reads."""
    frame = (
        b"\xff\xc0\x00\x0b\x08" + height.to_bytes(2, "big") + width.to_bytes(2, "big")
    )
    return b"\xff\xd8" + frame + b"\x01\x01\x11\x00\xff\xd9"


def message(index: int, width: int, height: int) -> str:
    data = base64.b64encode(jpeg(width, height)).decode()
    stamp = time.time() * 1000
    return json.dumps({"frame_index": index, "timestamp_ms": stamp, "data": data})


async def preview(connection: ServerConnection) -> None:
    assert connection.request is not None
    parts = urlsplit(connection.request.path)
    query = parse_qs(parts.query)
    name = parts.path.rpartition("/")[2]
    interval_s = int(query["preview_interval_ms"][0]) / 1000
    width, height = map(int, query["preview_resolution"][0].split("x"))
    start = int(query.get("resume_from", ["0"])[0])
    for index in range(start, FRAMES):
        if name == "dropping" and index in (10, 25) and index != start:
            await connection.close(1011, "the renderer was restarted")
            return
        if name == "rough" and index % 10 == 4:
            continue
        text = message(index, width, height)
        if name == "rough" and index % 10 == 7:
            text = text.replace('"data": "', '"data": "%')
        await connection.send(text)
        if name == "rough" and index % 10 == 2:
            await connection.send(text)
        await asyncio.sleep(interval_s)


async def main() -> None:
    async with serve(preview, "127.0.0.1", PORT) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        print(f"listening on ws://127.0.0.1:{port}", flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
