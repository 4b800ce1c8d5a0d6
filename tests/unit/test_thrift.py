from __future__ import annotations

import pytest

from pytest_veo.measure.thrift import Thrift


IDLE = 55
COST_NS = 70_000
SHORT_NS = 300_000


def quiet(thrift: Thrift, tests: int, *, blocks: int = 34) -> None:
    """So many tests that are counted one by one."""
    for _ in range(tests):
        assert not thrift.may_skip(IDLE, 0, SHORT_NS)
        thrift.counted(COST_NS)
        thrift.saw(blocks, 0)


@pytest.fixture
def seasoned() -> Thrift:
    thrift = Thrift()
    quiet(thrift, 128)
    return thrift


def skip(thrift: Thrift, tests: int, start: int = 0) -> int:
    """So many tests that are not counted; the blocks then taken for true."""
    for _ in range(tests):
        assert thrift.may_skip(IDLE, 0, SHORT_NS // 100)
        start = thrift.idle(start, 0)()
    return start


def test_the_first_tests_are_counted_one_by_one(seasoned: Thrift) -> None:
    assert seasoned.may_skip(IDLE, 0, SHORT_NS)


@pytest.mark.parametrize(
    ("newborn", "fixtures", "test_ns"),
    [
        pytest.param(58, 0, SHORT_NS, id="it left objects to the collector"),
        pytest.param(None, 0, SHORT_NS, id="the collector ran"),
        pytest.param(IDLE, 1, SHORT_NS, id="no test of its kind was seen"),
        pytest.param(
            IDLE, 0, 50 * COST_NS, id="it takes so long that counting is nothing"
        ),
    ],
)
def test_a_test_is_counted_where_something_speaks_for_it(
    seasoned: Thrift, newborn: int | None, fixtures: int, test_ns: int
) -> None:
    assert not seasoned.may_skip(newborn, fixtures, test_ns)


def test_tests_that_are_not_counted_are_taken_for_idle_ones(seasoned: Thrift) -> None:
    assert skip(seasoned, 10, 1000) == 1000 + 340
    assert not seasoned.is_counted


def test_counting_is_paid_from_the_tests_own_time(seasoned: Thrift) -> None:
    counted = 0
    for _ in range(2000):
        if seasoned.may_skip(IDLE, 0, SHORT_NS):
            seasoned.idle(0, 0)
        else:
            seasoned.counted(COST_NS)
            seasoned.saw(34, 0)
            counted += 1
    paid_for = 2000 * SHORT_NS * 0.02 / COST_NS
    assert counted == pytest.approx(paid_for * 1.25, rel=0.2)  # each fourth, one more


def test_never_more_than_so_many_tests_are_counted_together(seasoned: Thrift) -> None:
    skip(seasoned, 32)
    assert not seasoned.may_skip(IDLE, 0, 0)
    seasoned.counted(COST_NS)
    assert seasoned.others == 32


def test_after_four_groups_a_test_is_counted_alone(seasoned: Thrift) -> None:
    alone = []
    for _ in range(4):
        skip(seasoned, 5)
        seasoned.counted(COST_NS)
        assert seasoned.others == 5
        alone.append(not seasoned.may_skip(IDLE, 0, 0))
    assert alone == [False, False, False, True]


def test_what_uncounted_tests_really_cost_is_learned(seasoned: Thrift) -> None:
    """Here 32 blocks, two less than one that is counted."""
    taken = real = 0
    for _ in range(200):
        if seasoned.may_skip(IDLE, 0, SHORT_NS):
            taken = seasoned.idle(taken, 0)()
            real += 32
        else:
            seasoned.counted(COST_NS)
            real += 34
            seasoned.saw(real - taken, 0)
            taken = real
    assert abs(taken - real) <= 2


def test_after_an_alarm_tests_are_counted_one_by_one_for_a_while(
    seasoned: Thrift,
) -> None:
    seasoned.alarm()
    quiet(seasoned, 32)
    assert seasoned.may_skip(IDLE, 0, 0)


def test_a_test_that_is_counted_alone_is_given_no_doubt(seasoned: Thrift) -> None:
    seasoned.counted(COST_NS)
    assert list(seasoned.beyond_doubt([50, 7])) == [50, 7]


def test_several_tests_together_are_given_eight_blocks(seasoned: Thrift) -> None:
    skip(seasoned, 3)
    seasoned.counted(COST_NS)
    assert list(seasoned.beyond_doubt([50, 7])) == [42, 7]


def test_a_test_that_looks_guilty_is_counted(seasoned: Thrift) -> None:
    seasoned.must_count()
    assert not seasoned.may_skip(IDLE, 0, 0)


def test_a_process_at_rest_has_nothing_uncounted(seasoned: Thrift) -> None:
    skip(seasoned, 3)
    seasoned.rest()
    seasoned.counted(COST_NS)
    assert seasoned.others == 0


def test_what_the_collector_took_in_between_teaches_nothing(seasoned: Thrift) -> None:
    for _ in range(3):
        skip(seasoned, 5)
        assert not seasoned.may_skip(None, 0, SHORT_NS)
        seasoned.counted(COST_NS)
        seasoned.saw(-400, 0)
    assert skip(seasoned, 10, 1000) == 1000 + 340
