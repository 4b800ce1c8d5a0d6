"""Which containers grew while a test was run again, and may they grow for ever?

A census notes the length of every container of the heap, in plain arrays of numbers;
a second look after the re-runs names those that grew. A container with a limit that is
not reached yet (a cache that fills) explains growth which no count of runs can.

The collector must see the whole heap: after `gc.freeze` the caller calls
`gc.unfreeze` before `take` and before `grown`.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
import queue
import weakref
from collections.abc import Iterable
from collections.abc import Iterator

from pytest_veo.evidence import bounds
from pytest_veo.evidence import census
from pytest_veo.evidence import chains
from pytest_veo.evidence import entries
from pytest_veo.evidence import newborn
from pytest_veo.evidence import objects
from pytest_veo.evidence import retained
from pytest_veo.evidence import roots
from pytest_veo.evidence.bounds import LRU
from pytest_veo.evidence.census import BUFFERS
from pytest_veo.evidence.census import Candidate
from pytest_veo.evidence.census import Column
from pytest_veo.evidence.climb import Ascent
from pytest_veo.evidence.climb import Climber
from pytest_veo.evidence.retained import Weight
from pytest_veo.evidence.roots import Root


_MOST = 40
_SAMPLE = 200
_SAMPLE_RUNS = 4

_FINALIZERS = "weakref.finalize._registry"
"""An object with a finalizer is listed there for as long as it lives."""
_INSIDE_C = "(inside C code; no Python object refers to it)"


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
    holds_at_least: bool = False
    """Whether an entry has objects of C code that may hold more than they say."""
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
        each = Weight(
            self.held_blocks,
            self.held_bytes,
            self.held_large_bytes,
            self.holds_at_least,
        )
        return each * self.entries_per_run


class Places:
    """The lengths of all containers at one instant. Keeps nothing alive."""

    def __init__(self, columns: dict[str, Column]) -> None:
        self._columns = columns

    @classmethod
    def take(cls) -> Places:
        """Look at every container of the heap."""
        return cls(
            {name: census.column(name, held) for name, held in census.containers()}
        )

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
        found: list[Candidate] = []
        for name, held in census.containers():
            if name in self._columns:
                found += census.compare(self._columns[name], name, held, runs)
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
class _Named:
    """A candidate that has been found on the heap and may have a limit."""

    candidate: Candidate
    chain: chains.Chain
    bound: bounds.Bound | None
    owner: roots.Owner

    @property
    def order(self) -> int:
        """Who is weighed first: an entry in two places counts for the first one."""
        if self.bound is not None:
            return 0
        return 2 if self.is_bookkeeping else 1

    @property
    def is_bookkeeping(self) -> bool:
        """Whether it lists what lives anyway."""
        if self.chain.root is Root.BOOKKEEPING or self.chain.path == _FINALIZERS:
            return True
        held = self.candidate.held
        if newborn.is_entry_of_allocator(entries.newest_type(held)):
            return True
        return entries.is_register(held)


def _name(candidate: Candidate, ascent: Ascent) -> _Named:
    above = ascent.nodes[:-1]
    bound = _bound_of(candidate.held, candidate.kind, above)
    chain = chains.describe(ascent)
    return _Named(candidate, chain, bound, _owner_of(chain, above))


def _weigh_all(named: list[_Named]) -> dict[int, Weight]:
    """What an entry of each place holds, by the identity of the container.

    Caches share what they hold, so all bounded places are weighed together; then the
    others, which get no part of what a bounded place holds as well.
    """
    found: dict[int, Weight] = {}
    containers = {id(each.candidate.held) for each in named}
    for order in range(3):
        group = [each.candidate for each in named if each.order == order]
        weighed = zip(group, _weigh_group(group, containers), strict=True)
        found |= {id(each.held): weight for each, weight in weighed}
    return found


def _weigh_group(group: list[Candidate], containers: set[int]) -> list[Weight]:
    links: collections.Counter[int] = collections.Counter()
    counts = []
    for each in group:
        sample = [tuple(map(id, entry)) for entry in _sample(each)]
        links.update(itertools.chain.from_iterable(sample))
        if entries.has_links(each.held):
            links.update(entry[0] for entry in sample)
        counts.append(max(1, len(sample)))
    lazily = (itertools.chain.from_iterable(_sample(each)) for each in group)
    totals = retained.held_by(lazily, links, containers)
    return [
        total / count + _beside(each)
        for each, total, count in zip(group, totals, counts, strict=True)
    ]


def _beside(candidate: Candidate) -> Weight:
    """The part of an entry that is in the container itself."""
    if candidate.kind in BUFFERS:
        return Weight(0, 1, 1)
    table = retained.weigh(candidate.held) / max(1, candidate.entries)
    return table + entries.beside(candidate.held)


def _sample(candidate: Candidate) -> Iterator[tuple[object, ...]]:
    """The entries of the last few runs, the same runs in every place."""
    if candidate.kind in BUFFERS:
        return iter(())
    count = min(_SAMPLE, math.ceil(candidate.per_run * _SAMPLE_RUNS))
    return entries.newest(candidate.held, min(count, candidate.entries))


def _place_of(named: _Named, weight: Weight) -> GrownPlace:
    candidate, chain, bound = named.candidate, named.chain, named.bound
    return GrownPlace(
        kind=_kind_name(candidate),
        path=_path_of(candidate.held, chain, bound),
        root=chain.root,
        owner=named.owner,
        entries=candidate.entries,
        entries_per_run=candidate.per_run,
        entry_type=entries.newest_type(candidate.held),
        ceiling_entries=None if bound is None else bound.ceiling_entries,
        bounded_by="" if bound is None else bound.text,
        held_blocks=weight.blocks,
        held_bytes=weight.total_bytes,
        held_large_bytes=weight.large_bytes,
        holds_at_least=weight.is_at_least,
        is_bookkeeping=named.is_bookkeeping,
        # An empty container has no first entry to be known by; on its own, out of
        # everybody's reach, it is more likely a new one at an old address.
        is_certain=candidate.is_certain
        and not (candidate.was_empty and chain.root is Root.NATIVE),
    )


def _kind_name(candidate: Candidate) -> str:
    kind = type(candidate.held)
    if (
        kind is LRU
        or kind is queue.SimpleQueue
        or objects.type_module(kind) == "builtins"
    ):
        return candidate.kind
    return objects.type_name(kind)


def _bound_of(held: object, kind: str, above: list[object]) -> bounds.Bound | None:
    if kind in BUFFERS:
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


def _owner_of(chain: chains.Chain, above: list[object]) -> roots.Owner:
    """Whose container it is: a list of a fixture definition is pytest's."""
    instances = (
        each for each in reversed(above) if not objects.is_plain_container(each)
    )
    module = objects.type_module(type(next(instances, None)))
    if chain.root is Root.PYTEST or roots.owner_of(module) == "pytest":
        return "pytest"
    return roots.owner_of(chain.root_name)
