"""Threads and children that end late, with scripted figures."""

from __future__ import annotations

import pytest

from pytest_veo.measure.confirm import Confirmed
from pytest_veo.measure.lateness import outwaited
from pytest_veo.measure.meter import Meter
from pytest_veo.memory.leak import Course
from pytest_veo.probes.host import HEAP
from pytest_veo.probes.host import THREADS
from pytest_veo.testing import ScriptedProbe


class _Host(ScriptedProbe):
    """A probe with two counters of the host's own."""

    def __init__(self, threads: int) -> None:
        super().__init__("host", threads=threads, heap=9_000)
        self.counters = (THREADS, HEAP)


def _shown(meter: Meter, course: Course) -> Confirmed:
    return Confirmed(
        layout=meter.examine().layout,
        series=((1, 3, 5, 7, 9), (0, 1_000, 2_000, 3_000, 4_000)),
        courses=(course, Course.GROWING),
        runs=4,
        spent_ns=1,
    )


@pytest.mark.parametrize(
    ("left", "courses"),
    [
        (1, (Course.FLAT, Course.FLAT)),
        (5, (Course.FLAT, Course.FLAT)),
        (6, (Course.GROWING, Course.GROWING)),
        (9, (Course.GROWING, Course.GROWING)),
    ],
    ids=["all end", "half end", "too few end", "none ends"],
)
def test_threads_that_end_while_we_wait_are_no_leak(
    left: int, courses: tuple[Course, ...]
) -> None:
    probe = _Host(threads=9)
    meter = Meter([probe])

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            probe.grow("threads", left - 9)

    waits: list[float] = []
    shown = outwaited(
        meter, _shown(meter, Course.GROWING), waits_s=(1, 2, 3), sleep=sleep
    )
    assert shown.courses == courses
    assert waits == ([1, 2] if courses[0] is Course.FLAT else [1, 2, 3])


@pytest.mark.parametrize(
    ("course", "threads"),
    [(Course.FLAT, (1, 3, 5, 7, 9)), (Course.UNDECIDED, (1, 1, 1, 2, 1))],
    ids=["flat", "noise"],
)
def test_nobody_waits_where_no_thread_stays(
    course: Course, threads: tuple[int, ...]
) -> None:
    meter = Meter([_Host(threads=1)])
    shown = _shown(meter, course)
    shown = shown._replace(series=(threads, shown.series[1]))

    def sleep(seconds: float) -> None:
        raise AssertionError(f"waited for {seconds} s")

    assert outwaited(meter, shown, sleep=sleep) is shown
