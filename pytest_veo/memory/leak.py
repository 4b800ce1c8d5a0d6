"""Whether growth repeats: the judge of re-runs.

A series is one counter's value after each run of the same test, the value before
the first of them in front. The judge sees differences only:

* growth that has stopped is retention (warm-up, cache, first use);
* growth that goes on in every third of the measured runs, does not fade, and
  stands out of its own scatter is a leak, even when it comes on every second run;
* anything else needs more runs.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple


class Course(enum.Enum):
    """How a counter goes on over re-runs."""

    FLAT = "flat"
    GROWING = "growing"
    UNDECIDED = "undecided"


QUIET_RUNS = 4
"""This many runs in a row without growth say that growth has stopped. A leak on
every second, third or fourth run shows within them."""
SHORT_RUNS = 4
"""Runs that suffice when each grew by about the same large amount."""
LONG_RUNS = 12
"""Runs that small growth must last before it is called growing."""
VERY_LONG_RUNS = 40
"""The same for tiny growth."""
LEAST_STEPS = 3
"""Runs that grew before the pauses between them mean anything."""
SIGMAS = 4.0
"""How far the mean growth must stand above its own standard error."""


class Rule(NamedTuple):
    """How one counter's course is judged; amounts in the counter's unit."""

    floor: float
    """Mean growth a run below which nothing is growing."""
    large: float | None = None
    """Even growth a run from which few runs suffice; None: few never suffice."""
    tiny: float = 0.0
    """Growth a run up to which very many runs are needed: clean programs grow by so
    little in each of their first ten runs or more."""
    small: float = 0.0
    """The same for growth that comes in uneven steps: an allocator's own stock."""
    stock: float = 0.0
    """What allocators of other threads may lay in: `small` growth in uneven steps
    proves nothing before there is more."""
    quiet_runs: int = 3
    """So many runs in a row without any growth say that it has stopped; where they
    are many, twice as many as there were between any two that grew."""


def deltas(values: Sequence[int]) -> list[int]:
    """Growth of each run."""
    return [after - before for before, after in itertools.pairwise(values)]


def course(values: Sequence[int], rule: Rule) -> Course:
    """How a counter goes on, from its value before and after each re-run.

    Args:
        values: the value before the first re-run, then after each.
        rule: how much is growth, and how many runs it takes.
    """
    growth = deltas(values)
    if _is_flat(growth, rule):
        return Course.FLAT
    if rule.large is not None and _is_large_and_even(growth, rule.large):
        return Course.GROWING
    if len(growth) >= LONG_RUNS and _goes_on(growth, rule):
        return Course.FLAT if _is_stock(growth, rule) else Course.GROWING
    return Course.UNDECIDED


def _is_flat(growth: Sequence[int], rule: Rule) -> bool:
    quiet_runs = rule.quiet_runs
    if quiet_runs > QUIET_RUNS:
        quiet_runs = max(quiet_runs, 2 * longest_pause(growth))
    last = growth[-quiet_runs:]
    if len(last) == quiet_runs and max(last) <= 0:
        return True
    quiet_runs = max(QUIET_RUNS, quiet_runs)
    last = growth[-quiet_runs:]
    return len(last) == quiet_runs and sum(last) < rule.floor * quiet_runs


def longest_pause(growth: Sequence[int]) -> int:
    """The most runs from one that grew to the next, the warm-up left out.

    A buffer that is enlarged by an eighth each time it is full grows in ever larger
    steps, ever more seldom.
    """
    tail = growth[warm_up(len(growth)) :]
    grew = [place for place, change in enumerate(tail) if change > 0]
    if len(grew) < LEAST_STEPS:
        return 0
    return max(after - before for before, after in itertools.pairwise(grew))


def _is_large_and_even(growth: Sequence[int], large: float) -> bool:
    last = growth[-3:]
    if len(growth) < 3 or min(last) < large:
        return False
    enough = SHORT_RUNS if max(last) > min(last) else 3
    return len(growth) >= enough and max(last) <= 1.5 * min(last)


def _goes_on(growth: Sequence[int], rule: Rule) -> bool:
    tail = growth[warm_up(len(growth)) :]
    needs_more = sum(tail) < rule.tiny * len(tail) or (
        sum(tail) < rule.small * len(tail) and not _is_even(tail)
    )
    if needs_more and len(growth) < VERY_LONG_RUNS:
        return False
    third = len(tail) // 3
    means = [
        sum(part) / third
        for part in (
            tail[-3 * third : -2 * third],
            tail[-2 * third : -third],
            tail[-third:],
        )
    ]
    fades = means[2] < 0.5 * means[0]
    if min(means) < rule.floor or fades:
        return False
    return _stands_out(tail) or _climbs(tail)


def _is_stock(growth: Sequence[int], rule: Rule) -> bool:
    if sum(growth) > rule.stock:
        return False
    tail = growth[warm_up(len(growth)) :]
    return sum(tail) < rule.small * len(tail) and not _is_even(tail)


def _climbs(tail: Sequence[int]) -> bool:
    """Whether it never comes down and rises by about as much in each quarter.

    Growth in rare large steps scatters too much to stand out of its own scatter.
    """
    quarter = len(tail) // 4
    if len(tail) < VERY_LONG_RUNS or min(tail) < 0:
        return False
    sums = [sum(tail[-(k + 1) * quarter : len(tail) - k * quarter]) for k in range(4)]
    return min(sums) >= 0.5 * sum(sums) / 4


def _is_even(tail: Sequence[int]) -> bool:
    """Whether nearly every run grew by about the same amount."""
    middle = sorted(tail)[len(tail) // 2]
    near = sum(1 for change in tail if abs(change - middle) <= middle / 8)
    return middle > 0 and near >= 0.7 * len(tail)


def _stands_out(tail: Sequence[int]) -> bool:
    mean = sum(tail) / len(tail)
    variance = sum((x - mean) ** 2 for x in tail) / (len(tail) - 1)
    return mean > SIGMAS * math.sqrt(variance / len(tail))


def warm_up(runs: int) -> int:
    """How many of the first runs are left out of the slope."""
    return max(1, runs // 4)


def slope(values: Sequence[int]) -> float:
    """Mean growth of a run after the warm-up runs."""
    tail = deltas(values)[warm_up(len(values) - 1) :]
    return sum(tail) / len(tail) if tail else 0.0
