"""Growth into a bounded place is retention, however many runs it fills.

The holder decides where the count of runs cannot: a cache with a limit that is not
reached yet grows as steadily as a leak. A leak beside a filling cache is still one,
so the place has to account for what was measured.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from typing import NamedTuple

from pytest_veo.measure.meter import growth
from pytest_veo.memory.snapshot import HOST
from pytest_veo.probes.host import BLOCKS
from pytest_veo.probes.host import HEAP
from pytest_veo.units import Unit


if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_veo.evidence.places import GrownPlace
    from pytest_veo.evidence.retained import Weight
    from pytest_veo.measure.confirm import Confirmed
    from pytest_veo.measure.meter import Glance


class _Slack(NamedTuple):
    """How far above its estimated weight growth may lie."""

    factor: float
    spare_blocks: float
    spare_bytes: float

    def covers(self, blocks: float, large_bytes: float, weight: Weight) -> bool:
        """Whether the weight accounts for the growth."""
        most_blocks = weight.blocks * self.factor + self.spare_blocks
        most_bytes = weight.large_bytes * self.factor + self.spare_bytes
        return blocks <= most_blocks and large_bytes <= most_bytes


_BESIDE_OTHERS = _Slack(1.3, 3, 96)
"""An unbounded place grows, too: the bounded ones must account for nearly all."""
_ALONE = _Slack(5, 16, 1024)
"""Only bounded places grow. Entries that several caches share are not weighed."""


class Filling(NamedTuple):
    """The bounded place that explains a test's growth."""

    path: str
    limit: str
    """As it is written: `maxsize=100`."""
    entries: int
    ceiling_entries: int
    held_bytes: int
    """Of an entry, about."""
    runs_left: int
    """Runs until it, and each that fills beside it, is full."""
    is_weighed: bool
    """Whether what it holds accounts for the growth closely. If not, C objects that
    cannot be weighed may account for it, or something beside it."""

    @property
    def projected_bytes(self) -> int:
        """What it may still take: places left times the weight of an entry."""
        return max(0, self.ceiling_entries - self.entries) * self.held_bytes

    def __str__(self) -> str:
        unsure = "" if self.is_weighed else ", not all of it weighed"
        path = self.path.removesuffix(f" ({self.limit})")  # a cache's name has it
        return f"{path} ({self.limit}, {self.entries} in use{unsure})"


def filling(
    grown: Sequence[GrownPlace],
    *,
    blocks_per_run: float,
    heap_bytes_per_run: float,
    handles_per_run: float,
    steady: frozenset[str],
) -> Filling | None:
    """The bounded place that accounts for the growth; None if none does.

    Args:
        grown: the places that grew over some re-runs.
        blocks_per_run: Python blocks, measured over the same runs.
        heap_bytes_per_run: native heap, likewise.
        handles_per_run: the most of threads, descriptors and children.
        steady: the counters whose growth repeats. Only that must be accounted for;
            the rest may be nothing, as a full place shows.
    """
    from pytest_veo.evidence.retained import Weight

    bounded = [place for place in grown if place.is_bounded]
    if not bounded:
        return None
    bounded += [place for place in grown if _keeps_step(place, bounded)]
    alone = not any(_is_suspect(place) for place in grown if place not in bounded)
    fills = sum(place.entries_per_run for place in bounded)
    if handles_per_run > 1.3 * fills:
        return None
    slack = _ALONE if alone else _BESIDE_OTHERS
    of_handles = alone and handles_per_run > 0
    weight = sum((place.weight_per_run for place in bounded), Weight())
    is_known = not (alone and weight.is_at_least)
    steady_blocks = blocks_per_run if BLOCKS.key in steady else 0
    steady_bytes = heap_bytes_per_run if HEAP.key in steady else 0
    if (
        is_known
        and not of_handles
        and not slack.covers(steady_blocks, steady_bytes, weight)
    ):
        return None
    limited = [place for place in bounded if place.is_bounded]
    main = max(limited, key=lambda place: place.weight_per_run.total_bytes)
    return Filling(
        path=main.path,
        limit=main.bounded_by,
        entries=main.entries,
        ceiling_entries=main.ceiling_entries or main.entries,
        held_bytes=round(main.held_bytes),
        runs_left=max(
            math.ceil((place.places_left or 0) / place.entries_per_run)
            for place in limited
        ),
        is_weighed={BLOCKS.key, HEAP.key}.issuperset(steady)
        and _BESIDE_OTHERS.covers(blocks_per_run, heap_bytes_per_run, weight),
    )


def filling_of(
    grown: Sequence[GrownPlace],
    before: Glance,
    after: Glance,
    runs: int,
    shown: Confirmed,
) -> Filling | None:
    """As `filling`, from the figures before and after the re-runs.

    Args:
        grown: the places that grew over them.
        before: figures.
        after: figures.
        runs: how many there were.
        shown: what more runs showed: a table that doubles makes a leap that few runs
            do not level out.
    """
    slopes = shown.slopes()
    change = dict(zip(after.layout, growth(before, after), strict=True))
    per_run = {
        counter.key: min(amount / runs, slopes.get(counter.key, amount / runs))
        for counter, amount in change.items()
    }
    handles = [
        amount / runs
        for counter, amount in change.items()
        if counter.always and counter.device == HOST and counter.unit is Unit.COUNT
    ]
    places = shown.growing() or shown.likely()
    return filling(
        grown,
        blocks_per_run=per_run.get(BLOCKS.key, 0),
        heap_bytes_per_run=per_run.get(HEAP.key, 0),
        handles_per_run=max(handles, default=0),
        steady=frozenset(shown.layout[place].key for place in places),
    )


def _keeps_step(place: GrownPlace, bounded: Sequence[GrownPlace]) -> bool:
    """Whether it has an entry for each of a bounded place beside it, as an index has.

    Who takes entries out of one takes them out of the other.
    """
    return not place.is_bounded and any(
        abs(place.entries - other.entries) <= 1 + other.entries // 16
        and place.entries_per_run == other.entries_per_run
        and _owner(place.path) == _owner(other.path)
        for other in bounded
    )


def _owner(path: str) -> str:
    """The module or object that a place is in: its path without the last name."""
    return path.rpartition(".")[0]


def _is_suspect(place: GrownPlace) -> bool:
    """Whether it is a place of the user's that nothing limits."""
    from pytest_veo.evidence.roots import Root

    is_innocent = place.is_bounded or place.is_bookkeeping or place.owner == "pytest"
    # What no Python object refers to is most often a passing object of C code.
    return not is_innocent and place.is_certain and place.root is not Root.NATIVE
