"""Is there a limit to what a container may hold, and which text says so?

A limit counts only when it is enforced as far as can be seen: the container holds no
more than the limit says, and the number stands where its owner keeps it.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import gc
import re
import types

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
    r"(max_?(size|len|length|entries|items|workers|threads|cache_?size|cached)"
    r"|capacity|(cache|pool)_?(size|limit|max_?size)|size_?limit|maxcache2?)$"
)
"""Names that say themselves that they limit a number of entries."""
_LOOSE = re.compile(r"(limit|max|max_?num|maximum|size|bound)$")
"""Names that say so only in an owner which calls itself a cache or a pool."""
_CONSTANT = re.compile(
    r"^(?!.*(ttl|age|time|sec|byte|_[kmg]i?b)).*(max|limit|size|capac)"
)
"""Names of constants that limit the container they share a word with."""
_OWNER = re.compile(r"cache|lru|pool|ring|recent|history|memo|bounded|buffer", re.I)
_WORD = 4
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
    owner = above
    if type(above) is dict and len(chain) > 1:
        owner = chain[-2]
        is_namespace = objects.is_type(owner) or objects.is_module(owner)
    else:
        is_namespace = type(above) is dict
    if is_namespace:
        return _limit_of_namespace(held, above, entries)
    name = f"{_name_in(above, held)} {objects.type_name(type(owner))}"
    return _limit(_values_of(owner), name, entries)


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
    names = (k for k, v in (values or {}).items() if v is held and type(k) is str)
    return next(names, "")


def _limit_of_namespace(held: object, space: object, entries: int) -> Bound | None:
    """A constant of the module or class that is named after the container."""
    if type(space) is not dict:
        return None
    words = _words(_name_in(space, held))
    alike = [
        (name, value)
        for name, value in space.items()
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
    calls_itself_bounded = _OWNER.search(owner) is not None
    named = [
        (name, value)
        for name, value in pairs
        if _STRICT.search(_bare(name).lower())
        or (calls_itself_bounded and _LOOSE.search(_bare(name).lower()))
    ]
    return _tightest(named, entries)


def _tightest(named: list[tuple[str, object]], entries: int) -> Bound | None:
    """The smallest number that the container has kept to so far."""
    found = [
        Bound(value, f"{_bare(name)}={value}")
        for name, value in named
        if type(value) is int and value >= max(1, entries - _SLACK)
    ]
    return min(found, key=lambda each: each.ceiling_entries, default=None)


def _bare(name: str) -> str:
    """`maxsize` for `_Cache__maxsize`."""
    return name.rsplit("__", 1)[-1].strip("_")
