"""Threads and children that end late, with scripted figures."""

from __future__ import annotations

import pytest

from pytest_veo.measure.confirm import Confirmed
from pytest_veo.measure.lateness import Rounds
from pytest_veo.measure.lateness import anything_stays
from pytest_veo.measure.lateness import by_run
from pytest_veo.measure.lateness import ended
from pytest_veo.measure.lateness import flat_on_host
from pytest_veo.measure.lateness import floor_of_round
from pytest_veo.measure.lateness import has_piled_up
from pytest_veo.measure.lateness import some_have_ended
from pytest_veo.measure.limits import Limits
from pytest_veo.measure.limits import lasting
from pytest_veo.measure.meter import Glance
from pytest_veo.measure.meter import Meter
from pytest_veo.memory.leak import Course
from pytest_veo.probes.host import HEAP
from pytest_veo.probes.host import MAPPED
from pytest_veo.probes.host import THREADS
from pytest_veo.testing import ScriptedProbe


class _Host(ScriptedProbe):
    """A probe with two counters of the host's own."""

    def __init__(self, threads: int) -> None:
        super().__init__("host", threads=threads, heap=9_000)
        self.counters = (THREADS, HEAP)


THREADS_OF_RUNS = (1, 3, 5, 7, 9)


def _shown(meter: Meter, threads: tuple[int, ...] = THREADS_OF_RUNS) -> Confirmed:
    return Confirmed(
        layout=meter.examine().layout,
        series=(threads, (0, 1_000, 2_000, 3_000, 4_000)),
        courses=(Course.GROWING, Course.GROWING),
        runs=4,
        spent_ns=1,
    )


@pytest.mark.parametrize(
    ("left", "end_late"),
    [(1, True), (5, True), (6, False), (9, False)],
    ids=["all end", "half end", "too few end", "none ends"],
)
def test_threads_that_end_while_we_wait_are_told_from_those_that_stay(
    left: int, end_late: bool
) -> None:
    probe = _Host(threads=9)
    meter = Meter([probe])

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            probe.grow("threads", left - 9)

    waits: list[float] = []
    late = ended(meter, _shown(meter), waits_s=(1, 2, 3), sleep=sleep)
    assert (late is not None) is end_late
    assert waits == ([1, 2] if end_late else [1, 2, 3])


@pytest.mark.parametrize(
    "threads", [(9, 9, 9, 9, 9), (1, 1, 1, 2, 1)], ids=["flat", "noise"]
)
def test_nobody_waits_where_no_thread_stays(threads: tuple[int, ...]) -> None:
    meter = Meter([_Host(threads=1)])

    def sleep(seconds: float) -> None:
        raise AssertionError(f"waited for {seconds} s")

    shown = _shown(meter, threads)
    assert ended(meter, shown, sleep=sleep) is None
    assert not has_piled_up(shown)


@pytest.mark.parametrize(
    ("threads", "have_ended"),
    [((1, 3, 5, 7, 9), False), ((1, 3, 5, 7, 2), True), ((1, 1, 2, 2, 1), False)],
    ids=["all there", "gone at the last look", "too few to tell"],
)
def test_threads_that_are_gone_at_the_last_look_have_ended(
    threads: tuple[int, ...], have_ended: bool
) -> None:
    assert some_have_ended(_shown(Meter([_Host(1)]), threads)) is have_ended


@pytest.mark.parametrize(
    ("heap", "threads", "stays"),
    [
        (1_050, 1, False),
        (1_000 + 3 * 24, 1, True),
        (1_050, 6, True),
    ],
    ids=["a first use", "heap", "threads beside those that end"],
)
def test_what_is_left_after_the_first_run_stays(
    heap: int, threads: int, stays: bool
) -> None:
    meter = Meter([_Host(threads=1)])
    layout = meter.examine().layout
    late = Glance(layout, (threads, heap))
    assert anything_stays(_shown(meter), late) is stays


def test_host_figures_that_came_back_are_flat() -> None:
    meter = Meter([_Host(threads=1)])
    assert flat_on_host(_shown(meter)).courses == (Course.FLAT, Course.FLAT)


class _Run:
    """A run that leaves a thread, and passes or not."""

    def __init__(self, probe: _Host, why: str = "") -> None:
        self.runs, self._probe, self._why = 0, probe, why

    def run(self) -> str:
        self.runs += 1
        self._probe.grow("threads", 1)
        return self._why


def test_a_round_waits_until_its_threads_have_ended() -> None:
    probe = _Host(threads=4)
    meter = Meter([probe])
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        probe.grow("threads", -2)

    run = _Run(probe)
    rounds = Rounds(run, meter, count=4, waits_s=(1, 2, 3), sleep=sleep)
    assert rounds.run() == ""
    assert (run.runs, waits) == (4, [1, 2])
    failing = _Run(probe, "it failed")
    assert Rounds(failing, meter, count=4, sleep=sleep).run() == "it failed"
    assert failing.runs == 1


def test_rounds_are_told_by_run() -> None:
    meter = Meter([_Host(threads=1)])
    told = by_run(_shown(meter), 8)
    assert told.series == ((1, 1, 1, 1, 2), (0, 125, 250, 375, 500))
    assert told.runs == 32
    assert floor_of_round(8)(HEAP) == 8 * 24
    assert floor_of_round(1)(MAPPED) == 4_096


@pytest.mark.parametrize("time_ns", [100, 900])
def test_runs_that_have_to_last_are_as_many_as_it_takes(time_ns: int) -> None:
    limits = Limits(600, 10_000, patience_ns=150, patience_runs=300, runs_in_time=4096)
    found = lasting(limits, time_ns)
    assert found.patience_ns == max(150, time_ns)
    assert (found.patience_runs, found.most_runs) == (4096, 4096)
