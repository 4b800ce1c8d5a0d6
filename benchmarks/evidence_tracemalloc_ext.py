"""What it costs to track one allocation and its free: `tracemalloc_ext`.

Marks: at most 10 us at one frame, 25 us at 25 frames, nothing at all while off.

    python benchmarks/evidence_tracemalloc_ext.py
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path


sys.path.insert(0, str(Path(__file__).parent.parent))

from pytest_veo import tracemalloc_ext
from tests.evidence import stub_cupy


TIMES = 5_000
DEPTH = 40


def at_depth(depth: int, call: Callable[[], float]) -> float:
    return at_depth(depth - 1, call) if depth else call()


def pair_us(allocate: Callable[[int], object]) -> float:
    """CPU time, the best of seven loops: the machine's other work only adds."""
    best = float("inf")
    for _ in range(7):
        start = time.thread_time()
        for _ in range(TIMES):
            allocate(4096)
        best = min(best, (time.thread_time() - start) / TIMES)
    return best * 1e6


def ledger_us() -> float:
    """Tracking alone, without anybody's hooks."""
    return pair_us(lambda _: track_and_untrack())


def track_and_untrack() -> None:
    tracemalloc_ext.track("bench", 0, 0x7F0000000000, 4096)
    tracemalloc_ext.untrack("bench", 0, 0x7F0000000000)


def main() -> None:
    cupy = stub_cupy.cupy()
    sys.modules["cupy"] = cupy

    def measure() -> float:
        return at_depth(DEPTH, lambda: pair_us(cupy.cuda.alloc))

    bare = measure()
    print(f"allocation and free of the stub alone   {bare:7.2f} us")
    for nframe in (1, 10, 25):
        tracemalloc_ext.start(nframe)
        both = measure()
        alone = at_depth(DEPTH, ledger_us)
        tracemalloc_ext.stop()
        tracemalloc.start(nframe)
        python_only = measure()
        tracemalloc.stop()
        print(
            f"nframe {nframe:2}: tracking adds {both - python_only:6.2f} us"
            f"  (the traces alone {alone:6.2f} us;"
            f" tracemalloc on Python's own memory {python_only - bare:6.2f} us)"
        )
    print(f"after stop: {measure() - bare:+.2f} us")


if __name__ == "__main__":
    main()
