from __future__ import annotations

import numpy as np
import pytest

from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.drops import DropKind
from pytest_veo.frames.drops import Drops
from pytest_veo.frames.drops import count_drops
from pytest_veo.frames.drops import lost_frames
from pytest_veo.frames.drops import most_within
from pytest_veo.frames.jitter import judge
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import DropCounter
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.text import explain
from pytest_veo.frames.verdict import Outcome
from tests.frames.shapes import MS
from tests.frames.shapes import of_ms


def test_the_four_kinds_are_kept_apart() -> None:
    series = of_ms(
        [10, 10, 30, 10],
        dropped=[False, True, False, False, False],
        sequence=[1, 2, 5, 6, 7],
        counters=(DropCounter(name="network", dropped=3, total=90),),
    )
    assert count_drops(series, 10 * MS) == (
        Drops(kind=DropKind.NOT_DISPLAYED, dropped=1, total=5),
        Drops(kind=DropKind.MISSED_SLOTS, dropped=2, total=7),
        Drops(kind=DropKind.SEQUENCE_GAPS, dropped=2, total=7),
        Drops(kind=DropKind.COUNTER, name="network", dropped=3, total=90),
    )


def test_a_series_that_cannot_tell_names_no_kind() -> None:
    assert count_drops(of_ms([10, 30]), None) == ()
    assert most_within(of_ms([10, 30]), None, 1e9) is None


def test_a_late_frame_made_up_for_is_no_missed_slot() -> None:
    series = of_ms([10, 18, 2, 10])
    (drops,) = count_drops(series, 10 * MS)
    assert (drops.dropped, drops.total) == (0, 5)


def test_frames_out_of_order_leave_no_gap() -> None:
    series = of_ms([10] * 4, sequence=[1, 3, 2, 4, 5])
    (drops,) = count_drops(series, None)
    assert (drops.dropped, drops.total) == (0, 5)


def test_more_frames_than_slots_are_no_drop() -> None:
    (drops,) = count_drops(of_ms([8] * 100), 16 * MS)
    assert drops.dropped == 0


def test_drops_are_counted_in_the_densest_window() -> None:
    dropped = np.zeros(101, bool)
    dropped[[10, 40, 41, 42, 90]] = True
    series = of_ms([10.0] * 100, dropped=dropped)
    assert most_within(series, None, 100 * MS) == (DropKind.NOT_DISPLAYED, 3)


def test_undisplayed_frames_of_a_display_series_count_in_a_window_too() -> None:
    stamps = np.arange(101) * 10 * MS
    dropped = np.zeros(101, bool)
    dropped[40:44] = True
    stamps[dropped] = 0
    series = FrameSeries(
        t_ns=stamps, event=Event.DISPLAY, clock=Clock.QPC, dropped=dropped
    )
    assert most_within(series, None, 100 * MS) == (DropKind.NOT_DISPLAYED, 4)


def test_missed_slots_in_a_window_are_net_of_what_is_made_up() -> None:
    steady = [10.0] * 30
    stalled = of_ms([*steady, 60.0, *steady])
    made_up = of_ms([*steady, 60.0, *[0.5] * 5, *steady])
    assert most_within(stalled, 10 * MS, 100 * MS) == (DropKind.MISSED_SLOTS, 5)
    assert most_within(made_up, 10 * MS, 100 * MS) == (DropKind.MISSED_SLOTS, 5)
    assert most_within(of_ms(steady), 10 * MS, 100 * MS) == (DropKind.MISSED_SLOTS, 0)


def test_the_kind_with_the_most_is_named() -> None:
    series = of_ms([10.0] * 4, sequence=[0, 1, 9, 10, 11])
    assert most_within(series, 10 * MS, 1e9) == (DropKind.SEQUENCE_GAPS, 7)


@pytest.mark.parametrize(
    ("drops", "text"),
    [
        (
            Drops(kind=DropKind.MISSED_SLOTS, dropped=2, total=7),
            "missed slots 2 of 7",
        ),
        (
            Drops(kind=DropKind.COUNTER, name="lagged", dropped=3, total=9),
            "counter (lagged) 3 of 9",
        ),
    ],
    ids=["kind", "counter"],
)
def test_drops_say_what_they_are(drops: Drops, text: str) -> None:
    assert str(drops) == text


def test_numbers_that_count_something_else_than_frames_take_no_memory() -> None:
    microseconds = (np.arange(100) * 16_667 + 10**15) * 1000
    series = of_ms([16.0] * 99, sequence=microseconds)
    assert lost_frames(series, DropKind.SEQUENCE_GAPS, None) is None
    budget = JitterBudget(max_drop_rate=0.1, max_order_error=0)
    verdict = judge(series, budget)
    assert verdict.outcome is Outcome.FAIL
    assert "sequence gaps" in explain(verdict)


def test_numbers_out_of_order_and_twice_are_counted_as_numpy_counts_them() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        sequence = rng.integers(0, 40, 30)
        (drops,) = count_drops(of_ms([16.0] * 29, sequence=sequence), None)
        seen = np.unique(sequence)
        assert drops.total == seen[-1] - seen[0] + 1
        assert drops.dropped == drops.total - seen.size
