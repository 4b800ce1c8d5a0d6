"""How one object refers to another, as text: `.rows`, `['k']`, `closure variable x`.

No step runs code of the object's class. Frames and suspended generators are asked
for their locals only through `locals_of`, which leaves nothing behind.
"""

from __future__ import annotations

import collections
import functools
import inspect
import sys
import types
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from pytest_veo.evidence import objects


_SEQUENCES: tuple[tuple[type, Any], ...] = (
    (list, list.__iter__),
    (tuple, tuple.__iter__),
    (collections.deque, collections.deque.__iter__),
)
_SETS = (set, frozenset)
_MEMBERS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (types.MethodType, ("__self__", "__func__")),
    (functools.partial, ("func", "args", "keywords")),
    (property, ("fget", "fset", "fdel")),
    (staticmethod, ("__func__",)),
    (classmethod, ("__func__",)),
    (types.TracebackType, ("tb_next", "tb_frame")),
    (types.FrameType, ("f_back", "f_globals", "f_builtins")),
    (types.CellType, ("cell_contents",)),
    (
        types.FunctionType,
        ("__closure__", "__defaults__", "__kwdefaults__", "__globals__", "__code__"),
    ),
    (types.GeneratorType, ("gi_frame", "gi_yieldfrom", "gi_code")),
    (types.CoroutineType, ("cr_frame", "cr_await", "cr_code")),
    (types.AsyncGeneratorType, ("ag_frame", "ag_await", "ag_code")),
    (BaseException, ("__traceback__", "__context__", "__cause__", "args")),
)


def label(parent: object, child: object) -> str:
    """How `parent` refers to `child`; empty when only C knows."""
    kind = type(parent)
    if objects.is_dict(parent):
        return _dict_label(parent, child)  # type: ignore[arg-type]
    for base, iterate in _SEQUENCES:
        if objects.is_subtype(kind, base):
            return _index_label(iterate(parent), child) or _slot_label(parent, child)
    if any(objects.is_subtype(kind, base) for base in _SETS):
        return "{...}"
    if objects.is_type(parent):
        return _class_label(parent, child)  # type: ignore[arg-type]
    if kind is types.FunctionType:
        return _function_label(parent, child) or _member_label(parent, child)  # type: ignore[arg-type]
    return (
        _member_label(parent, child)
        or _local_label(parent, child)
        or _attribute_label(parent, child)
    )


def _dict_label(parent: dict[object, object], child: object) -> str:
    for key, value in _pairs(parent):
        if value is child:
            return f"[{objects.key_text(key)}]"
        if key is child:
            return f"[key {objects.key_text(key)}]"
    return _slot_label(parent, child)


def _pairs(held: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """The entries as they are now; another thread may go on to change the dict."""
    return zip(list(dict.keys(held)), list(dict.values(held)), strict=False)


def _index_label(values: Iterable[object], child: object) -> str:
    found = next((i for i, value in enumerate(list(values)) if value is child), None)
    return "" if found is None else f"[{found}]"


def _slot_label(parent: object, child: object) -> str:
    return next((f".{k}" for k, v in objects.slot_values(parent) if v is child), "")


def _attribute_label(parent: object, child: object) -> str:
    held = objects.instance_dict(parent) if not objects.is_module(parent) else None
    for name, value in _pairs(held or {}):
        if value is child:
            return f".{name}"
    return _slot_label(parent, child)


def _class_label(parent: type, child: object) -> str:
    for name, value in _pairs(objects.namespace(parent)):
        if value is child:
            return f".{name}"
    if any(child is base for base in objects.mro(parent)):
        return ".__bases__"
    return ""


def _member_label(parent: object, child: object) -> str:
    for base, names in _MEMBERS:
        if not objects.is_subtype(type(parent), base):
            continue
        for name in names:
            member = objects.namespace(base).get(name)
            try:
                value = member.__get__(parent) if member is not None else None
            except (AttributeError, ValueError):
                continue  # an empty cell, a cleared frame
            if value is child:
                return f".{name}"
    return ""


def _function_label(parent: types.FunctionType, child: object) -> str:
    cells = parent.__closure__ or ()
    for name, cell in zip(parent.__code__.co_freevars, cells, strict=False):
        if cell is child or cell_holds(cell, child):
            return f" closure variable {name}"
    return ""


def cell_holds(cell: types.CellType, child: object) -> bool:
    """Whether the closure cell's content is `child`; an empty cell holds nothing."""
    try:
        return cell.cell_contents is child
    except ValueError:
        return False


def _local_label(parent: object, child: object) -> str:
    frame = frame_of(parent)
    if frame is None:
        return ""
    for name, value in locals_of(frame):
        if value is child:
            return f" local variable {name}"
    return ""


def frame_of(obj: object) -> types.FrameType | None:
    """The frame of a frame object, generator or coroutine, if it has one."""
    kind = type(obj)
    if kind is types.FrameType:
        return obj  # type: ignore[return-value]
    for base, name in (
        (types.GeneratorType, "gi_frame"),
        (types.CoroutineType, "cr_frame"),
        (types.AsyncGeneratorType, "ag_frame"),
    ):
        if kind is base:
            found: types.FrameType | None = getattr(obj, name)
            return found
    return None


def locals_of(frame: types.FrameType) -> Iterator[tuple[str, object]]:
    """The frame's local variables; no copy of them stays in the frame.

    CPython 3.11 and 3.12 keep the dictionary that `f_locals` makes, and so would keep
    the values alive after the function has let go of them. It is emptied again unless
    somebody else holds it (a debugger, a caller of `locals()`).
    """
    held = frame.f_locals
    pairs = [(str(name), value) for name, value in held.items()]
    is_copy = frame.f_code.co_flags & inspect.CO_OPTIMIZED and type(held) is dict
    if is_copy and sys.getrefcount(held) <= 3:
        dict.clear(held)
    del held
    yield from pairs
