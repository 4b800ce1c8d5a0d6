"""What would be freed with an entry of a container: an estimate in blocks and bytes.

The objects below the entry are followed; those that somebody else refers to as well
(their reference count is higher than the references found) are left out, and so is
all that such an object refers to. The same idea as the collector's own.
"""

from __future__ import annotations

import collections
import dataclasses
import gc
import itertools
import sys
import types
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from pytest_veo.evidence import objects


SMALL_BYTES = 512
"""The largest request that CPython's own allocator serves; larger ones use malloc."""
_HAVE_GC = 1 << 14
_GC_HEADER_BYTES = 16
_MOST_OBJECTS = 4000
_VALUES_ARE_APART = sys.version_info < (3, 13)
_SPLIT = (list, dict, set, collections.deque, bytearray)
_SHARED_KINDS = tuple(map(id, (type, types.ModuleType, types.CodeType)))
_FLAGS = type.__dict__["__flags__"].__get__
_BASIC_SIZE = type.__dict__["__basicsize__"].__get__


@dataclasses.dataclass(frozen=True, slots=True)
class Weight:
    """What a group of objects holds.

    `blocks` counts allocations up to 512 bytes, as `sys.getallocatedblocks` does;
    `large_bytes` is the part of `total_bytes` in larger allocations, which is what
    malloc sees.
    """

    blocks: float = 0
    total_bytes: float = 0
    large_bytes: float = 0

    def __truediv__(self, count: float) -> Weight:
        return self * (1 / count)

    def __mul__(self, count: float) -> Weight:
        return Weight(
            self.blocks * count, self.total_bytes * count, self.large_bytes * count
        )

    def __add__(self, other: Weight) -> Weight:
        return Weight(
            self.blocks + other.blocks,
            self.total_bytes + other.total_bytes,
            self.large_bytes + other.large_bytes,
        )


def size_of(obj: object) -> int:
    """Bytes of one object by its type's own C code, the collector's header included."""
    kind = type(obj)
    header = _GC_HEADER_BYTES if _FLAGS(kind) & _HAVE_GC else 0
    for base in objects.mro(kind):
        method: Any = objects.namespace(base).get("__sizeof__")
        if type(method) is types.MethodDescriptorType:
            return header + int(method(obj))
    return header


def weigh(obj: object) -> Weight:
    """One object without what it refers to."""
    total = size_of(obj)
    parts = [total]
    if any(objects.is_subtype(type(obj), base) for base in _SPLIT):
        head = _BASIC_SIZE(type(obj)) + _GC_HEADER_BYTES
        parts = [min(head, total), max(0, total - head)]
    elif _VALUES_ARE_APART and objects.is_made_in_python(type(obj)):
        count = len(gc.get_referents(obj)) - 1
        parts = [total, 8 * count + 8 if count > 0 else 0]
    large = sum(part for part in parts if part > SMALL_BYTES)
    return Weight(
        sum(1 for part in parts if 0 < part <= SMALL_BYTES), sum(parts), large
    )


def held_by(
    entries: Iterable[object], links: Mapping[int, int] | None = None
) -> Weight:
    """What is held by `entries` alone.

    Args:
        entries: objects of one container, fetched lazily so that nothing else holds
            them meanwhile.
        links: how many containers to disregard as holders, by identity of the entry;
            one if it is not in there, its own.
    """
    nodes: list[object] = []
    places: dict[int, int] = {}
    for entry in entries:
        if id(entry) not in places:
            places[id(entry)] = len(nodes)
            nodes.append(entry)
    entry = None
    first = len(nodes)
    edges = [_below(node, nodes, places) for node in _growing(nodes)]
    outside = _outside_references(nodes, edges)
    for i in range(first):
        outside[i] -= (links or {}).get(id(nodes[i]), 1)
    shared = _reachable([i for i, n in enumerate(outside) if n > 0], edges)
    total = Weight()
    for i, node in enumerate(nodes):
        if i not in shared:
            total += weigh(node)
    return total


def _growing(nodes: list[object]) -> Iterable[object]:
    """The list's items, those included that are added on the way, up to a limit."""
    for i in itertools.count():
        if i >= min(len(nodes), _MOST_OBJECTS):
            return
        yield nodes[i]


def _below(node: object, nodes: list[object], places: dict[int, int]) -> list[int]:
    if objects.is_type(node) or id(type(node)) in _SHARED_KINDS:
        return []
    found = []
    for child in gc.get_referents(node):
        position = places.get(id(child))
        if position is None:
            places[id(child)] = position = len(nodes)
            nodes.append(child)
        found.append(position)
    return found


def _own_references() -> int:
    """What `getrefcount` says of an object that only one list holds."""
    return next(iter(map(sys.getrefcount, [object()])))


def _outside_references(nodes: list[object], edges: list[list[int]]) -> list[int]:
    own = _own_references()
    outside = [count - own for count in map(sys.getrefcount, nodes)]
    for below in edges:
        for i in below:
            outside[i] -= 1
    return outside


def _reachable(starts: list[int], edges: list[list[int]]) -> set[int]:
    found = set(starts)
    waiting = list(starts)
    while waiting:
        i = waiting.pop()
        for child in edges[i] if i < len(edges) else ():
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found
