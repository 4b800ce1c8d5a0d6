"""Containers of plain values, which the collector does not list.

A dict or tuple that holds nothing but plain values is taken off the collector's
lists. It is still found as a referent of the objects that are on them.
"""

from __future__ import annotations

import array
import gc
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence


_CHUNK = 4096


def found_from(heap: Sequence[object]) -> Iterator[object]:
    """Untracked dicts, byte arrays and arrays below the objects of `heap`.

    The same object may come more than once.
    """
    for start in range(0, len(heap), _CHUNK):
        level = gc.get_referents(*heap[start : start + _CHUNK])
        dicts = [d for d in level if type(d) is dict and not gc.is_tracked(d)]
        yield from dicts
        yield from _buffers(level)
        if dicts:
            yield from _buffers(gc.get_referents(*dicts))


def _buffers(level: list[object]) -> list[object]:
    return [
        each
        for each in level
        if (type(each) is bytearray or type(each) is array.array)
        and not gc.is_tracked(each)
    ]


def holding(wanted: Collection[int]) -> list[object]:
    """The untracked dicts and tuples that refer to an object of these identities."""
    seen: set[int] = set()
    found = []
    heap = gc.get_objects()
    for start in range(0, len(heap), _CHUNK):
        level = _loose(heap[start : start + _CHUNK])
        while level:
            new = [each for each in level if id(each) not in seen]
            seen.update(map(id, new))
            for each in new:
                if any(id(child) in wanted for child in gc.get_referents(each)):
                    found.append(each)
            level = _loose(new)
    return found


def _loose(holders: list[object]) -> list[object]:
    return [
        each
        for each in gc.get_referents(*holders)
        if (type(each) is dict or type(each) is tuple) and not gc.is_tracked(each)
    ]
