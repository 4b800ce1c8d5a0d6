"""Which containers grew while a test was run again, and may they grow for ever?

A census notes the length of every container of the heap, in plain arrays of numbers;
a second look after the re-runs names those that grew. A container with a limit that is
not reached yet (a cache that fills) explains growth which no count of runs can.

The collector must see the whole heap: after `gc.freeze` the caller calls
`gc.unfreeze` before `take` and before `grown`.
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
import weakref
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from pytest_veo.evidence import bounds
from pytest_veo.evidence import chains
from pytest_veo.evidence import entries
from pytest_veo.evidence import objects
from pytest_veo.evidence import retained
from pytest_veo.evidence import roots
from pytest_veo.evidence import untracked
from pytest_veo.evidence.bounds import LRU
from pytest_veo.evidence.climb import Ascent
from pytest_veo.evidence.climb import Climber
from pytest_veo.evidence.retained import Weight
from pytest_veo.evidence.roots import Root


_OFTEN = 0.5  # of the runs: growth that is rarer does not belong to the test
_MOST = 40
_SAMPLE = 200
_SAMPLE_RUNS = 4

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
_BUFFERS = ("bytearray", "array", "BytesIO")
_INSIDE_C = "(inside C code; no Python object refers to it)"
_EXACT: tuple[type, ...] = (dict, list, set)
_LENGTHS: dict[str, Any] = {
    **{name: length for _, name, length in _SIZED},
    **{kind.__name__: kind.__len__ for kind in _EXACT},  # type: ignore[attr-defined]
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GrownPlace:
    """A container that grew while the test was run again."""

    kind: str
    """`dict`, `list`, `lru_cache`, ... or the name of a subclass."""
    path: str
    """Where it is: `shop.cache.SESSIONS`."""
    root: Root
    owner: roots.Owner
    """Whose module or frame the path starts in."""
    entries: int
    entries_per_run: float
    entry_type: str = ""
    """The type of the newest entry (of its value in a dict)."""
    ceiling_entries: int | None = None
    """How many entries it can ever have; None when nothing limits it."""
    bounded_by: str = ""
    """The limit as it is written: `maxsize=100`."""
    held_blocks: float = 0
    """Blocks of the interpreter's allocator that an entry alone holds, about."""
    held_bytes: float = 0
    held_large_bytes: float = 0
    """The part of `held_bytes` in allocations above 512 bytes, which malloc serves."""
    is_bookkeeping: bool = False
    """A registry of what lives anyway (`threading._active`): never a reason."""
    is_certain: bool = True
    """False when another container of this type may have taken its address."""

    @property
    def is_bounded(self) -> bool:
        """Whether a limit is known."""
        return self.ceiling_entries is not None

    @property
    def places_left(self) -> int | None:
        """Entries until the limit; None when nothing limits it."""
        if self.ceiling_entries is None:
            return None
        return max(0, self.ceiling_entries - self.entries)

    @property
    def weight_per_run(self) -> Weight:
        """What the place takes with every run, about."""
        each = Weight(self.held_blocks, self.held_bytes, self.held_large_bytes)
        return each * self.entries_per_run


def explained(grown: Iterable[GrownPlace]) -> Weight:
    """How much growth a run the bounded places account for, about.

    Growth far above this has another reason, even beside a cache that fills.
    """
    places = [place for place in grown if place.is_bounded]
    return sum((place.weight_per_run for place in places), Weight())


@dataclasses.dataclass(slots=True)
class _Column:
    """The containers of one type at one instant; numbers only."""

    ids: array.array[int]
    lengths: array.array[int]
    firsts: array.array[int]


