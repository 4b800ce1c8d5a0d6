from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

import pytest

from pytest_veo.errors import BadSetting
from pytest_veo.errors import FramesError
from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.collection import Frames
from pytest_veo.frames.noise import MachineNoise
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.session import NO_FRAMES
from pytest_veo.frames.session import Budgets
from pytest_veo.frames.session import judge_test
from pytest_veo.frames.sweep import draw_table
from tests.frames.shapes import MS
from tests.frames.shapes import of_ms


def test_a_test_has_as_many_series_as_it_opens() -> None:
    frames = Frames()
    frames.tick()
    decode = frames.series("decode", event="decode")
    decode.tick()
    assert frames.series("decode") is decode
    frames.use(of_ms([16.0], name="file"))
    recorded = frames.recorded()
    assert list(recorded) == ["frames", "decode", "file"]
    assert recorded["decode"].event is Event.DECODE


def test_a_default_series_without_frames_is_not_there() -> None:
    frames = Frames()
    assert frames.recorded() == {}
    frames.use(of_ms([16.0]))
    assert list(frames.recorded()) == ["frames"]


@pytest.mark.parametrize("name", ["frames", "decode", "file"])
def test_a_name_is_given_once(name: str) -> None:
    frames = Frames()
    frames.tick()
    frames.series("decode")
    frames.use(of_ms([16.0], name="file"))
    with pytest.raises(FramesError, match=f"has a series '{name}' already"):
        frames.use(of_ms([16.0], name=name))


def test_series_opened_later_take_the_tests_own_clock() -> None:
    frames = Frames()
    frames.clock = lambda: 7
    series = frames.series("played")
    series.tick()
    assert series.series().t_ns.tolist() == [7]
    assert series.series().clock is Clock.INJECTED


def test_an_opened_series_that_got_no_frame_is_judged_as_lacking() -> None:
    frames = Frames()
    frames.series("decode")
    report = judge_test(frames, {None: JitterBudget(max_ms=20, on_inconclusive="fail")})
    assert report.broken
    assert "not enough frames: min_frames 0, limit 2, in decode" in report.failure


def test_no_frame_at_all_is_a_failure() -> None:
    report = judge_test(Frames(), {None: JitterBudget(max_ms=20)})
    assert (report.broken, report.failure) == (True, NO_FRAMES)
    assert not judge_test(Frames(), {}).broken


def test_the_machine_has_a_part_in_its_own_clocks_only() -> None:
    starved = MachineNoise(frames=0, waited_ns=10_000 * MS)
    budget: Budgets = {None: JitterBudget(max_ms=20)}
    stamps = [0, 16 * MS, 90 * MS]
    live, played = Frames(), Frames()
    live.extend(stamps)
    played.series("played", clock=lambda: 0).extend(stamps)
    imported = Frames()
    imported.use(of_ms([16.0, 74.0]))
    assert not judge_test(live, budget, noise=starved).broken
    assert judge_test(played, budget, noise=starved).broken
    assert judge_test(imported, budget, noise=starved).broken


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({}, "a sweep needs parameters with values: no parameter is given"),
        ({"depth": []}, "a sweep needs parameters with values: depth has no value"),
    ],
    ids=["none", "empty"],
)
def test_a_sweep_over_nothing_is_refused(
    grid: dict[str, list[int]], message: str
) -> None:
    with pytest.raises(BadSetting) as caught:
        Frames().sweep(**grid)
    assert str(caught.value) == message


def test_a_sweep_has_a_series_for_every_combination() -> None:
    frames = Frames()
    cells = list(frames.sweep(depth=[2, 4], mode=["wddm", "tcc"]))
    assert [cell.frames.name for cell in cells] == [
        "depth=2, mode=wddm",
        "depth=2, mode=tcc",
        "depth=4, mode=wddm",
        "depth=4, mode=tcc",
    ]
    assert cells[2]["depth"] == 4


def test_an_unjudged_sweep_is_a_table_without_verdicts() -> None:
    frames = Frames()
    for cell in frames.sweep(depth=[2]):
        cell.frames.extend([0, 16 * MS, 32 * MS])
    report = judge_test(frames, {})
    assert report.section == (
        "depth  frames  dropped  p99 ms  order  verdict\n"
        "    2       3        -      16      -  -"
    )
    assert draw_table([]) == "frames  dropped  p99 ms  order  verdict"


def test_many_broken_series_are_told_in_a_line_each() -> None:
    frames = Frames()
    for cell in frames.sweep(depth=list(range(9))):
        cell.frames.extend([0, 16 * MS, 90 * MS])
    failure = judge_test(frames, {None: JitterBudget(max_ms=20)}).failure
    assert failure.count("also: max_ms 74 ms") == 6
    assert "and 2 more series" in failure


@pytest.mark.parametrize("in_thread", [True, False], ids=["thread", "own"])
def test_a_thread_of_its_own_is_not_failed_on_a_busy_machine(in_thread: bool) -> None:
    frames = Frames()
    series = frames.series("loop", clock=ticking(16 * MS), clock_name="perf_counter")

    def loop() -> None:
        for _ in range(100):
            series.tick()

    if in_thread:
        thread = threading.Thread(target=loop)
        thread.start()
        thread.join()
    else:
        loop()
    busy = MachineNoise(frames=200, waited_ns=0, pressure=0.9)
    report = judge_test(frames, {None: JitterBudget(p50_ms=10)}, noise=busy)
    assert report.records[0]["outcome"] == ("inconclusive" if in_thread else "fail")
    quiet = MachineNoise(frames=200, waited_ns=0, pressure=0.01)
    report = judge_test(frames, {None: JitterBudget(p50_ms=10)}, noise=quiet)
    assert report.records[0]["outcome"] == "fail"


def ticking(step_ns: int) -> Callable[[], int]:
    counter = itertools.count(0, step_ns)
    return lambda: next(counter)
