"""Whether a place with a limit explains growth, with places made up."""

from __future__ import annotations

import pytest

from pytest_veo.evidence.places import GrownPlace
from pytest_veo.evidence.roots import Root
from pytest_veo.measure.bounded import filling


CACHE = GrownPlace(
    kind="lru_cache",
    path="functools.lru_cache of urllib.parse.urlsplit (maxsize=128)",
    root=Root.MODULE,
    owner="python",
    entries=43,
    entries_per_run=2.0,
    ceiling_entries=128,
    bounded_by="maxsize=128",
    held_blocks=7.0,
    held_bytes=540.0,
)
BESIDE = GrownPlace(
    kind="list",
    path="app.LOG",
    root=Root.MODULE,
    owner="user",
    entries=20,
    entries_per_run=1.0,
)
BLOCKS, HEAP = "host.python_blocks", "host.heap"


@pytest.mark.parametrize(
    ("places", "steady", "explains", "weighed"),
    [
        ((CACHE,), {BLOCKS}, True, False),
        ((CACHE, BESIDE), {BLOCKS}, True, False),
        ((CACHE, BESIDE), {BLOCKS, HEAP}, False, False),
        ((BESIDE,), {BLOCKS}, False, False),
    ],
    ids=[
        "the heap wanders",
        "a list beside it takes no block",
        "the heap grows, too",
        "no limit",
    ],
)
def test_only_steady_growth_must_be_accounted_for(
    places: tuple[GrownPlace, ...], steady: set[str], explains: bool, weighed: bool
) -> None:
    place = filling(
        places,
        blocks_per_run=14.0,
        heap_bytes_per_run=277.0,
        handles_per_run=0.0,
        steady=frozenset(steady),
    )
    assert (place is not None) is explains
    assert place is None or place.is_weighed is weighed


@pytest.mark.parametrize(
    ("steady", "weighed"),
    [({BLOCKS}, True), ({BLOCKS, "torch.allocated"}, False)],
    ids=["the host", "a device, too"],
)
def test_memory_of_a_device_is_not_weighed(steady: set[str], weighed: bool) -> None:
    place = filling(
        (CACHE,),
        blocks_per_run=14.0,
        heap_bytes_per_run=0.0,
        handles_per_run=0.0,
        steady=frozenset(steady),
    )
    assert place is not None
    assert place.is_weighed is weighed
    assert place.runs_left == 43


def test_the_limit_of_a_cache_is_told_once() -> None:
    place = filling(
        (CACHE,),
        blocks_per_run=14.0,
        heap_bytes_per_run=0.0,
        handles_per_run=0.0,
        steady=frozenset({BLOCKS}),
    )
    assert str(place) == (
        "functools.lru_cache of urllib.parse.urlsplit (maxsize=128, 43 in use)"
    )