class Places:
    """The lengths of all containers at one instant. Keeps nothing alive."""

    def __init__(self, columns: dict[str, _Column]) -> None:
        self._columns = columns

    @classmethod
    def take(cls) -> Places:
        """Look at every container of the heap."""
        return cls({name: _column(name, held) for name, held in _containers()})

    def grown(
        self, runs: int, seconds: float = 2.0, ours: Iterable[object] = ()
    ) -> tuple[GrownPlace, ...]:
        """The containers that have grown since, most entries first.

        Args:
            runs: how often the test has run since `take`.
            seconds: how long to look for the names of the places.
            ours: containers of the caller, whose growth is not the test's.
        """
        not_theirs = set(map(id, ours))
        found: list[_Candidate] = []
        for name, held in _containers():
            if name in self._columns:
                found += _compare(self._columns[name], name, held, runs)
        found = [each for each in found if id(each.held) not in not_theirs]
        found.sort(key=lambda each: -each.per_run)
        found = found[:_MOST]
        containers = [each.held for each in found]
        hidden = [containers, found, *found]
        ascents = Climber(containers, hidden, seconds).climb()
        wrappers = {id(held) for held in containers if entries.is_wrapper(held)}
        named = [
            _name(each, ascent)
            for each, ascent in zip(found, ascents, strict=True)
            if not any(id(node) in wrappers for node in ascent.nodes[-2:-1])
        ]
        del ascents
        weights = _weigh_all(named)
        return tuple(_place_of(n, weights[id(n.candidate.held)]) for n in named)


@dataclasses.dataclass(slots=True)
class _Candidate:
    held: object
    kind: str
    entries: int
    per_run: float
    is_certain: bool
    was_empty: bool


def _containers() -> Iterator[tuple[str, list[Any]]]:
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


