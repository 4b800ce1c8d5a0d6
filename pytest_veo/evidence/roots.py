"""Where a chain of references ends: what counts as a root, and how good it is.

Some places hold an object only because it lives anyway (`threading._active` lists
running threads, pytest's frames hold the item). They explain nothing while there is
another holder, so they are roots of last resort.
"""

from __future__ import annotations

import contextvars
import dataclasses
import enum
import inspect
import sys
import threading
import types
from collections.abc import Iterator
from typing import Literal

from pytest_veo.evidence import edges
from pytest_veo.evidence import objects
from pytest_veo.evidence import stacks


Owner = Literal["user", "python", "pytest", "veo"]


class Root(enum.StrEnum):
    """The end of a chain."""

    MODULE = "module"
    CLASS = "class"
    CONTEXT = "context"
    FIXTURE = "fixture"
    """A fixture that outlives its tests: pytest keeps its value for them."""
    FRAME = "frame"
    BOOKKEEPING = "bookkeeping"
    PYTEST = "pytest"
    NATIVE = "native"
    """No Python object and no running frame refers to it: C or C++ code does."""
    UNKNOWN = "unknown"
    """The search ran out of time or room."""


_RANKS = tuple(Root)


def rank(root: Root) -> int:
    """Smaller is the better explanation."""
    return _RANKS.index(root)


@dataclasses.dataclass(frozen=True, slots=True)
class Landing:
    """A root that was reached."""

    root: Root
    name: str
    is_last_resort: bool = False


_BOOKKEEPING = (
    ("threading", "_active"),
    ("threading", "_limbo"),
    ("threading", "_dangling"),
    ("threading", "_shutdown_locks"),
    ("threading", "_shutdown_locks_lock"),
    ("concurrent.futures.thread", "_threads_queues"),
    ("concurrent.futures.process", "_threads_wakeups"),
    ("multiprocessing.process", "_children"),
    ("multiprocessing.process", "_dangling"),
    ("multiprocessing.util", "_finalizer_registry"),
    ("multiprocessing.util", "_afterfork_registry"),
    ("asyncio.tasks", "_all_tasks"),
    ("asyncio.tasks", "_scheduled_tasks"),
    ("asyncio.tasks", "_eager_tasks"),
    ("logging", "_handlers"),
    ("logging", "_handlerList"),
    ("subprocess", "_active"),
    ("weakref", "_all_finalizers"),
)
_OURS = "pytest_veo"
_PYTEST = ("_pytest", "pytest", "pluggy")


def bookkeeping() -> dict[int, str]:
    """Identity and name of the registries that list what lives anyway."""
    found = {}
    for module, name in _BOOKKEEPING:
        held = objects.resolve(module, name)
        if held is not None:
            found[id(held)] = f"{module}.{name}"
        inner = objects.instance_dict(held) if _is_weak_container(held) else None
        for part in (inner or {}).values():
            found.setdefault(id(part), f"{module}.{name}")
    return found


def _is_weak_container(held: object) -> bool:
    return objects.type_module(type(held)) in ("weakref", "_weakrefset")


def module_namespaces() -> dict[int, str]:
    """Identity of every loaded module's namespace, with the module's name."""
    return {
        id(objects.module_namespace(module)): str(name)
        for name, module in list(sys.modules.items())
        if objects.is_module(module)
    }


def owner_of(module: str) -> Owner:
    """`veo`, `pytest`, `python` (standard library) or `user` for a module's name."""
    top = module.partition(".")[0]
    if top == _OURS:
        return "veo"
    if top in _PYTEST:
        return "pytest"
    return "python" if top in sys.stdlib_module_names else "user"


def owner_of_frame(frame: types.FrameType) -> Owner:
    """Whose code the frame runs, by its module's name."""
    name = frame.f_globals.get("__name__")
    return owner_of(name if type(name) is str else "")


def landing_of(node: object, modules: dict[int, str]) -> Landing | None:
    """The root that `node` is, if it is one."""
    kind = type(node)
    if kind is dict:
        module = modules.get(id(node))
        return None if module is None else Landing(Root.MODULE, module)
    if kind is _fixture_type():
        return _landing_of_fixture(node)
    if objects.is_module(node):
        return _landing_of_module(node)  # type: ignore[arg-type]
    if objects.is_type(node):
        return _landing_of_class(node)  # type: ignore[arg-type]
    if kind is contextvars.Context:
        return Landing(Root.CONTEXT, "contextvars.Context", is_last_resort=True)
    return None


def _fixture_type() -> object:
    fixtures = sys.modules.get("_pytest.fixtures")
    return getattr(fixtures, "FixtureDef", None)


def _landing_of_fixture(definition: object) -> Landing | None:
    """A fixture of the user's that is wider than a test, and has a value."""
    known = objects.instance_dict(definition) or {}
    name, scope = known.get("argname"), getattr(known.get("_scope"), "value", None)
    code = getattr(known.get("func"), "__code__", None)
    is_wide = type(scope) is str and scope != "function"
    if type(name) is not str or not is_wide or type(code) is not types.CodeType:
        return None
    if known.get("cached_result") is None or stacks.is_own(code.co_filename):
        return None
    return Landing(Root.FIXTURE, f"fixture {name} ({scope})")


def _landing_of_module(module: types.ModuleType) -> Landing | None:
    name = objects.module_namespace(module).get("__name__")
    if type(name) is not str or sys.modules.get(name) is not module:
        return None
    return Landing(Root.MODULE, name)


def _landing_of_class(kind: type) -> Landing | None:
    name = objects.type_name(kind)
    if not objects.is_made_in_python(kind):
        return Landing(Root.CLASS, name)
    qualname = name.removeprefix(objects.type_module(kind) + ".")
    if objects.resolve(objects.type_module(kind), qualname) is kind:
        return Landing(Root.CLASS, name)
    return None


def running_frames() -> dict[int, Landing]:
    """What the running frames of all threads hold: identity to root."""
    found: dict[int, Landing] = {}
    for each in _all_frames():
        owner = owner_of_frame(each)
        if owner != "veo" and _has_own_locals(each):
            place = _place_of(each)
            for name, value in edges.locals_of(each):
                found.setdefault(id(value), _landing_of_local(place, owner, name))
    return found


def _all_frames() -> Iterator[types.FrameType]:
    """The frames of all threads, without this one.

    A frame that is held by its own variables would keep all its callers' variables
    alive until the next collection.
    """
    frames = sys._current_frames()
    frames[threading.get_ident()] = sys._getframe(2)
    while frames:
        _, frame = frames.popitem()
        while True:
            yield frame
            if frame.f_back is None:
                break
            frame = frame.f_back


def _has_own_locals(frame: types.FrameType) -> bool:
    """Not module level, and not the start-up code of every thread."""
    is_start_up = frame.f_globals.get("__name__") == "threading"
    return not is_start_up and bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED)


def _place_of(frame: types.FrameType) -> str:
    code = frame.f_code
    return f"{code.co_qualname} ({stacks.shown(code.co_filename)}:{frame.f_lineno})"


def _landing_of_local(place: str, owner: Owner, name: str) -> Landing:
    """A local variable lives as long as its call: anything lasting explains more."""
    root = Root.PYTEST if owner == "pytest" else Root.FRAME
    text = f"local variable {name} of {place}"
    return Landing(root, text, is_last_resort=True)
