"""What malloc keeps in stock is nobody's growth."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_veo.measure.confirm import Confirmation
from pytest_veo.measure.limits import Limits
from pytest_veo.measure.meter import Meter
from pytest_veo.measure.stock import refill
from pytest_veo.memory.leak import Course
from pytest_veo.memory.leak import Rule
from pytest_veo.memory.leak import course
from pytest_veo.probes.host import HEAP
from pytest_veo.probes.host import THREADS
from pytest_veo.probes.host import HostProbe
from pytest_veo.testing import ScriptedProbe


RULE = Rule(floor=24.0, tiny=512.0, small=16384.0)
UNEVEN = random.Random(7).choices((128, 240, 384, 640), k=200)


def _values(steps: list[int]) -> list[int]:
    total = [0]
    for step in steps:
        total.append(total[-1] + step)
    return total


@pytest.mark.parametrize(
    ("steps", "stock", "said"),
    [
        pytest.param(UNEVEN, 0.0, Course.GROWING, id="no other thread"),
        pytest.param(UNEVEN, 1e6, Course.FLAT, id="less than others may keep"),
        pytest.param(UNEVEN, 1e4, Course.GROWING, id="more than others may keep"),
        pytest.param([320] * 200, 1e6, Course.GROWING, id="even steps"),
        pytest.param([65536, 0] * 100, 1e9, Course.GROWING, id="large steps"),
    ],
)
def test_small_uneven_growth_must_exceed_what_other_threads_may_keep(
    steps: list[int], stock: float, said: Course
) -> None:
    assert course(_values(steps), RULE._replace(stock=stock)) is said


@pytest.mark.parametrize(
    ("others_ns", "said"), [(0, Course.GROWING), (10**12, Course.FLAT)]
)
def test_only_threads_that_ran_may_have_kept_it(others_ns: int, said: Course) -> None:
    probe = _HostLike()
    steps = iter(UNEVEN)
    times = iter([0])
    shown = Confirmation(
        Meter([probe]),
        _Runner(lambda: probe.grow("heap", next(steps))),
        Limits(most_runs=len(UNEVEN), time_ns=10**12),
        clock=lambda: 1,
        others_ns=lambda: next(times, others_ns),
    ).go()
    assert shown.courses[shown.layout.index(HEAP)] is said


class _HostLike(ScriptedProbe):
    """A scripted probe with two of the host's own counters."""

    def __init__(self) -> None:
        super().__init__("host", heap=0, threads=5)
        self.counters = (HEAP, THREADS)


class _Runner:
    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    def run(self) -> str:
        self._act()
        return ""


@pytest.mark.skipif(
    sys.platform != "linux", reason="needs glibc's malloc and its figures"
)
def test_with_a_full_stock_the_heap_of_what_frees_all_stands_still() -> None:
    with ThreadPoolExecutor(1) as thread:  # a new one has no stock yet
        without = thread.submit(_grown, _nothing).result()
        filled = thread.submit(_grown, refill).result()
    assert without > 32 << 10
    assert abs(filled) < 4 << 10


def _nothing() -> None:
    """Leave the stock as it is."""


def _grown(fill: Callable[[], None]) -> int:
    """The heap's growth over runs of a thread that keeps nothing."""
    host = HostProbe()
    host.open()
    try:
        if HEAP not in host.counters:
            pytest.skip("malloc is not glibc's")
        fill()
        before = host.heap_bytes()
        for seed in range(20):
            rng = random.Random(seed)
            pieces = [bytes(rng.randrange(500, 1000)) for _ in range(rng.randrange(99))]
            pieces.clear()
        fill()
        return host.heap_bytes() - before
    finally:
        host.close()
