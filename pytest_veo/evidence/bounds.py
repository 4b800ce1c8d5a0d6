"""Is there a limit to what a container may hold, and which text says so?

A limit counts only when it is enforced as far as can be seen: the container holds no
more than the limit says, and the number stands where its owner keeps it.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import gc
import math
import re
import types

from pytest_veo.evidence import code_limits
from pytest_veo.evidence import objects


LRU = type(functools.lru_cache(maxsize=1)(len))
"""The type of `functools.lru_cache` wrappers, which the library does not name."""
_DEQUE_LIMIT = collections.deque.__dict__["maxlen"].__get__


@dataclasses.dataclass(frozen=True, slots=True)
class Bound:
    """A limit in entries, and where it comes from (`maxsize=100`)."""

    ceiling_entries: int
    text: str


# Caches that the standard library keeps small itself: module, attribute, and the
# constant beside it or the number in the code (CPython 3.11, 3.12 and 3.13).
_ENFORCED: tuple[tuple[str, str, str | int], ...] = (
    ("re", "_cache", "_MAXCACHE"),
    ("re", "_cache2", "_MAXCACHE2"),
    ("_strptime", "_regex_cache", "_CACHE_MAX_SIZE"),
    ("xml.etree.ElementPath", "_cache", 100),
    ("filecmp", "_cache", 100),
)
_STRUCT_FORMATS = 100

_STRICT = re.compile(
    r"(max_?(size|len|length|entries|items|cache_?size|cached)"
    r"|capacity|(cache|pool)_?(size|limit|max_?size)|size_?limit|maxcache2?)$"
)
"""Names that say themselves that they limit a number of entries."""
_LOOSE = re.compile(r"(limit|max|max_?num|maximum|bound)$")
"""Names that say so only in an owner which calls itself a cache or a pool."""
_WORKERS = re.compile(r"max_?(workers|threads|processes)$")
"""Names that limit only what works: a pool's threads, not its jobs."""
_WORKING = re.compile(r"thread|worker|process", re.I)
_JOBS = re.compile(r"queue|job|task|pending|request", re.I)
_CONSTANT = re.compile(
    r"^(?!.*(ttl|age|time|sec|byte|_[kmg]i?b)).*(max|limit|size|capac)"
)
"""Names of constants that limit the container they share a word with."""
_OWNER = re.compile(r"cache|lru|pool|ring|recent|history|memo|bounded|buffer", re.I)
_WORD = 4
_CURSORS = 300
_SLACK = 1  # many caches clear themselves when they are one over


def of_lru(wrapper: object) -> Bound | None:
    """The limit of a `functools.lru_cache`; None when it was made without one."""
    ceiling = LRU.__dict__["cache_info"](wrapper)[2]
    return None if ceiling is None else Bound(ceiling, f"maxsize={ceiling}")


def of_deque(held: object) -> Bound | None:
    """The limit of a deque; None when it was made without one."""
    ceiling = _DEQUE_LIMIT(held)
    return None if ceiling is None else Bound(ceiling, f"maxlen={ceiling}")


def of_standard_library(held: object) -> Bound | None:
    """The limit of a cache that the standard library keeps small itself."""
    for module, name, limit in _ENFORCED:
        if objects.resolve(module, name) is not held:
            continue
        if type(limit) is int:
            return Bound(limit + _SLACK, f"at most {limit} in {module}")
        ceiling = objects.resolve(module, str(limit))
        if type(ceiling) is int:
            return Bound(ceiling, f"{str(limit).strip('_')}={ceiling}")
    return None


def of_owner(held: object, chain: list[object]) -> Bound | None:
    """The limit that the owner of a container keeps beside it.

    Args:
        held: the container.
        chain: the objects from a root down to, but without, the container.
    """
    entries = objects.length_of(held)
    own = _limit(_values_of(held), objects.type_name(type(held)), entries)
    if own is not None or not chain:
        return own
    above = chain[-1]
    if type(above) is types.CellType:
        return _limit(_closure_of(above), "closure", entries)
    if objects.is_module(above):
        return _of_struct(above, entries)
    if objects.type_name(type(above)) == "sqlite3.Connection" and entries <= _CURSORS:
        return Bound(_CURSORS, "cursors of sqlite3, looked through every 200")
    if type(above) is dict and _is_namespace(chain):
        found = _limit_of_namespace(held, above, entries)
    else:
        found = _limit_of_instances(held, chain, entries)
    return found or _limit_of_code(held, chain, entries)


def _limit_of_code(held: object, chain: list[object], entries: int) -> Bound | None:
    """A limit that only the functions beside the container know."""
    above = chain[-1]
    is_own = len(chain) > 1 and objects.is_namespace_of(above, chain[-2])
    owner = chain[-2] if is_own else above
    if type(owner) is dict and _is_namespace(chain):
        pairs = list(owner.items())
        values = {name: value for name, value in pairs if type(name) is str}
    else:
        values = dict(reversed(_values_of(owner)))
    functions = [f for f in values.values() if type(f) is types.FunctionType]
    worlds = {id(f.__globals__): f.__globals__ for f in functions}
    for world in worlds.values():
        values = {**world, **values}
    found = code_limits.find(_name_in(above, held), functions, values)
    if found is None or found[0] < entries - _SLACK:
        return None
    return Bound(found[0] + _SLACK, f"at most {found[0]} in {found[1]}")


