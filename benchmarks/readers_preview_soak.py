"""A preview stream with every fault, for as long as asked: counts, memory, tasks.

    python benchmarks/readers_preview_soak.py --minutes 10

Prints what was injected beside what was counted, how resident memory moved, and which
tasks are left. Exit status 1 when any of them is not as it must be.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import importlib
import itertools
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from urllib.parse import urlsplit

from pytest_veo.readers.preview import Preview
from pytest_veo.readers.preview import PreviewRequest
from pytest_veo.readers.preview import collect_preview


PACE_S = 0.01
MOST_BYTES = 64 << 10


def image(width: int = 640, height: int = 360, size: int = 27_000) -> str:
    """A JPEG by its header, in base64."""
    start = b"\xff\xd8\xff\xc0\x00\x0b\x08"
    sides = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return base64.b64encode((start + sides + b"\x01\x01\x11\x00").ljust(size)).decode()


GOOD, WIDE, LONG = image(), image(960, 540), image(size=MOST_BYTES + 999)


class Rough:
    """Sends frames with a fault in every block of twenty, and hangs up twice."""

    def __init__(self, minutes: float) -> None:
        self.ends = time.monotonic() + 60 * minutes
        self.breaks = [self.ends - 40 * minutes, self.ends - 20 * minutes]
        self.injected: Counter[str] = Counter()

    async def __call__(self, connection: Any) -> None:
        """One connection."""
        query = parse_qs(urlsplit(connection.request.path).query)
        start = int(query.get("resume_from", ["0"])[0])
        for block in itertools.count(start, 20):
            for message in self.block(block):
                await connection.send(message)
                await asyncio.sleep(PACE_S)
            if self.breaks and time.monotonic() > self.breaks[0]:
                self.breaks.pop(0)
                self.injected["reconnects"] += 1
                await connection.close(1011)
                return
            if time.monotonic() > self.ends:
                return

    def block(self, first: int) -> list[str]:
        """Twenty frames with one fault of each kind."""
        stamp = time.time() * 1000
        made = [self.frame(first + i, stamp) for i in range(20)]
        made[3] = made[3].replace('"data": "', '"data": "%')
        made[5] = self.frame(first + 5, stamp, WIDE)
        made[6] = self.frame(first + 6, stamp, LONG)
        made[8], made[9] = made[9], made[8]
        made[10] = self.frame(first + 10, stamp, "AAAA")
        made[12] = self.frame(first + 12, stamp - 60_000)
        made.insert(14, made[13])
        made.insert(16, "{")
        made.remove(self.frame(first + 17, stamp))
        self.injected.update(
            frames=15,
            broken_base64=1,
            oversized=2,
            reordered=1,
            broken_image=1,
            late=1,
            duplicates=1,
            malformed=1,
            lost=1,
        )
        return made

    @staticmethod
    def frame(index: int, stamp: float, data: str = GOOD) -> str:
        """One message."""
        return json.dumps({"frame_index": index, "timestamp_ms": stamp, "data": data})


def resident_bytes() -> int:
    """This process's resident memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def soak(minutes: float) -> tuple[Preview, Rough, list[int], int]:
    """Run server and client, reading memory as it goes."""
    rough = Rough(minutes)
    memory: list[int] = []

    async def watch() -> None:
        while True:
            await asyncio.sleep(60 * minutes / 20)
            memory.append(resident_bytes())

    server = importlib.import_module("websockets.asyncio.server")
    async with server.serve(rough, "127.0.0.1", 0) as running:
        port = next(iter(running.sockets)).getsockname()[1]
        request = PreviewRequest(
            url=f"ws://127.0.0.1:{port}",
            request_id="soak",
            interval_ms=2000,
            most_frame_bytes=MOST_BYTES,
        )
        watcher = asyncio.create_task(watch())
        before = len(asyncio.all_tasks())
        preview = await collect_preview(request)
        await asyncio.sleep(0.5)
        left = len(asyncio.all_tasks()) - before
        watcher.cancel()
    return preview, rough, memory, left


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    minutes = parser.parse_args().minutes
    preview, rough, memory, left = asyncio.run(soak(minutes))
    bad = left
    for name, injected in sorted(rough.injected.items()):
        counted = getattr(preview.counts, name)
        bad += counted != injected
        print(f"{name:<14} injected {injected:>8} counted {counted:>8}")
    settled = memory[len(memory) // 4 :]
    growth = settled[-1] - settled[0] if settled else 0
    per_frame = growth / max(preview.counts.frames, 1)
    print(f"resident memory {growth / 1024:+.0f} KiB, {per_frame:.1f} bytes a frame")
    print(f"tasks left {left}")
    return int(bool(bad) or growth > 4 << 20)


if __name__ == "__main__":
    sys.exit(main())
