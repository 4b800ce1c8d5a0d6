"""What recording a frame costs, and how long judging many takes.

Marks: a tick at most 300 ns and 16 bytes; one million frames judged with all
statistics in 0.3 s, ten million in 3 s and 1 GiB. CPU time is told, what an idle
machine takes; on a loaded one the clock on the wall shows more. Frames are judged
twice: as stamps alone, and with all that a frame may carry, which makes for latencies
between four stages, waits for the refresh, order, three kinds of drop and the rest.

Run: python benchmarks/frames_speed.py
"""

from __future__ import annotations

import dataclasses
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
from pytest_veo.frames.series import StageStamps


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
LADEN_BUDGET = dataclasses.replace(
    BUDGET,
    max_order_error=3,
    max_scale_switches_per_min=100,
    min_scale=0.5,
    drop_threshold_ms=50,
    adaptive_window=120,
    max_slow_in_window=60,
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


def laden(series: FrameSeries) -> FrameSeries:
    """The same frames with numbers, content times, scales, drops and three stages."""
    rng = np.random.default_rng(2)
    frames, stamps = len(series), series.t_ns
    ends = stamps - 1_000_000 + rng.integers(0, 100_000, frames)
    shown = stamps + rng.integers(5_000_000, 6_000_000, frames)
    stages = {
        Event.SUBMIT: stamps - 3_000_000,
        Event.GPU_END: ends,
        Event.DISPLAY: shown,
    }
    return dataclasses.replace(
        series,
        sequence=np.arange(frames),
        animation_ns=stamps + rng.integers(-100_000, 100_000, frames),
        render_scale=np.where(rng.random(frames) < 0.001, 0.75, 1.0),
        dropped=rng.random(frames) < 0.01,
        stages=tuple(StageStamps(event=each, t_ns=t) for each, t in stages.items()),
    )


def judged_s(series: FrameSeries, budget: JitterBudget) -> tuple[float, float]:
    """CPU time and time on the wall, in seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    judge(series, budget)
    return time.process_time() - cpu, time.perf_counter() - wall


def main() -> None:
    empty = loop_ns(nothing)
    print(f"empty call: {empty:.0f} ns")
    print(f"tick(): {loop_ns(FrameRecorder().tick):.0f} ns")
    print(f"with frame(): {loop_ns(frame_block(), TICKS // 10):.0f} ns")
    print(f"tick(): {tick_bytes():.1f} bytes a frame at the peak")
    judged_s(series_of(10_000), BUDGET)  # loads scipy
    tell_of_judging(all_of=False)
    tell_of_judging(all_of=True)


def tell_of_judging(*, all_of: bool) -> None:
    """Print what judging takes; the peak is of all that was done before, too."""
    what = "with all they may carry" if all_of else "stamps alone"
    for frames in (1_000, 1_000_000, 10_000_000):
        series = laden(series_of(frames)) if all_of else series_of(frames)
        budget = LADEN_BUDGET if all_of else BUDGET
        cpu, wall = min(judged_s(series, budget) for _ in range(5))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{frames:,} frames, {what}: {cpu:.3f} s ({wall:.3f} s on the wall), "
            f"{peak:.0f} MiB for the process at the peak"
        )


if __name__ == "__main__":
    main()
