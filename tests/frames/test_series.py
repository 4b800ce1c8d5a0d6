from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_veo.errors import FramesError
from pytest_veo.frames.series import MISSING_NS
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.series import StageStamps


def make(t_ns: Any, **fields: Any) -> FrameSeries:
    fields.setdefault("event", Event.FRAME)
    fields.setdefault("clock", Clock.INJECTED)
    return FrameSeries(t_ns=t_ns, **fields)


def test_intervals_are_the_steps_between_stamps() -> None:
    series = make([0, 16, 33, 50])
    assert series.intervals_ns.tolist() == [16, 17, 17]
    assert (len(series), series.span_ns) == (4, 50)


@pytest.mark.parametrize("stamps", [[], [7]], ids=["none", "one"])
def test_fewer_than_two_stamps_have_no_interval(stamps: list[int]) -> None:
    series = make(stamps)
    assert series.intervals_ns.tolist() == []
    assert series.span_ns == 0


def test_undisplayed_frames_do_not_pace_a_display_series() -> None:
    dropped = [False, True, False]
    displays = make([0, MISSING_NS, 33], event=Event.DISPLAY, dropped=dropped)
    presents = make([0, 16, 33], event=Event.PRESENT, dropped=dropped)
    assert displays.intervals_ns.tolist() == [33]
    assert presents.intervals_ns.tolist() == [16, 17]


def test_duplicate_stamps_are_kept_as_intervals_of_zero() -> None:
    assert make([0, 16, 16, 32]).intervals_ns.tolist() == [16, 0, 16]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param(
            {"t_ns": [0, 16_000_000, 15_000_000], "rows": [2, 3, 9], "source": "a.csv"},
            "a.csv: frames: time goes back 1 ms at frame 2 (row 9); a series holds one "
            "source in the order of its stamps, so split what was mixed, or sort it",
            id="backwards",
        ),
        pytest.param(
            {"t_ns": [0.0, float("nan"), 2.0]},
            "frames: t_ns of frame 1 is nan; leave the frame out, or write MISSING_NS "
            "and mark it in `dropped`",
            id="nan",
        ),
        pytest.param(
            {"t_ns": [0.0, float("inf")]},
            "frames: t_ns of frame 1 is inf; leave the frame out, or write MISSING_NS "
            "and mark it in `dropped`",
            id="infinite",
        ),
        pytest.param(
            {"t_ns": ["0", "1"]},
            "frames: t_ns must hold whole numbers, not <U1",
            id="text",
        ),
        pytest.param(
            {"t_ns": [[0, 1]]},
            "frames: t_ns must be one row of numbers, got shape (1, 2)",
            id="table",
        ),
        pytest.param(
            {"t_ns": [0, 1], "sequence": [5]},
            "frames: sequence has 1 entries for 2 frames",
            id="lengths",
        ),
        pytest.param(
            {
                "t_ns": [0, 1],
                "stages": (StageStamps(event=Event.SUBMIT, t_ns=np.zeros(3, int)),),
            },
            "frames: stage submit has 3 stamps for 2 frames",
            id="stage-lengths",
        ),
        pytest.param(
            {"t_ns": [0, 1], "render_scale": [1.0, 0.0]},
            "frames: render_scale of frame 1 is 0.0; it must be a number above 0",
            id="scale",
        ),
        pytest.param(
            {"t_ns": [0, 1], "resolution_ns": 0},
            "frames: resolution_ns=0: a clock steps by at least 1 ns; None means "
            "unknown",
            id="resolution",
        ),
        pytest.param(
            {"t_ns": [0, 1], "event": "flip"},
            "unknown event 'flip': use one of frame, vsync, cpu_start, submit, "
            "enqueue, gpu_start, gpu_end, present, display, decode, pts, send, receive",
            id="event",
        ),
        pytest.param(
            {"t_ns": [0, 1], "clock": "wall"},
            "unknown clock 'wall': use one of perf_counter, monotonic, boottime, "
            "realtime, qpc, cuda_event, gpu, media, sender, tool, injected",
            id="clock",
        ),
        pytest.param(
            {"t_ns": np.array([0, 2**63], np.uint64)},
            "frames: t_ns holds a number beyond 2**63 - 1",
            id="overflow",
        ),
    ],
)
def test_what_cannot_be_a_series_is_refused(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(FramesError) as caught:
        make(**fields)
    assert str(caught.value) == message


def test_after_keeps_frame_numbers_and_cuts_every_array() -> None:
    series = make(
        [0, 10, 20, 30],
        sequence=[4, 5, 6, 7],
        rows=[2, 3, 4, 5],
        stages=(StageStamps(event=Event.SUBMIT, t_ns=np.array([1, 11, 21, 31])),),
    ).after(2)
    assert series.t_ns.tolist() == [20, 30]
    assert series.sequence is not None
    assert series.sequence.tolist() == [6, 7]
    assert series.stages[0].t_ns.tolist() == [21, 31]
    assert series.where(1) == "frame 3 (row 5)"


def test_after_more_frames_than_there_are_leaves_none() -> None:
    assert len(make([0, 10]).after(5)) == 0


def test_a_series_takes_no_hold_of_the_callers_array() -> None:
    mine = np.array([0, 10, 20])
    series = make(mine)
    mine[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        series.t_ns[0] = 5


def test_the_series_own_event_is_a_stage_too() -> None:
    series = make([0, 10], event=Event.PRESENT)
    own = series.stage(Event.PRESENT)
    assert own is not None
    assert own.t_ns.tolist() == [0, 10]
    assert series.stage(Event.GPU_END) is None


@given(st.lists(st.integers(0, 10**12), max_size=50))
def test_a_series_made_from_intervals_has_those_intervals(steps: list[int]) -> None:
    series = FrameSeries.from_intervals(steps, event=Event.PTS, clock=Clock.MEDIA)
    assert series.intervals_ns.tolist() == steps
    assert series.span_ns == sum(steps)
