"""The newest entries of a container, read without running anybody's code.

An `lru_cache` and a `SimpleQueue` keep their entries in C; the collector's traversal
shows them, in an order that is the same in CPython 3.11, 3.12 and 3.13.
"""

from __future__ import annotations

import collections
import gc
import itertools
import queue
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from pytest_veo.evidence import objects
from pytest_veo.evidence.bounds import LRU
from pytest_veo.evidence.retained import Weight


_QUEUE_IS_RING = sys.version_info >= (3, 13)  # its items are in C, not in a list
_LINK = Weight(1, 72, 0)
# A running thread holds itself, so counting references cannot weigh it. Measured:
# 24 to 29 blocks with CPython 3.11 to 3.13.
_THREAD = Weight(28, 4000, 2500)
_MOST_WEAK = 100


def is_wrapper(held: object) -> bool:
    """Whether the entries are in a container inside, which is no place of its own."""
    return type(held) is LRU or type(held) is queue.SimpleQueue


def newest(held: object, count: int) -> Iterator[tuple[object, ...]]:
    """The newest entries: `(key, value)` of a dict or cache, `(item,)` of others."""
    if type(held) is LRU:
        return itertools.islice(_cached(held), count)
    if type(held) is queue.SimpleQueue:
        return itertools.islice(_queued(held), count)
    # All at once, in C: another thread may change the container between two steps.
    return iter(list(itertools.islice(_backwards(held), count)))


def newest_type(held: object) -> str:
    """The type of the newest entry, of its value in a dict; empty if there is none."""
    found = next(newest(held, 1), ())
    return objects.type_name(type(found[-1])) if found else ""


def has_links(held: object) -> bool:
    """Whether it is a cache with a limit: each entry has a link, that holds the key."""
    return type(held) is LRU and LRU.__dict__["cache_info"](held)[2] is not None


def beside(held: object) -> Weight:
    """What an entry costs that counting references does not find."""
    found = next(newest(held, 1), ())
    is_thread = found and objects.is_subtype(type(found[-1]), threading.Thread)
    weight = _LINK if has_links(held) else Weight()
    return weight + _THREAD if is_thread else weight


def is_register(held: object) -> bool:
    """Whether it lists, by weak references, objects that live anyway.

    Weak references to the dead are no register: nobody cleans up.
    """
    found: list[Any] = [pair[-1] for pair in newest(held, _MOST_WEAK)]
    kinds = [type(each) for each in found]
    if not found or not all(
        objects.is_subtype(k, weakref.ReferenceType) for k in kinds
    ):
        return False
    alive = sum(weakref.ReferenceType.__call__(each) is not None for each in found)
    return alive * 2 > len(found)


def _cached(held: object) -> Iterator[tuple[object, ...]]:
    inside = gc.get_referents(held)
    position = next((i for i, r in enumerate(inside) if type(r) is dict), 0)
    if not has_links(held):
        yield from _backwards(inside[position])
        return
    # Key, result and the link's type of each entry stand before the table.
    for i in range(position - 3, -1, -3):
        yield inside[i], inside[i + 1]


def _queued(held: object) -> Iterator[tuple[object]]:
    inside = gc.get_referents(held)
    if _QUEUE_IS_RING:
        yield from zip(r for r in reversed(inside) if r is not queue.SimpleQueue)
        return
    for table in inside:
        if type(table) is list:
            yield from zip(list.__reversed__(table))


def _backwards(table: object) -> Iterator[tuple[object, ...]]:
    kind = type(table)
    if objects.is_dict(table):
        return iter(reversed(dict.items(table)))  # type: ignore[arg-type]
    if objects.is_subtype(kind, list):
        return zip(list.__reversed__(table))  # type: ignore[arg-type]
    if objects.is_subtype(kind, collections.deque):
        return zip(collections.deque.__reversed__(table))  # type: ignore[arg-type]
    if objects.is_subtype(kind, set):
        return zip(set.__iter__(table))  # type: ignore[arg-type]
    return iter(())
