from __future__ import annotations

import collections
import gc
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_veo.evidence import retained
from pytest_veo.evidence.retained import Weight


def texts() -> st.SearchStrategy[Any]:
    return st.integers(2, 900).map(lambda n: bytes([n % 251]) * n)


VALUES = st.recursive(
    texts(),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=6)
        | st.dictionaries(st.integers(1000, 10**9), inner, min_size=1, max_size=6)
        | st.tuples(inner, inner)
    ),
    max_leaves=25,
)


def copied(value: Any) -> Any:
    """The same structure made anew: what hypothesis holds must not be shared."""
    if isinstance(value, list):
        return [copied(each) for each in value]
    if isinstance(value, dict):
        return {key + 10**10: copied(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple([copied(each) for each in value])
    return bytes(bytearray(value))


def held_and_freed(value: Any) -> tuple[Weight, int]:
    gc.freeze()  # collections of the rest of the heap would take most of the time
    box = [copied(value)]
    (weight,) = retained.held_by([iter(box)], {id(box[0]): 1})
    gc.collect()
    before = sys.getallocatedblocks()
    box.clear()
    gc.collect()  # which also empties the free lists
    freed = before - sys.getallocatedblocks()
    gc.unfreeze()
    return weight, freed


@settings(max_examples=30, deadline=None)
@given(value=VALUES)
def test_the_estimate_is_what_is_freed(value: Any) -> None:
    weight, freed = held_and_freed(value)
    assert weight.blocks == pytest.approx(freed, rel=0.15, abs=3)


def test_what_somebody_else_holds_too_is_not_counted() -> None:
    shared = [bytes([1]) * 5000]
    box = [[shared, bytes([2]) * 3000]]
    (weight,) = retained.held_by([iter(box)], {id(box[0]): 1})
    assert 3000 < weight.large_bytes < 3200


def test_what_two_containers_hold_together_counts_for_the_first() -> None:
    value = bytes([1]) * 5000
    one, two = [[value]], [[value]]
    del value
    links = {id(one[0]): 1, id(two[0]): 1}
    first, second = retained.held_by([iter(one), iter(two)], links)
    assert first.large_bytes > 5000
    assert second.large_bytes == 0


def test_an_entry_that_leads_back_to_its_container_is_still_its_own() -> None:
    container: list[Any] = []
    container.append({"owner": container, "data": bytes([1]) * 5000})
    links = {id(container[0]): 1}
    (weight,) = retained.held_by([iter(container)], links, {id(container)})
    assert weight.large_bytes > 5000


def test_a_function_does_not_hold_its_module() -> None:
    def kept() -> None: ...

    box = [kept]
    del kept
    (weight,) = retained.held_by([iter(box)], {id(box[0]): 1})
    assert weight.total_bytes < 2000


@pytest.mark.parametrize(
    ("obj", "blocks"),
    [
        (bytes([1]) * 100, 1),
        ([1, 2, 3], 2),
        ([], 1),
        ({"a": 1}, 2),
        (collections.deque([1]), 2),
        (object(), 1),
    ],
    ids=["bytes", "list", "empty list", "dict", "deque", "object"],
)
def test_one_object_is_as_many_allocations_as_it_has_parts(
    obj: object, blocks: int
) -> None:
    assert retained.weigh(obj).blocks == blocks


def test_a_size_is_taken_without_the_users_sizeof() -> None:
    class Liar(list[int]):
        def __sizeof__(self) -> int:
            raise AssertionError("code of the user ran")

    assert retained.size_of(Liar([1, 2, 3])) > 50


def test_weights_add_up_and_divide() -> None:
    one = Weight(2, 100, 10)
    assert one + one == one * 2
    assert (one * 4) / 4 == one
