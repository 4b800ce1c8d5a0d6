"""Snapshots, charges and the judge of re-runs."""

from __future__ import annotations

import pytest

from pytest_veo.memory.charge import Ledger
from pytest_veo.memory.charge import add
from pytest_veo.memory.charge import subtract
from pytest_veo.memory.leak import Course
from pytest_veo.memory.leak import Rule
from pytest_veo.memory.leak import course
from pytest_veo.memory.leak import deltas
from pytest_veo.memory.leak import slope
from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Reading
from pytest_veo.memory.snapshot import Snapshot
from pytest_veo.memory.snapshot import Trouble
from pytest_veo.units import Unit


HEAP = Counter("host", "heap", Unit.BYTES)
GPU_0 = Counter("torch", "allocated", Unit.BYTES, device="GPU-0")
GPU_1 = Counter("torch", "allocated", Unit.BYTES, device="GPU-1")


def snapshot(**values: int) -> Snapshot:
    known = {"heap": HEAP, "gpu_0": GPU_0, "gpu_1": GPU_1}
    return Snapshot(tuple(Reading(known[n], v) for n, v in values.items()))


def test_a_change_is_after_minus_before_for_each_device() -> None:
    before = snapshot(heap=100, gpu_0=5, gpu_1=7)
    after = snapshot(heap=160, gpu_0=4, gpu_1=9)
    assert after.change(before, "host.heap") == 60
    assert after.change(before, "torch.allocated", "GPU-0") == -1
    assert after.change(before, "torch.allocated") == 1


def test_a_counter_that_is_new_counted_zero_before() -> None:
    after = snapshot(heap=100, gpu_0=512)
    assert after.change(snapshot(heap=100), "torch.allocated") == 512


def test_a_device_that_is_gone_takes_no_part_in_the_change() -> None:
    before = snapshot(gpu_0=512, gpu_1=7)
    assert snapshot(gpu_1=9).change(before, "torch.allocated") == 2


def test_a_value_is_summed_over_devices_or_of_one() -> None:
    shot = snapshot(gpu_0=5, gpu_1=7)
    assert shot.value("torch.allocated") == 12
    assert shot.value("torch.allocated", "GPU-1") == 7
    assert shot.value("host.heap") is None


@pytest.mark.parametrize(
    ("trouble", "text"),
    [
        (Trouble("nvml", "no driver"), "nvml: unavailable, no driver"),
        (
            Trouble("torch", "gone", device="GPU-0", counter="allocated"),
            "torch.allocated GPU-0: unavailable, gone",
        ),
        (Trouble("cupy", "broke", is_error=True), "cupy: error, broke"),
    ],
)
def test_a_trouble_says_what_where_and_why(trouble: Trouble, text: str) -> None:
    assert str(trouble) == text


def test_what_a_fixture_takes_is_booked_on_it_and_not_on_the_window() -> None:
    ledger = Ledger()
    ledger.start_window()
    outer = ledger.begin("outer (session)")
    inner = ledger.begin("inner (session)")
    ledger.end("inner", inner, {HEAP: 30})
    ledger.end("outer", outer, {HEAP: 100})
    assert inner.own() == {HEAP: 30}
    assert outer.own() == {HEAP: 70}
    assert ledger.in_window == {HEAP: 100}
    ledger.charge(HEAP, 5)
    assert ledger.in_window == {HEAP: 105}
    ledger.start_window()
    assert ledger.in_window == {}
    assert ledger.close("inner") is inner
    assert ledger.close("inner") is None


def test_amounts_are_added_and_taken_off_by_counter() -> None:
    assert add({HEAP: 1}, {HEAP: 2, GPU_0: 3}) == {HEAP: 3, GPU_0: 3}
    assert subtract({HEAP: 1}, {HEAP: 2, GPU_0: 3}) == {HEAP: -1, GPU_0: -3}


BYTES = Rule(floor=24.0, large=64 << 10, tiny=512.0, small=16 << 10)
BLOCKS = Rule(floor=0.9, large=500.0, tiny=8.0)
HANDLES = Rule(floor=0.3)


def series(*growth: int, start: int = 1_000_000) -> list[int]:
    values = [start]
    for change in growth:
        values.append(values[-1] + change)
    return values


@pytest.mark.parametrize(
    ("rule", "growth", "expected"),
    [
        (BYTES, [0, 0, 0], Course.FLAT),
        (BYTES, [100_000, 0, 0, 0], Course.FLAT),
        (BYTES, [100_000] * 3, Course.GROWING),
        (BYTES, [100_000] * 2, Course.UNDECIDED),
        (BYTES, [100_000, 90_000, 110_000, 100_000], Course.GROWING),
        (BYTES, [1000] * 12, Course.GROWING),
        (BYTES, [1000, 400] * 6, Course.UNDECIDED),
        (BYTES, [20_000] * 12, Course.GROWING),
        (BYTES, [40_000, 0] * 8, Course.UNDECIDED),
        (BYTES, [40_000, 0] * 16, Course.GROWING),
        (BYTES, [1000] * 40, Course.GROWING),
        (BYTES, [100] * 12, Course.UNDECIDED),
        (BYTES, [100] * 40, Course.GROWING),
        (BLOCKS, [2] * 12, Course.UNDECIDED),
        (BLOCKS, [2] * 40, Course.GROWING),
        (BLOCKS, [9, 7, 5, 3, 2, 1, 1, 0, 0, 0], Course.FLAT),
        (BLOCKS, [-5, -5, -5], Course.FLAT),
        (BLOCKS, [5, -5] * 10, Course.FLAT),
        (HANDLES, [1] * 11, Course.UNDECIDED),
        (HANDLES, [1] * 12, Course.GROWING),
        (HANDLES, [1, 0] * 10, Course.UNDECIDED),
        (HANDLES, [1, 0] * 16, Course.GROWING),
        (HANDLES, [1, 1, 1, 0, 0, 0], Course.FLAT),
    ],
    ids=repr,
)
def test_the_course_of_a_series(
    rule: Rule, growth: list[int], expected: Course
) -> None:
    assert course(series(*growth), rule) is expected


def test_a_real_series_that_saturates_is_flat() -> None:
    megabytes = [12999, 14257, 14569, 14617, 14623, 14621, 14621, 14621]
    rule = Rule(floor=4096.0, large=2 << 20)
    assert course([m << 20 for m in megabytes], rule) is Course.FLAT


def test_the_slope_leaves_the_warm_up_out() -> None:
    assert slope(series(500, 10, 10, 10)) == 10
    assert slope([7]) == 0.0
    assert deltas([1, 4, 2]) == [3, -2]
