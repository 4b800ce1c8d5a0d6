"""What recording a frame costs, and how long judging many takes.

Marks: a tick at most 300 ns and 16 bytes; one million frames judged with all
statistics in 0.3 s, ten million in 3 s and 1 GiB. CPU time is told, what an idle
machine takes; on a loaded one the clock on the wall shows more.

Run: python benchmarks/frames_speed.py
"""

from __future__ import annotations

import resource
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.jitter import judge
from pytest_veo.frames.recorder import FrameRecorder
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries


TICKS = 1_000_000
REPEATS = 5
BUDGET = JitterBudget(
    target_fps=60,
    p50_ms=17,
    p95_ms=25,
    p99_ms=40,
    max_ms=200,
    max_over=(50, 0.01),
    max_drop_rate=0.1,
    max_drops_per_s=(5, 30, 1),
    max_hitches_per_min=100,
    max_mad_ms=5,
    max_phase_error_ms=1e9,
)


def nothing() -> None:
    pass


def loop_ns(call: Callable[[], None], count: int = TICKS) -> float:
    """Nanoseconds a call, the best of some rounds, the loop itself included."""
    best = float("inf")
    for _ in range(REPEATS):
        begin = time.process_time_ns()
        for _ in range(count):
            call()
        best = min(best, (time.process_time_ns() - begin) / count)
    return best


def tick_bytes() -> float:
    """Bytes a frame, at the peak, over a million frames."""
    recorder = FrameRecorder()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(TICKS):
        recorder.tick()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - before) / TICKS


def frame_block() -> Callable[[], None]:
    recorder = FrameRecorder()

    def block() -> None:
        with recorder.frame():
            pass

    return block


def series_of(frames: int) -> FrameSeries:
    rng = np.random.default_rng(1)
    times = rng.normal(16.667, 1.0, frames) + 20 * (rng.random(frames) < 0.01)
    return FrameSeries.from_intervals(
        np.rint(times * 1e6).astype(np.int64),
        event=Event.PRESENT,
        clock=Clock.QPC,
        resolution_ns=100,
    )


def judged_s(frames: int) -> tuple[float, float]:
    """CPU time and time on the wall, in seconds."""
    series = series_of(frames)
    cpu, wall = time.process_time(), time.perf_counter()
    judge(series, BUDGET)
    return time.process_time() - cpu, time.perf_counter() - wall


def main() -> None:
    empty = loop_ns(nothing)
    print(f"empty call: {empty:.0f} ns")
    print(f"tick(): {loop_ns(FrameRecorder().tick):.0f} ns")
    print(f"with frame(): {loop_ns(frame_block(), TICKS // 10):.0f} ns")
    print(f"tick(): {tick_bytes():.1f} bytes a frame at the peak")
    judged_s(10_000)  # loads scipy
    for frames in (1_000, 1_000_000, 10_000_000):
        cpu, wall = min(judged_s(frames) for _ in range(3))
        print(f"{frames:,} frames judged: {cpu:.3f} s ({wall:.3f} s on the wall)")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of the process: {peak:.0f} MiB")


if __name__ == "__main__":
    main()