def _is_namespace(chain: list[object]) -> bool:
    """Whether the dict at the end of the chain belongs to a module or class."""
    if len(chain) < 2:
        return True
    return objects.is_type(chain[-2]) or objects.is_module(chain[-2])


def _limit_of_instances(
    held: object, chain: list[object], entries: int
) -> Bound | None:
    """The limit beside the container, or in a cache that has it further inside."""
    child, is_direct = held, True
    for position in range(len(chain) - 1, -1, -1):
        above = chain[position]
        if objects.is_plain_container(above):
            is_own = position > 0 and objects.is_namespace_of(
                above, chain[position - 1]
            )
            child = child if is_own else above
            is_direct = is_direct and is_own
            continue
        kind = objects.type_name(type(above))
        if is_direct or _OWNER.search(kind):
            name = f"{_name_in(above, child)} {kind}" if is_direct else kind
            found = _limit(_values_of(above), name, entries)
            if found is not None:
                return found
        child, is_direct = above, False
    return None


def _of_struct(owner: object, entries: int) -> Bound | None:
    name = objects.module_namespace(owner).get("__name__")  # type: ignore[arg-type]
    if type(name) is str and name == "_struct" and entries <= _STRUCT_FORMATS:
        return Bound(_STRUCT_FORMATS, f"at most {_STRUCT_FORMATS} in struct")
    return None


def _values_of(owner: object) -> list[tuple[str, object]]:
    """An object's named values: its own, and its classes' constants."""
    if objects.is_type(owner) or objects.is_module(owner):
        return []
    found = [*(objects.instance_dict(owner) or {}).items(), *objects.slot_values(owner)]
    for kind in objects.mro(type(owner)):
        if objects.is_made_in_python(kind):
            found += objects.namespace(kind).items()
    return [(name, value) for name, value in found if type(name) is str]


def _name_in(above: object, held: object) -> str:
    values = above if type(above) is dict else objects.instance_dict(above)
    pairs = list((values or {}).items())
    names = (k for k, v in pairs if v is held and type(k) is str)
    return next(names, "")


def _limit_of_namespace(held: object, space: object, entries: int) -> Bound | None:
    """A constant of the module or class that is named after the container."""
    if type(space) is not dict:
        return None
    words = _words(_name_in(space, held))
    alike = [
        (name, value)
        for name, value in list(space.items())
        if type(name) is str and any(word in name.lower() for word in words)
    ]
    named = [pair for pair in alike if _CONSTANT.search(pair[0].lower())]
    return _tightest(named, entries)


def _words(name: str) -> list[str]:
    found = [word.rstrip("s") for word in name.lower().split("_")]
    return [word for word in found if len(word) >= _WORD]


def _closure_of(cell: types.CellType) -> list[tuple[str, object]]:
    """The closure variables of the functions that use this cell."""
    found: list[tuple[str, object]] = []
    closures = [each for each in gc.get_referrers(cell) if type(each) is tuple]
    for function in gc.get_referrers(*closures) if closures else ():
        if type(function) is types.FunctionType:
            found += _free_variables(function)
    return found


def _free_variables(function: types.FunctionType) -> list[tuple[str, object]]:
    found = []
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=False):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:
            continue  # not filled yet
    return found


def _limit(pairs: list[tuple[str, object]], owner: str, entries: int) -> Bound | None:
    """The tightest of the values whose names say that they limit this container."""
    patterns = [_STRICT]
    if _OWNER.search(owner):
        patterns.append(_LOOSE)
    if _WORKING.search(owner) and not _JOBS.search(owner):
        patterns.append(_WORKERS)
    named = [
        (name, value)
        for name, value in pairs
        if any(pattern.match(_bare(name).lower()) for pattern in patterns)
    ]
    beyond = next((v for n, v in pairs if n == "threshold" and type(v) is float), 0.0)
    return _tightest(named, entries, beyond)


def _tightest(
    named: list[tuple[str, object]], entries: int, beyond: float = 0.0
) -> Bound | None:
    """The smallest number that the container has kept to so far.

    `beyond` is the part by which a cache lets itself grow over its limit before it
    cleans up.
    """
    found = [
        Bound(ceiling, f"{_bare(name)}={value}")
        for name, value in named
        if type(value) is int
        and (ceiling := math.floor(value * (1 + beyond))) >= max(1, entries - _SLACK)
    ]
    return min(found, key=lambda each: each.ceiling_entries, default=None)


def _bare(name: str) -> str:
    """`maxsize` for `_Cache__maxsize`."""
    return name.rsplit("__", 1)[-1].strip("_")
