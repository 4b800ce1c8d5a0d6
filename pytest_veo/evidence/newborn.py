"""Which objects exist after some runs and did not before.

`gc.freeze` draws the line: what existed is put aside, so what the collector lists
afterwards is new, by identity and without a mark on any object. Nothing is kept alive.
Objects that the collector does not track (strings, arrays of numbers) are found as
the newest entries of the containers that grew.
"""

from __future__ import annotations

import collections
import dataclasses
import gc
from typing import Any

from pytest_veo.evidence import frozen
from pytest_veo.evidence import objects
from pytest_veo.evidence import roots


_OFTEN = 0.5  # of the runs: what comes more rarely is not the test's
_MOST_TYPES = 12
_BEARERS = ("Thread", "Process", "Popen", "Task", "Session", "Connection")
_FRAMEWORKS = ("torch", "cupy", "jax", "jaxlib", "numba", "onnxruntime", "tensorflow")
_BOOKS = ("cupy.cuda.memory._Chunk", "cupy.cuda.pinned_memory.PinnedMemory")
"""An allocator's own entry for a block in use: it lives as long as the block."""
_USERS = 2
_MACHINERY = 5
_MACHINERY_NAMES = (
    *("type", "cell", "frame", "function", "traceback", "method", "mappingproxy"),
    *("getset_descriptor", "member_descriptor", "builtin_function_or_method"),
    *("weakref.ReferenceType", "weakref.KeyedRef", "_thread.lock", "_thread.RLock"),
    *("coroutine", "generator"),
)
"""Types that come along with others and name nothing."""


@dataclasses.dataclass(frozen=True, slots=True)
class Born:
    """Objects of one type that stayed."""

    type_name: str
    per_run: float


class Nursery:
    """The collector's view of what is new.

    Between `open` and `close` nothing old is on its lists.
    """

    def __init__(self) -> None:
        self._was_frozen = 0
        self.note = ""

    def open(self) -> None:
        """Put everything aside that exists; collect before, or garbage stays."""
        self._was_frozen = frozen.count()
        if self._was_frozen:
            self.note = (
                f"gc.freeze was in force ({self._was_frozen} objects): "
                "what it hides is not looked at"
            )
        gc.freeze()

    def close(self) -> list[object]:
        """What is new and still alive, oldest first; the caller lets go of it soon."""
        gc.collect()
        found = [each for each in gc.get_objects() if not _is_own(each)]
        gc.unfreeze()
        if self._was_frozen:
            gc.freeze()  # the user's own freeze stays in force
        return found


def _is_own(obj: object) -> bool:
    return roots.owner_of(objects.type_module(type(obj))) in ("veo", "pytest")


def census(newborn: list[object], runs: int) -> tuple[Born, ...]:
    """How many of each type a run leaves behind, the most telling first."""
    counts = collections.Counter(objects.type_name(type(each)) for each in newborn)
    enough = max(1.0, runs * _OFTEN)
    examples = {objects.type_name(type(each)): each for each in newborn}
    often = [name for name, n in counts.items() if n >= enough]
    often.sort(key=lambda name: (_rank(examples[name]), -counts[name], name))
    return tuple(Born(name, counts[name] / runs) for name in often[:_MOST_TYPES])


def representatives(newborn: list[object], runs: int, most: int = 3) -> list[object]:
    """A few of the new objects whose holders explain the others.

    One of each type that comes with every run, the types that say most first, and of
    these an object from the middle of the runs: the last run's may still be held by
    what is just ending.
    """
    by_kind: dict[str, list[object]] = {}
    for each in newborn:
        by_kind.setdefault(objects.type_name(type(each)), []).append(each)
    enough = max(1.0, runs * _OFTEN)
    groups = [
        group
        for name, group in by_kind.items()
        if len(group) >= enough and not is_entry_of_allocator(name)
    ]
    inner = set(map(id, gc.get_referents(*newborn))) if groups else set()
    groups.sort(key=lambda group: (_rank(group[0]), _is_inner(group, inner)))
    best = min((_rank(group[0]) for group in groups), default=_MACHINERY)
    worst = _USERS if best < _USERS else _MACHINERY - 1
    telling = [group for group in groups if _rank(group[0]) <= worst]
    chosen = [_middle(group, inner) for group in telling[:most]]
    if telling and _rank(telling[0][0]) == 0:
        # A graph in C++ holds all of a framework's objects but the newest.
        chosen.insert(1, telling[0][-1])
    return chosen


def is_entry_of_allocator(type_name: str) -> bool:
    """Whether objects of this type are an allocator's books, nobody's leak."""
    return type_name in _BOOKS


def _is_inner(group: list[object], inner: set[int]) -> bool:
    return all(id(each) in inner for each in group)


def _middle(group: list[object], inner: set[int]) -> object:
    """One that no other new object refers to, if there is one."""
    outermost = [each for each in group if id(each) not in inner]
    chosen = outermost or group
    return chosen[(len(chosen) - 1) // 2]


def _rank(example: object) -> int:
    """Small for what a person looks for: a tensor, a session, a class of theirs."""
    kind: Any = type(example)
    name = objects.type_name(kind)
    if name.partition(".")[0] in _FRAMEWORKS:
        return 0
    if name.endswith(_BEARERS) or objects.is_exception(example):
        return 1
    if name in _MACHINERY_NAMES:
        return _MACHINERY
    if objects.is_made_in_python(kind):
        module = objects.type_module(kind)
        return _USERS if roots.owner_of(module) == "user" else 3
    return 4