def _column(name: str, held: list[Any]) -> _Column:
    return _Column(
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


def _compare(
    before: _Column, name: str, held: list[Any], runs: int
) -> list[_Candidate]:
    index = dict(zip(before.ids, range(len(before.ids)), strict=True))
    enough = max(1, math.ceil(runs * _OFTEN))
    lengths, firsts = before.lengths, before.firsts
    found = []
    for obj, length in zip(held, map(_LENGTHS[name], held), strict=True):
        i = index.get(id(obj))
        if i is None or length - lengths[i] < enough:
            continue
        same = not firsts or not lengths[i] or _firsts(name, [obj])[0] == firsts[i]
        per_run = (length - lengths[i]) / runs
        found.append(_Candidate(obj, name, length, per_run, same, not lengths[i]))
    return found


@dataclasses.dataclass(slots=True)
class _Named:
    """A candidate that has been found on the heap and may have a limit."""

    candidate: _Candidate
    chain: chains.Chain
    bound: bounds.Bound | None

    @property
    def order(self) -> int:
        """Who is weighed first: an entry in two places counts for the first one."""
        if self.bound is not None:
            return 0
        return 2 if self.is_bookkeeping else 1

    @property
    def is_bookkeeping(self) -> bool:
        """Whether it lists what lives anyway."""
        if self.chain.root is Root.BOOKKEEPING:
            return True
        return entries.is_register(self.candidate.held)


def _name(candidate: _Candidate, ascent: Ascent) -> _Named:
    above = ascent.nodes[:-1]
    bound = _bound_of(candidate.held, candidate.kind, above)
    return _Named(candidate, chains.describe(ascent), bound)


def _weigh_all(named: list[_Named]) -> dict[int, Weight]:
    """What an entry of each place holds, by the identity of the container.

    Caches share what they hold, so all bounded places are weighed together; then the
    others, which get no part of what a bounded place holds as well.
    """
    found: dict[int, Weight] = {}
    for order in range(3):
        group = [each.candidate for each in named if each.order == order]
        weighed = zip(group, _weigh_group(group), strict=True)
        found |= {id(each.held): weight for each, weight in weighed}
    return found


def _weigh_group(group: list[_Candidate]) -> list[Weight]:
    links: collections.Counter[int] = collections.Counter()
    counts = []
    for each in group:
        sample = [tuple(map(id, entry)) for entry in _sample(each)]
        links.update(itertools.chain.from_iterable(sample))
        if entries.has_links(each.held):
            links.update(entry[0] for entry in sample)
        counts.append(max(1, len(sample)))
    lazily = (itertools.chain.from_iterable(_sample(each)) for each in group)
    totals = retained.held_by(lazily, links)
    return [
        total / count + _beside(each)
        for each, total, count in zip(group, totals, counts, strict=True)
    ]


def _beside(candidate: _Candidate) -> Weight:
    """The part of an entry that is in the container itself."""
    if candidate.kind in _BUFFERS:
        return Weight(0, 1, 1)
    table = retained.weigh(candidate.held) / max(1, candidate.entries)
    return table + entries.beside(candidate.held)


def _sample(candidate: _Candidate) -> Iterator[tuple[object, ...]]:
    """The entries of the last few runs, the same runs in every place."""
    if candidate.kind in _BUFFERS:
        return iter(())
    count = min(_SAMPLE, math.ceil(candidate.per_run * _SAMPLE_RUNS))
    return entries.newest(candidate.held, min(count, candidate.entries))


def _place_of(named: _Named, weight: Weight) -> GrownPlace:
    candidate, chain, bound = named.candidate, named.chain, named.bound
    return GrownPlace(
        kind=_kind_name(candidate),
        path=_path_of(candidate.held, chain, bound),
        root=chain.root,
        owner=_owner_of(chain),
        entries=candidate.entries,
        entries_per_run=candidate.per_run,
        entry_type=entries.newest_type(candidate.held),
        ceiling_entries=None if bound is None else bound.ceiling_entries,
        bounded_by="" if bound is None else bound.text,
        held_blocks=weight.blocks,
        held_bytes=weight.total_bytes,
        held_large_bytes=weight.large_bytes,
        is_bookkeeping=named.is_bookkeeping,
        # An empty container has no first entry to be known by; on its own, out of
        # everybody's reach, it is more likely a new one at an old address.
        is_certain=candidate.is_certain
        and not (candidate.was_empty and chain.root is Root.NATIVE),
    )


def _kind_name(candidate: _Candidate) -> str:
    kind = type(candidate.held)
    if (
        kind is LRU
        or kind is queue.SimpleQueue
        or objects.type_module(kind) == "builtins"
    ):
        return candidate.kind
    return objects.type_name(kind)


def _bound_of(held: object, kind: str, above: list[object]) -> bounds.Bound | None:
    if kind in _BUFFERS:
        return None
    if kind == "lru_cache":
        return bounds.of_lru(held)
    limit = bounds.of_deque(held) if kind == "deque" else None
    return limit or bounds.of_standard_library(held) or bounds.of_owner(held, above)


def _path_of(held: object, chain: chains.Chain, bound: bounds.Bound | None) -> str:
    if type(held) is LRU:
        values = objects.instance_dict(held) or {}
        module, qualname = values.get("__module__"), values.get("__qualname__")
        is_named = type(module) is str and type(qualname) is str
        name = f"{module}.{qualname}" if is_named else chain.path
        limit = "maxsize=None" if bound is None else bound.text
        return f"functools.lru_cache of {name} ({limit})"
    if chain.root is Root.NATIVE:
        return _path_of_subclasses(held) or _INSIDE_C
    return chain.path


def _path_of_subclasses(held: object) -> str:
    """`Base.__subclasses__()`, when the dict is a class's list of its subclasses."""
    if type(held) is not dict:
        return ""
    for reference in held.values():
        if type(reference) is not weakref.ReferenceType:
            return ""
        kind = reference()
        if kind is not None and objects.is_type(kind):
            return f"{objects.type_name(objects.mro(kind)[1])}.__subclasses__()"
    return ""


def _owner_of(chain: chains.Chain) -> roots.Owner:
    if chain.root is Root.PYTEST:
        return "pytest"
    return roots.owner_of(chain.root_name)
