"""The containers of the heap and their lengths at one instant.

A container of every type that tells its length in C is looked at, those too that the
collector does not list. Kept are plain numbers.
"""

from __future__ import annotations

import array
import collections
import dataclasses
import gc
import io
import itertools
import math
import queue
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from pytest_veo.evidence import objects
from pytest_veo.evidence import untracked
from pytest_veo.evidence.bounds import LRU


_OFTEN = 0.25  # of the runs: growth that is rarer does not belong to the test

_SIZED: tuple[tuple[type, str, Any], ...] = (
    (collections.OrderedDict, "OrderedDict", dict.__len__),
    (dict, "kind of dict", dict.__len__),
    (list, "kind of list", list.__len__),
    (set, "kind of set", set.__len__),
    (collections.deque, "deque", collections.deque.__len__),
    (LRU, "lru_cache", lambda held: LRU.__dict__["cache_info"](held)[3]),
    (queue.SimpleQueue, "SimpleQueue", queue.SimpleQueue.qsize),
    (bytearray, "bytearray", bytearray.__len__),
    (array.array, "array", array.array.__len__),
    (io.BytesIO, "BytesIO", io.BytesIO.__sizeof__),
)
BUFFERS = ("bytearray", "array", "BytesIO")
"""Kinds whose length is in bytes."""
_EXACT: tuple[type, ...] = (dict, list, set)
_LENGTHS: dict[str, Any] = {
    **{name: length for _, name, length in _SIZED},
    **{kind.__name__: kind.__len__ for kind in _EXACT},  # type: ignore[attr-defined]
}


@dataclasses.dataclass(slots=True)
class Column:
    """The containers of one type at one instant; numbers only."""

    ids: array.array[int]
    lengths: array.array[int]
    firsts: array.array[int]


@dataclasses.dataclass(slots=True)
class Candidate:
    """A container that has grown."""

    held: object
    kind: str
    entries: int
    per_run: float
    is_certain: bool
    was_empty: bool


def containers() -> Iterator[tuple[str, list[Any]]]:
    """Every container of the heap, grouped by the type that gives its length."""
    heap = gc.get_objects()
    loose = _untracked(heap)
    for kind in _EXACT:
        found: list[Any] = [o for o in heap if type(o) is kind]
        yield kind.__name__, found + loose.pop(kind.__name__, [])
    others: dict[str, list[Any]] = loose
    wanted = _other_types(heap)
    for held in [o for o in heap if id(type(o)) in wanted]:
        others.setdefault(wanted[id(type(held))], []).append(held)
    yield from others.items()


def _other_types(heap: list[object]) -> dict[int, str]:
    """Identity of each further container type on the heap, with its name here."""
    kinds = dict(zip(map(id, map(type, heap)), map(type, heap), strict=True))
    exact = set(map(id, _EXACT))
    found = {}
    for number, kind in kinds.items():
        base = next((b for b in _SIZED if objects.is_subtype(kind, b[0])), None)
        if base is not None and number not in exact:
            found[number] = base[1]
    return found


def _untracked(heap: list[object]) -> dict[str, list[Any]]:
    """Containers that the collector does not list, found through those it does."""
    found: dict[str, dict[int, object]] = {"dict": {}, "bytearray": {}, "array": {}}
    for held in untracked.found_from(heap):
        if type(held) is not tuple:
            found[type(held).__name__][id(held)] = held
    return {name: list(held.values()) for name, held in found.items()}


def column(name: str, held: list[Any]) -> Column:
    """The lengths of the containers of one kind, now."""
    return Column(
        array.array("Q", map(id, held)),
        array.array("q", map(_LENGTHS[name], held)),
        _firsts(name, held),
    )


def _firsts(name: str, held: list[Any]) -> array.array[int]:
    """Identity of each first entry: a sign that it is still the same container."""
    if name not in ("dict", "list"):
        return array.array("Q")
    nothing = itertools.repeat(None)
    return array.array("Q", map(id, map(next, map(iter, held), nothing)))


def misses(heap: Iterable[object]) -> dict[int, int]:
    """What was not found in each full `lru_cache` so far, by its identity."""
    found = {}
    for held in heap:
        if type(held) is LRU:
            _, missed, limit, entries = LRU.__dict__["cache_info"](held)
            if limit and entries >= limit:
                found[id(held)] = missed
    return found


def turned(before: dict[int, int], runs: int) -> list[Candidate]:
    """The `lru_cache`s that were full before and have let go of entries for new ones.

    They do not grow, and what they hold may: old entries may have weighed less.
    """
    heap = gc.get_objects()
    now = misses(heap)
    enough = max(min(runs, 2), math.ceil(runs * _OFTEN))
    return [
        Candidate(
            held=held,
            kind="lru_cache",
            entries=LRU.__dict__["cache_info"](held)[3],
            per_run=(now[id(held)] - before[id(held)]) / runs,
            is_certain=True,
            was_empty=False,
        )
        for held in heap
        if type(held) is LRU
        and id(held) in before
        and now.get(id(held), 0) - before[id(held)] >= enough
    ]


def compare(before: Column, name: str, held: list[Any], runs: int) -> list[Candidate]:
    """Those of the containers that are longer than before, by more than chance."""
    index = dict(zip(before.ids, range(len(before.ids)), strict=True))
    enough = max(min(runs, 2), math.ceil(runs * _OFTEN))
    lengths, firsts = before.lengths, before.firsts
    found = []
    for obj, length in zip(held, map(_LENGTHS[name], held), strict=True):
        i = index.get(id(obj))
        if i is None or length - lengths[i] < enough:
            continue
        same = not firsts or not lengths[i] or _firsts(name, [obj])[0] == firsts[i]
        per_run = (length - lengths[i]) / runs
        found.append(Candidate(obj, name, length, per_run, same, not lengths[i]))
    return found
