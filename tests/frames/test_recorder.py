from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pytest_veo.errors import FramesError
from pytest_veo.frames.distribution import quantum_ns
from pytest_veo.frames.recorder import FrameRecorder
from pytest_veo.frames.series import MISSING_NS
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event


MS = 1_000_000


class HandClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    def move(self, step_ms: float) -> None:
        self.now_ns += round(step_ms * MS)


def test_ticks_become_stamps_of_the_injected_clock() -> None:
    clock = HandClock()
    frames = FrameRecorder(clock=clock)
    for step_ms in (0, 16, 17):
        clock.move(step_ms)
        frames.tick()
    series = frames.series()
    assert series.t_ns.tolist() == [0, 16 * MS, 33 * MS]
    assert (series.event, series.clock) == (Event.FRAME, Clock.INJECTED)
    assert series.resolution_ns is None


@pytest.mark.parametrize(
    ("clock", "name"),
    [
        (time.perf_counter_ns, Clock.PERF_COUNTER),
        (time.monotonic_ns, Clock.MONOTONIC),
        (time.time_ns, Clock.REALTIME),
    ],
    ids=["perf_counter", "monotonic", "time"],
)
def test_clocks_of_the_time_module_are_known(
    clock: Callable[[], int], name: Clock
) -> None:
    frames = FrameRecorder(clock=clock)
    frames.tick()
    series = frames.series()
    assert series.clock is name
    assert series.resolution_ns is not None


def test_a_frame_block_keeps_its_start_marks_and_numbers() -> None:
    clock = HandClock()
    frames = FrameRecorder(event="present", clock=clock)
    for number in (7, 8):
        with frames.frame(sequence=number, animation_ns=number * 10) as frame:
            clock.move(1)
            frame.mark("submit")
            clock.move(2)
    series = frames.series()
    assert series.t_ns.tolist() == [3 * MS, 6 * MS]
    assert series.sequence is not None
    assert series.sequence.tolist() == [7, 8]
    assert series.animation_ns is not None
    assert series.animation_ns.tolist() == [70, 80]
    starts, submits = series.stage(Event.CPU_START), series.stage(Event.SUBMIT)
    assert starts is not None
    assert starts.t_ns.tolist() == [0, 3 * MS]
    assert submits is not None
    assert submits.t_ns.tolist() == [1 * MS, 4 * MS]


def test_a_block_that_raises_is_no_frame() -> None:
    frames = FrameRecorder(clock=HandClock())
    with pytest.raises(ZeroDivisionError), frames.frame():
        raise ZeroDivisionError
    assert len(frames) == 0


def test_a_stage_that_only_some_frames_reach_is_missing_in_the_others() -> None:
    frames = FrameRecorder(event="submit", clock=HandClock())
    frames.add(10)
    frames.add(20, stages={Event.GPU_END: 25})
    frames.add(30)
    stage = frames.series().stage(Event.GPU_END)
    assert stage is not None
    assert stage.t_ns.tolist() == [MISSING_NS, 25, MISSING_NS]


def test_dropped_frames_and_scales_are_kept() -> None:
    frames = FrameRecorder(event="present")
    frames.add(10, render_scale=1.0)
    frames.add(20, render_scale=0.77, dropped=True)
    series = frames.series()
    assert series.dropped is not None
    assert series.dropped.tolist() == [False, True]
    assert series.render_scale is not None
    assert series.render_scale.tolist() == [1.0, 0.77]


def test_a_number_that_some_frames_lack_is_refused() -> None:
    frames = FrameRecorder("preview")
    frames.add(10, sequence=1)
    frames.add(20)
    with pytest.raises(FramesError) as caught:
        frames.series()
    assert str(caught.value) == (
        "preview: frame 1 carries no sequence, others do: give it to every frame of "
        "the series, or to none"
    )


def test_stamps_handed_in_backwards_are_refused() -> None:
    frames = FrameRecorder()
    frames.extend([5, 3])
    with pytest.raises(FramesError, match="time goes back 2e-06 ms at frame 1"):
        frames.series()


def test_an_injected_clock_that_goes_back_is_refused() -> None:
    clock = HandClock()
    frames = FrameRecorder(clock=clock)
    clock.move(5)
    frames.tick()
    clock.move(-1)
    frames.tick()
    with pytest.raises(FramesError, match="time goes back 1 ms at frame 1"):
        frames.series()


