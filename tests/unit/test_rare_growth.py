"""Growth that comes in rare steps: a buffer that is enlarged whenever it is full."""

from __future__ import annotations

import itertools
import sys

import pytest

from pytest_veo.memory.leak import Course
from pytest_veo.memory.leak import Rule
from pytest_veo.memory.leak import course


HASTY = Rule(floor=24)
PATIENT = Rule(floor=24, large=65_536, tiny=512, small=16_384, quiet_runs=12)


def _list_sizes(entries_per_run: int, runs: int) -> list[int]:
    """Bytes of a list that takes so many references a run."""
    kept: list[None] = []
    sizes = [sys.getsizeof(kept)]
    for _ in range(runs):
        kept += [None] * entries_per_run
        sizes.append(sys.getsizeof(kept))
    return sizes


def _decided(sizes: list[int], rule: Rule) -> dict[int, Course]:
    """The course after each number of runs at which there is one."""
    found = {
        runs: course(sizes[: runs + 1], rule)
        for runs in itertools.chain(range(1, 100), range(100, len(sizes), 50))
    }
    return {runs: kind for runs, kind in found.items() if kind is not Course.UNDECIDED}


@pytest.mark.parametrize("entries", [10, 100, 1_000])
def test_a_list_that_goes_on_growing_is_never_flat(entries: int) -> None:
    decided = _decided(_list_sizes(entries, 1_000), PATIENT)
    assert set(decided.values()) == {Course.GROWING}
    assert max(decided) == 1_000


def test_a_list_that_has_reached_its_size_is_flat() -> None:
    sizes = _list_sizes(100, 60)
    decided = _decided(sizes + [sizes[-1]] * 100, PATIENT)
    assert decided[150] is Course.FLAT


def test_few_quiet_runs_do_not_wait_for_rare_growth() -> None:
    decided = _decided(_list_sizes(100, 60), HASTY)
    assert decided[60] is Course.FLAT


@pytest.mark.parametrize("period", [5, 9, 11])
def test_growth_on_every_eleventh_run_is_growing_in_the_end(period: int) -> None:
    sizes = [4_096 * (run // period) for run in range(501)]
    decided = _decided(sizes, PATIENT)
    assert decided[500] is Course.GROWING
    assert Course.FLAT not in decided.values()


def test_a_figure_that_comes_down_again_and_again_does_not_grow() -> None:
    sizes = [run % 60 * 1_000 for run in range(501)]
    decided = _decided(sizes, PATIENT)
    assert decided.get(500) is not Course.GROWING
