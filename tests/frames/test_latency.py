from __future__ import annotations

import numpy as np
import pytest

from pytest_veo.errors import FramesError
from pytest_veo.frames.latency import animation_error
from pytest_veo.frames.latency import interarrival_jitter_ns
from pytest_veo.frames.latency import latencies
from pytest_veo.frames.series import MISSING_NS
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.series import Int64s
from pytest_veo.frames.series import StageStamps
from tests.frames.shapes import MS
from tests.frames.shapes import of_ms


def staged(**offsets_ms: float) -> FrameSeries:
    """Frames 10 ms apart, each with these stages at these offsets from its present."""
    presents = np.arange(1, 101) * 10 * MS
    stages = tuple(
        StageStamps(event=Event.of(event), t_ns=presents + round(offset * MS))
        for event, offset in offsets_ms.items()
    )
    return FrameSeries(
        t_ns=presents, event=Event.PRESENT, clock=Clock.QPC, stages=stages
    )


def test_latencies_go_from_stage_to_stage_and_from_first_to_last() -> None:
    found = latencies(staged(gpu_end=-1.0, cpu_start=-8.0, submit=-6.0))
    assert [(each.start.value, each.end.value, each.p50_ns / MS) for each in found] == [
        ("cpu_start", "submit", 2.0),
        ("submit", "gpu_end", 5.0),
        ("gpu_end", "present", 1.0),
        ("cpu_start", "present", 8.0),
    ]


def test_a_series_without_stages_has_no_latency() -> None:
    assert latencies(of_ms([10, 10])) == ()


def test_frames_that_never_reached_a_stage_do_not_count() -> None:
    ends = np.arange(100) * 10 * MS
    ends[::2] = MISSING_NS
    series = FrameSeries(
        t_ns=np.arange(100) * 10 * MS + 2 * MS,
        event=Event.PRESENT,
        clock=Clock.QPC,
        stages=(StageStamps(event=Event.GPU_END, t_ns=ends),),
    )
    (found,) = latencies(series)
    assert (found.frames, found.max_ns) == (50, 2 * MS)


def test_the_wait_for_the_next_refresh_is_taken_from_displays() -> None:
    found = latencies(staged(gpu_end=-1.0, display=4.0), vsync_ns=10 * MS)
    waits = {each.start: each.p50_ns / MS for each in found if each.end is Event.VSYNC}
    assert waits[Event.GPU_END] == pytest.approx(5.0)
    assert waits[Event.PRESENT] == pytest.approx(4.0)


def test_a_display_slower_than_the_target_does_not_slide_out_of_the_waits() -> None:
    displays = np.rint(np.arange(6000) * (1e9 / 59.94)).astype(np.int64)
    ends = StageStamps(event=Event.GPU_END, t_ns=displays - 5 * MS)
    series = FrameSeries(
        t_ns=displays, event=Event.DISPLAY, clock=Clock.QPC, stages=(ends,)
    )
    waits = [each for each in latencies(series, 1e9 / 60) if each.end is Event.VSYNC]
    (wait,) = waits
    assert (wait.p50_ns, wait.max_ns) == (5 * MS, 5 * MS)


def test_a_frame_shown_refreshes_later_waited_only_for_the_next_one() -> None:
    found = latencies(staged(gpu_end=-1.0, display=24.0), vsync_ns=10 * MS)
    waits = {each.start: each.p50_ns / MS for each in found if each.end is Event.VSYNC}
    assert waits == {Event.GPU_END: 5.0, Event.PRESENT: 4.0}


def test_frames_that_were_never_shown_have_no_wait() -> None:
    displays = np.arange(100) * 10 * MS
    series = FrameSeries(
        t_ns=displays - 3 * MS,
        event=Event.PRESENT,
        clock=Clock.QPC,
        dropped=np.arange(100) % 4 == 0,
        stages=(StageStamps(event=Event.DISPLAY, t_ns=displays),),
    )
    waits = [each for each in latencies(series, 10 * MS) if each.end is Event.VSYNC]
    assert [(each.frames, each.max_ns) for each in waits] == [(75, 3 * MS)]


def test_stages_of_two_clocks_are_never_subtracted() -> None:
    series = FrameSeries(
        t_ns=np.array([0, 10]),
        event=Event.PRESENT,
        clock=Clock.QPC,
        stages=(
            StageStamps(
                event=Event.GPU_END, t_ns=np.array([5, 15]), clock=Clock.CUDA_EVENT
            ),
        ),
    )
    with pytest.raises(FramesError) as caught:
        latencies(series)
    assert str(caught.value) == (
        "frames: gpu_end is stamped by cuda_event and present by qpc: bring both to "
        "one clock before a latency is taken"
    )


def received(transit_ns: Int64s) -> FrameSeries:
    sent = np.arange(transit_ns.size) * 20 * MS
    return FrameSeries(
        t_ns=sent + transit_ns,
        event=Event.RECEIVE,
        clock=Clock.MONOTONIC,
        stages=(StageStamps(event=Event.SEND, t_ns=sent, clock=Clock.SENDER),),
    )


@pytest.mark.parametrize("frames", [2, 17, 3000])
def test_interarrival_jitter_is_rfc_3550s_loop(frames: int) -> None:
    transit = np.random.default_rng(7).integers(0, 5 * MS, frames)
    jitter = 0.0
    for step in np.abs(np.diff(transit)):
        jitter += (step - jitter) / 16
    assert interarrival_jitter_ns(received(transit)) == pytest.approx(jitter)


def test_interarrival_jitter_needs_both_stamps() -> None:
    assert interarrival_jitter_ns(of_ms([10, 10])) is None


def test_stamps_of_sender_and_receiver_give_no_latency() -> None:
    assert latencies(received(np.arange(5))) == ()


def test_content_that_moves_evenly_while_frames_do_not_is_an_animation_error() -> None:
    series = of_ms([10, 14, 6, 10], animation_ns=np.arange(5) * 10 * MS)
    found = animation_error(series)
    assert found is not None
    assert found.mean_abs_ns == 2 * MS
    assert found.max_abs_ns == 4 * MS


def test_content_that_moves_with_its_frames_has_no_error() -> None:
    series = of_ms([10, 14, 6], animation_ns=[100 * MS, 110 * MS, 124 * MS, 130 * MS])
    found = animation_error(series)
    assert found is not None
    assert found.max_abs_ns == 0
    assert animation_error(of_ms([10, 14])) is None
