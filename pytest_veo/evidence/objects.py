"""Looking at other people's objects without running their code.

`isinstance` asks `__class__`, `len` asks `__len__`, a metaclass may answer `==` and
`hash`: all of that is user code, and running it in a leak check changes the patient.
Here only C slots of the interpreter's own types are called, on the type that
`type()` gives, and types are compared by identity.
"""

from __future__ import annotations

import collections
import gc
import queue
import sys
import types
from collections.abc import Iterable
from typing import Any


_MRO: Any = type.__dict__["__mro__"].__get__
_FLAGS: Any = type.__dict__["__flags__"].__get__
_NAMESPACE: Any = type.__dict__["__dict__"].__get__
_QUALNAME: Any = type.__dict__["__qualname__"].__get__
_MODULE_DICT: Any = vars(types.ModuleType)["__dict__"].__get__

_IS_TYPE = 1 << 31
_IS_DICT = 1 << 29
_IS_BASE_EXCEPTION = 1 << 30
_IS_HEAP_TYPE = 1 << 9

PLAIN_KEYS = tuple(map(id, (str, int, bool, float, bytes, type(None))))
"""Types whose own `repr` is the interpreter's and short enough to show."""
_KEY_WIDTH = 32

OWN_REFERENCES = next(iter(map(sys.getrefcount, [object()])))
"""What `map(sys.getrefcount, ...)` says of an object that only that list holds."""


def mro(kind: type) -> tuple[type, ...]:
    """The method resolution order, without asking the metaclass."""
    found: tuple[type, ...] | None = _MRO(kind)
    return found or ()


def is_subtype(kind: type, base: type) -> bool:
    """Whether `base` is in the method resolution order of `kind`."""
    return any(each is base for each in mro(kind))


def is_type(obj: object) -> bool:
    """Whether `obj` is a class."""
    return bool(_FLAGS(type(obj)) & _IS_TYPE)


def is_dict(obj: object) -> bool:
    """Whether `obj` is a dict or of a subclass."""
    return bool(_FLAGS(type(obj)) & _IS_DICT)


def is_exception(obj: object) -> bool:
    """Whether `obj` is an exception."""
    return bool(_FLAGS(type(obj)) & _IS_BASE_EXCEPTION)


def is_plain_container(obj: object) -> bool:
    """Whether it is a dict, list or tuple itself, not of a subclass."""
    kind = type(obj)
    return kind is dict or kind is list or kind is tuple


def is_made_in_python(kind: type) -> bool:
    """Whether a class statement (or a heap type of C) made this type."""
    return bool(_FLAGS(kind) & _IS_HEAP_TYPE)


def namespace(kind: type) -> dict[str, Any]:
    """The class's own dictionary; the real one, not to be changed."""
    for inner in gc.get_referents(_NAMESPACE(kind)):
        if type(inner) is dict:
            return inner
    return {}


def module_namespace(module: types.ModuleType) -> dict[str, Any]:
    """The module's dictionary, past any `__getattr__`."""
    found: dict[str, Any] = _MODULE_DICT(module)
    return found


def is_module(obj: object) -> bool:
    """Whether `obj` is a module or of a subclass (lazy modules are)."""
    return is_subtype(type(obj), types.ModuleType)


def type_name(kind: type) -> str:
    """`shop.cache.Session`; builtins without their module."""
    name = str.__str__(_QUALNAME(kind))
    module = type_module(kind)
    return name if module in ("", "builtins") else f"{module}.{name}"


def type_module(kind: type) -> str:
    """The module a class says it was made in; empty when it says nonsense."""
    if not is_made_in_python(kind):
        module = type.__dict__["__module__"].__get__(kind)
    else:
        module = namespace(kind).get("__module__")
    return module if type(module) is str else ""


def instance_dict(obj: object) -> dict[str, Any] | None:
    """The instance's attributes, or None when it keeps none in a dictionary.

    On CPython 3.11 and 3.12 this makes the dictionary of an instance that had its
    values inline: call it for objects worth naming, not for whole heaps.
    """
    for kind in mro(type(obj)):
        slot: Any = namespace(kind).get("__dict__")
        if type(slot) in (types.GetSetDescriptorType, types.MemberDescriptorType):
            found = slot.__get__(obj)
            return found if type(found) is dict else None
    return None


def is_namespace_of(held: object, owner: object) -> bool:
    """Whether `held` is the dictionary of the instance `owner`."""
    if type(held) is not dict or is_dict(owner):
        return False
    return instance_dict(owner) is held


def slot_values(obj: object) -> Iterable[tuple[str, object]]:
    """Name and value of every `__slots__` or C member that is set."""
    for kind in mro(type(obj)):
        for name, member in list(namespace(kind).items()):
            if type(member) is not types.MemberDescriptorType or type(name) is not str:
                continue
            try:
                yield name, member.__get__(obj)
            except (AttributeError, TypeError, ValueError, SystemError):
                continue  # an empty slot, or a member this instance does not have


def attribute(obj: object, name: str) -> object:
    """An instance attribute from its dictionary or slots, or None."""
    held = instance_dict(obj)
    if held is not None and name in held:
        return held[name]
    return next((value for each, value in slot_values(obj) if each == name), None)


def key_text(key: object) -> str:
    """A dictionary key for people: its value if it is plain, else its type."""
    if type(key) is str:
        shown = key if len(key) <= _KEY_WIDTH else key[: _KEY_WIDTH - 3] + "..."
        return repr(shown)
    if type(key) is bytes:
        return repr(key[:_KEY_WIDTH])
    if id(type(key)) in PLAIN_KEYS:
        return repr(key)[:_KEY_WIDTH]
    if is_type(key):
        return type_name(key)  # type: ignore[arg-type]
    return f"<{type_name(type(key))}>"


def resolve(module: str, qualname: str) -> object:
    """What `module.qualname` names today, looking in namespaces only; or None."""
    found: object = sys.modules.get(module)
    if found is None or not is_module(found):
        return None
    for part in qualname.split("."):
        if is_module(found):
            found = module_namespace(found).get(part)  # type: ignore[arg-type]
        elif is_type(found):
            found = namespace(found).get(part)  # type: ignore[arg-type]
        else:
            return None
    return found


def length_of(obj: object) -> int:
    """Entries of a dict, list, set, deque, SimpleQueue or a subclass; -1 for others."""
    kind = type(obj)
    for base, length in _LENGTHS:
        if is_subtype(kind, base):
            return int(length(obj))
    return -1


_LENGTHS: tuple[tuple[type, Any], ...] = (
    (dict, dict.__len__),
    (list, list.__len__),
    (set, set.__len__),
    (collections.deque, collections.deque.__len__),
    (queue.SimpleQueue, queue.SimpleQueue.qsize),
)
