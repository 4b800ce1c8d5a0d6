"""Who looks guilty at the first look, and how the session's noise is learned."""

from __future__ import annotations

import pytest

from pytest_veo.measure.gate import Credit
from pytest_veo.measure.gate import Gate
from pytest_veo.measure.gate import Suspicion
from pytest_veo.measure.gate import is_large
from pytest_veo.measure.gate import is_next_arena
from pytest_veo.measure.meter import Layout
from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Rung
from pytest_veo.units import Unit


BLOCKS = Counter("host", "python_blocks", Unit.COUNT, gate=8)
HEAP = Counter("host", "heap", Unit.BYTES, gate=256)
MAPPED = Counter("host", "mapped", Unit.BYTES, rung=Rung.DRIVER, gate=0)
FILES = Counter("host", "descriptors", Unit.COUNT, always=True)
GPU = Counter("torch", "allocated", Unit.BYTES, device="GPU-0", always=True)
WHOLE = Counter("nvml", "device_used", Unit.BYTES, device="GPU-0", rung=Rung.DEVICE)
LAYOUT = Layout((BLOCKS, HEAP, FILES, GPU, WHOLE))
IDLE = [35, 304, 0, 0, 0]


def grown(**more: int) -> list[int]:
    names = {"blocks": 0, "heap": 1, "files": 2, "gpu": 3, "whole": 4}
    figures = list(IDLE)
    for name, amount in more.items():
        figures[names[name]] += amount
    return figures


@pytest.mark.parametrize(
    ("more", "quiet"),
    [
        ({}, True),
        ({"blocks": 8}, True),
        ({"blocks": 9}, False),
        ({"heap": 256}, True),
        ({"heap": 257}, False),
        ({"files": 1}, False),
        ({"gpu": 1}, False),
        ({"gpu": -1}, True),
        ({"whole": 1 << 40}, True),
    ],
    ids=str,
)
def test_a_test_is_quiet_up_to_each_counter_s_gate(
    more: dict[str, int], quiet: bool
) -> None:
    assert Gate().is_quiet(LAYOUT, grown(**more), 0) is quiet


def test_each_fixture_may_cost_something_too() -> None:
    gate = Gate()
    assert not gate.is_quiet(LAYOUT, grown(blocks=60), 0)
    assert gate.is_quiet(LAYOUT, grown(blocks=60), 10)


def test_what_idle_tests_cost_is_learned_both_ways() -> None:
    gate = Gate()
    for _ in range(40):
        gate.saw(LAYOUT, grown(blocks=30), 0)
    assert gate.is_quiet(LAYOUT, grown(blocks=38), 0)
    assert not gate.is_quiet(LAYOUT, grown(blocks=39), 0)
    for _ in range(40):
        gate.saw(LAYOUT, grown(blocks=-20), 0)
    assert not gate.is_quiet(LAYOUT, grown(), 0)


def test_one_costly_clean_test_does_not_open_the_gate() -> None:
    gate = Gate()
    for _ in range(20):
        gate.saw(LAYOUT, grown(), 0)
    gate.saw(LAYOUT, grown(blocks=400, heap=50_000), 0)
    assert not gate.is_quiet(LAYOUT, grown(blocks=9), 0)


def test_suspicions_tell_what_is_beyond_an_idle_test() -> None:
    found = Gate().suspicions(LAYOUT, grown(blocks=600, heap=300, files=1), 0)
    assert found == [
        Suspicion(BLOCKS, 600, is_large=True),
        Suspicion(HEAP, 300, is_large=False),
        Suspicion(FILES, 1, is_large=True),
    ]


def test_suspicions_that_were_nothing_raise_the_gate_and_handles_never_do() -> None:
    gate = Gate()
    false_alarm = [
        Suspicion(HEAP, 900, is_large=False),
        Suspicion(FILES, 1, is_large=True),
    ]
    for _ in range(3):
        assert not gate.is_quiet(LAYOUT, grown(heap=900), 0)
        gate.cleared(false_alarm)
    assert gate.is_quiet(LAYOUT, grown(heap=900), 0)
    assert not gate.is_quiet(LAYOUT, grown(files=1), 0)


def test_the_gate_never_rises_to_what_is_large() -> None:
    gate = Gate()
    for _ in range(9):
        gate.cleared([Suspicion(HEAP, 10 << 20, is_large=True)])
    assert not gate.is_quiet(LAYOUT, grown(heap=(64 << 10) + 256), 0)


@pytest.mark.parametrize(
    ("counter", "growth", "large"),
    [
        (FILES, 1, True),
        (GPU, 1, True),
        (BLOCKS, 511, False),
        (BLOCKS, 512, True),
        (HEAP, (64 << 10) - 1, False),
        (HEAP, 64 << 10, True),
        (MAPPED, 1 << 20, False),
        (MAPPED, (1 << 20) + 4096, True),
    ],
    ids=str,
)
def test_large_growth_is_followed_whatever_it_costs(
    counter: Counter, growth: int, large: bool
) -> None:
    assert is_large(counter, growth) is large


def test_the_credit_grows_with_the_tests_time_and_may_be_overdrawn() -> None:
    credit = Credit(left_ns=1_000, share=0.1)
    assert credit.affords(999)
    assert not credit.affords(1_000)
    credit.earn(50_000)
    assert credit.affords(5_999)
    credit.spend(10_000)
    assert not credit.affords(0)


@pytest.mark.parametrize(
    ("counter", "growth", "is_arena"),
    [
        (MAPPED, 1 << 20, True),
        (MAPPED, 2 << 20, False),
        (MAPPED, (1 << 20) + 4096, False),
        (HEAP, 1 << 20, False),
    ],
)
def test_one_arena_more_is_told_from_other_mappings(
    counter: Counter, growth: int, is_arena: bool
) -> None:
    suspicion = Suspicion(counter, growth, is_large=False)
    assert is_next_arena(suspicion) is is_arena
