"""malloc's stock of freed memory, of a thread that is made for the test."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

import pytest

from pytest_veo.measure import stock
from pytest_veo.measure.confirm import Confirmed
from pytest_veo.measure.meter import Layout
from pytest_veo.memory.leak import Course
from pytest_veo.probes.host import BLOCKS
from pytest_veo.probes.host import HEAP
from pytest_veo.probes.host import HostProbe


LIBC = ctypes.CDLL(None)
LIBC.malloc.restype = ctypes.c_void_p
LIBC.free.argtypes = [ctypes.c_void_p]


@pytest.mark.parametrize(
    ("prepare", "takes"),
    [(lambda: None, True), (stock.fill, False)],
    ids=["empty", "full"],
)
def test_a_full_stock_takes_nothing_more(
    prepare: Callable[[], None], takes: bool
) -> None:
    probe = HostProbe()
    probe.open()
    if HEAP not in probe.counters:
        pytest.skip("this libc does not tell what is in use")
    chunks = [LIBC.malloc(size) for size in stock.SIZES for _ in range(5)]
    freed = []

    def free() -> None:
        prepare()
        before = probe.heap_bytes()
        for chunk in chunks:
            LIBC.free(chunk)
        freed.append(before - probe.heap_bytes())

    thread = threading.Thread(target=free)
    thread.start()
    thread.join()
    probe.close()
    assert (freed[0] < 5 * sum(stock.SIZES) / 2) is takes


@pytest.mark.parametrize(
    ("blocks", "growth", "alone"),
    [
        (Course.FLAT, 600, True),
        (Course.UNDECIDED, 600, True),
        (Course.GROWING, 600, False),
        (Course.FLAT, 16 << 10, False),
    ],
    ids=["heap", "undecided blocks", "blocks, too", "too much for a stock"],
)
def test_little_growth_of_the_heap_alone_may_be_stock(
    blocks: Course, growth: int, alone: bool
) -> None:
    shown = Confirmed(
        layout=Layout((BLOCKS, HEAP)),
        series=((0,) * 9, tuple(growth * run for run in range(9))),
        courses=(blocks, Course.GROWING),
        runs=8,
        spent_ns=1,
    )
    assert shown.is_of_heap_alone is alone