def test_no_tick_of_several_threads_is_lost_or_out_of_order() -> None:
    frames = FrameRecorder()

    def run() -> None:
        for _ in range(2000):
            frames.tick()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    series = frames.series()
    assert len(series) == 8000
    assert (series.intervals_ns >= 0).all()


def test_no_numbered_frame_of_several_threads_is_lost_or_mixed_up() -> None:
    frames = FrameRecorder()

    def run(thread: int) -> None:
        for number in range(500):
            with frames.frame(sequence=thread * 500 + number):
                pass

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    series = frames.series()
    assert series.sequence is not None
    assert sorted(series.sequence.tolist()) == list(range(2000))


def test_frames_of_several_tasks_keep_their_own_marks() -> None:
    frames = FrameRecorder()

    async def run(number: int) -> None:
        for _ in range(5):
            with frames.frame(sequence=number) as frame:
                await asyncio.sleep(0)
                frame.mark(Event.SUBMIT)
                await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(run(1), run(2))

    asyncio.run(both())
    series = frames.series()
    submits = series.stage(Event.SUBMIT)
    assert submits is not None
    assert len(series) == 10
    assert (submits.t_ns <= series.t_ns).all()
    assert series.sequence is not None
    assert sorted(series.sequence.tolist()) == [1] * 5 + [2] * 5


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"t_ns": float("nan")}, "t_ns=nan: it must be a whole number"),
        ({"t_ns": 1.5}, "t_ns=1.5: it must be a whole number"),
        ({"t_ns": 1 << 63}, f"t_ns={1 << 63}: it must be a whole number"),
        ({"t_ns": True}, "t_ns=True: it must be a whole number"),
        ({"sequence": "7"}, "sequence='7': it must be a whole number"),
        ({"animation_ns": 0.1}, "animation_ns=0.1: it must be a whole number"),
        ({"stages": {Event.SUBMIT: 0.5}}, "submit=0.5: it must be a whole number"),
        ({"render_scale": float("nan")}, "render_scale=nan: it must be a number"),
        ({"render_scale": "half"}, "render_scale='half': it must be a number"),
    ],
    ids=lambda value: str(next(iter(value))) if isinstance(value, dict) else "",
)
def test_a_frame_that_is_no_frame_is_refused_whole(
    numbers: dict[str, Any], message: str
) -> None:
    frames = FrameRecorder("preview")
    frames.add(1, sequence=1, animation_ns=1, render_scale=1.0)
    with pytest.raises(FramesError) as caught:
        frames.add(**{"t_ns": 2, "sequence": 2, "animation_ns": 2} | numbers)
    assert str(caught.value).startswith(f"preview: {message}")
    of_numpy: dict[str, Any] = {"t_ns": np.int64(3), "sequence": np.int32(3)}
    frames.add(**of_numpy, animation_ns=3, render_scale=1)
    series = frames.series()
    assert series.t_ns.tolist() == [1, 3]
    assert series.sequence is not None
    assert series.sequence.tolist() == [1, 3]


def test_stamps_are_taken_all_or_none() -> None:
    frames = FrameRecorder("preview")
    with pytest.raises(
        FramesError, match=r"^preview: stamps are whole numbers of nano"
    ):
        frames.extend([1, 2, 2.5])  # type: ignore[list-item]
    assert len(frames) == 0


def test_a_clock_that_is_no_clock_of_nanoseconds_is_named() -> None:
    frames = FrameRecorder("preview", clock=time.perf_counter)  # type: ignore[arg-type]
    with pytest.raises(FramesError, match=r"^preview: its clock: stamps are whole"):
        frames.tick()


def test_stamps_handed_in_tell_their_own_step() -> None:
    rounded = np.rint(np.arange(400) * 16.667 / 15.625).astype(int) * 15_625_000
    handed = FrameRecorder()
    handed.extend(rounded.tolist())
    assert quantum_ns(handed.series()) == 15_625_000
    declared = FrameRecorder(resolution_ns=100)
    declared.extend(rounded.tolist())
    assert quantum_ns(declared.series()) == 100
    ticked = FrameRecorder()
    ticked.tick()
    assert ticked.series().resolution_ns == ticked.resolution_ns
