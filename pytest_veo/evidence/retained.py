"""What would be freed with an entry of a container: an estimate in blocks and bytes.

The objects below the entry are followed; those that somebody else refers to as well
(their reference count is higher than the references found) are left out, and so is
all that such an object refers to. The same idea as the collector's own.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import gc
import sys
import types
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from pytest_veo.evidence import objects
from pytest_veo.evidence import roots


SMALL_BYTES = 512
"""The largest request that CPython's own allocator serves; larger ones use malloc."""
_HAVE_GC = 1 << 14
_MANAGED_DICT = 1 << 4
_GC_HEADER_BYTES = 16
_MOST_OBJECTS = 4000
_VALUES_ARE_APART = sys.version_info < (3, 13)
_CLOSED = ("sqlite3", "_ssl", "zlib", "_hashlib", "pyexpat", "_ctypes", "mmap")
"""Modules of the standard library with such types."""
_LOCALS = "<locals>"
_SPLIT = (list, dict, set, collections.deque, bytearray)
_SHARED_KINDS = tuple(map(id, (type, types.ModuleType, types.CodeType)))
_FLAGS = type.__dict__["__flags__"].__get__
_BASIC_SIZE = type.__dict__["__basicsize__"].__get__


@dataclasses.dataclass(frozen=True, slots=True)
class Weight:
    """What a group of objects holds.

    `blocks` counts allocations of any size, as `sys.getallocatedblocks` does;
    `large_bytes` is the part of `total_bytes` in allocations above 512 bytes, which
    is what malloc sees.
    """

    blocks: float = 0
    total_bytes: float = 0
    large_bytes: float = 0
    is_at_least: bool = False
    """Whether an object of C code is among them, which may hold more than it says."""

    def __truediv__(self, count: float) -> Weight:
        return self * (1 / count)

    def __mul__(self, count: float) -> Weight:
        return Weight(
            self.blocks * count,
            self.total_bytes * count,
            self.large_bytes * count,
            self.is_at_least,
        )

    def __add__(self, other: Weight) -> Weight:
        return Weight(
            self.blocks + other.blocks,
            self.total_bytes + other.total_bytes,
            self.large_bytes + other.large_bytes,
            self.is_at_least or other.is_at_least,
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
    elif _VALUES_ARE_APART and _FLAGS(type(obj)) & _MANAGED_DICT:
        count = len(gc.get_referents(obj)) - 1
        parts = [total, 8 * count + 8 if count > 0 else 0]
    large = sum(part for part in parts if part > SMALL_BYTES)
    blocks = sum(1 for part in parts if part > 0)
    return Weight(blocks, sum(parts), large, _may_hold_more(type(obj)))


def _may_hold_more(kind: type) -> bool:
    """Whether it is a type of C code that does not tell its whole size."""
    module = objects.type_module(kind)
    if module in _CLOSED:
        return True
    if roots.owner_of(module) == "python":
        return False
    if any("__sizeof__" in objects.namespace(base) for base in objects.mro(kind)[:-1]):
        return False
    file = objects.resolve(module, "__file__")
    return type(file) is not str or not file.endswith((".py", ".pyc"))


def held_by(
    groups: Iterable[Iterable[object]],
    links: Mapping[int, int],
    containers: Container[int] = (),
) -> list[Weight]:
    """What is held by the entries of some containers, and by nobody else.

    What several of them hold together counts for the first.

    Args:
        groups: the entries of each container, fetched lazily so that nothing else
            holds them meanwhile.
        links: by identity of an entry, how many references to it the containers
            themselves have.
        containers: identities of all of them; an entry may lead back to one.
    """
    nodes: list[object] = []
    places: dict[int, int] = {}
    edges: list[list[int]] = []
    ends: list[int] = []
    worlds = roots.module_namespaces()
    for entries in groups:
        _gather(entries, nodes, places)
        limit = len(edges) + _MOST_OBJECTS
        edges += [
            _below(node, nodes, places, (worlds, containers))
            for node in _growing(nodes, len(edges), limit)
        ]
        edges += [[] for _ in range(len(nodes) - len(edges))]
        ends.append(len(nodes))
    outside = _outside_references(nodes, edges)
    for i, node in enumerate(nodes):
        outside[i] -= links.get(id(node), 0)
    shared = _reachable([i for i, n in enumerate(outside) if n > 0], edges)
    totals = [Weight() for _ in ends]
    for i, node in enumerate(nodes):
        if i not in shared:
            group = bisect.bisect_right(ends, i)
            totals[group] += weigh(node)
    return totals


def _gather(
    entries: Iterable[object], nodes: list[object], places: dict[int, int]
) -> None:
    for entry in entries:
        if id(entry) not in places:
            places[id(entry)] = len(nodes)
            nodes.append(entry)


def _growing(nodes: list[object], start: int, limit: int) -> Iterable[object]:
    """The list's items, those included that are added on the way, up to a limit."""
    for i in range(start, limit):
        if i >= len(nodes):
            return
        yield nodes[i]


def _below(
    node: object,
    nodes: list[object],
    places: dict[int, int],
    ends: tuple[Container[int], ...],
) -> list[int]:
    if objects.is_type(node):
        if not _is_passing_class(node):
            return []
    elif id(type(node)) in _SHARED_KINDS:
        return []
    found = []
    for child in gc.get_referents(node):
        if any(id(child) in end for end in ends):
            continue  # a function refers to its module: everybody's, and huge
        position = places.get(id(child))
        if position is None:
            places[id(child)] = position = len(nodes)
            nodes.append(child)
        found.append(position)
    return found


def _is_passing_class(kind: object) -> bool:
    """Whether a class was made inside a function: nothing but its users holds it."""
    if not objects.is_made_in_python(kind):  # type: ignore[arg-type]
        return False
    name = objects.type_name(kind)  # type: ignore[arg-type]
    return _LOCALS in name


def _outside_references(nodes: list[object], edges: list[list[int]]) -> list[int]:
    outside = [count - objects.OWN_REFERENCES for count in map(sys.getrefcount, nodes)]
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
