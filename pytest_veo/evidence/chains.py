"""A chain of references put into words: a root and the steps down from it."""

from __future__ import annotations

import contextvars
import dataclasses
import gc
import itertools
import types

from pytest_veo.evidence import edges
from pytest_veo.evidence import objects
from pytest_veo.evidence.bounds import LRU
from pytest_veo.evidence.climb import Ascent
from pytest_veo.evidence.roots import Root


_LONGEST = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One reference: how it is written, and the type of what it leads to."""

    text: str
    type_name: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What keeps an object alive, as text only."""

    root: Root
    root_name: str
    steps: tuple[Step, ...]

    @property
    def path(self) -> str:
        """The chain as one expression: `shop.cache.SESSIONS['k'].parser`."""
        return self.root_name + "".join(step.text for step in _short(self.steps))


def _short(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    if len(steps) <= _LONGEST:
        return steps
    left_out = len(steps) - _LONGEST + 1
    middle = Step(f" ... {left_out} more ... ", "")
    return (*steps[:3], middle, *steps[-(_LONGEST - 4) :])


def describe(ascent: Ascent) -> Chain:
    """The words for an ascent; nothing of it is kept."""
    nodes = ascent.nodes
    name = ascent.landing.name
    if ascent.landing.root is Root.NATIVE and len(nodes) > 1:
        name = f"a {objects.type_name(type(nodes[0]))}"
    if objects.is_type(nodes[0]) and len(nodes) > 1:
        name = objects.type_name(nodes[0])  # type: ignore[arg-type]
    steps = []
    position = 0
    while position < len(nodes) - 1:
        text, taken = _step(nodes, position)
        position += taken
        if text:
            steps.append(Step(text, objects.type_name(type(nodes[position]))))
    return Chain(root=ascent.landing.root, root_name=name, steps=tuple(steps))


def _step(nodes: list[object], position: int) -> tuple[str, int]:
    """The text of the reference at `position`, and how many nodes it spans."""
    parent = nodes[position]
    child = nodes[position + 1]
    if _is_context_part(child):
        return "", 1
    for span, reader in _READERS:
        following = nodes[position + 1 : position + 1 + span]
        text = reader(parent, following) if len(following) == span else ""
        if text:
            return text, span
    text = edges.label(parent, child)
    if position == 0 and type(parent) is dict:
        text = _as_attribute(text)
    if not text:
        text = f" -> {objects.type_name(type(child))}"
    if type(parent) is LRU:
        text = " (lru_cache)"
    return text, 1


def _is_context_part(obj: object) -> bool:
    return objects.type_name(type(obj)).startswith("hamt")


def _context_variable(parent: object, following: list[object]) -> str:
    """A node of a Context's table, a value: the variable whose value it is."""
    if not _is_context_part(parent):
        return ""
    inside = gc.get_referents(parent)
    for value, key in itertools.pairwise(inside):  # it is visited from its end
        if value is following[0] and type(key) is contextvars.ContextVar:
            return f" (context variable {key.name})"
    return ""


def _thread_local(parent: object, following: list[object]) -> str:
    """A threading.local, its table, one thread's values, a value: `.value`."""
    _, values, child = following
    if objects.type_name(type(parent)) != "_thread._local" or type(values) is not dict:
        return ""
    return _as_attribute(edges.label(values, child))


def _as_attribute(text: str) -> str:
    """`['NAME']` in a namespace is written `.NAME`."""
    name = text[2:-2]
    return f".{name}" if text == f"['{name}']" and name.isidentifier() else text


def _attribute(parent: object, following: list[object]) -> str:
    """Instance or class, its namespace, a value: `.value`."""
    held, child = following
    if type(held) is not dict or objects.is_dict(parent):
        return ""
    if objects.is_type(parent):
        is_own = objects.namespace(parent) is held  # type: ignore[arg-type]
    else:
        is_own = objects.instance_dict(parent) is held
    return _as_attribute(edges.label(held, child)) if is_own else ""


def _fixture_value(parent: object, following: list[object]) -> str:
    """A fixture's definition, maybe its namespace, its cached result, the value."""
    *_, cached, child = following
    if objects.type_name(type(parent)) != "_pytest.fixtures.FixtureDef":
        return ""
    values = objects.instance_dict(parent) or {}
    if values.get("cached_result") is not cached:
        return ""
    return f" -> {objects.type_name(type(child))}"


def _closure(parent: object, following: list[object]) -> str:
    """Function, its closure, a cell, a value: one closure variable."""
    if type(parent) is not types.FunctionType:
        return ""
    _, cell, child = following
    if type(cell) is not types.CellType or not edges.cell_holds(cell, child):
        return ""
    return edges.label(parent, child)


def _cache_entry(parent: object, following: list[object]) -> str:
    """An lru_cache wrapper, its table, a key or a link to a value."""
    held, child = following
    if type(parent) is not LRU or type(held) is not dict:
        return ""
    is_key = any(child is key for key in dict.keys(held))
    return " (lru_cache, in a key)" if is_key else " (lru_cache, in a value)"


_READERS = (
    (3, _closure),
    (3, _fixture_value),
    (2, _fixture_value),
    (3, _thread_local),
    (2, _cache_entry),
    (2, _attribute),
    (1, _context_variable),
)
