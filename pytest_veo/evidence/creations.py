"""Where what is still open was made: threads, processes, tasks, descriptors.

While the evidence run is traced, tracemalloc knows the stack that made every new
object, so nothing of the user's needs to be wrapped. Only descriptors without an object
(`os.open`, `os.pipe`) are noted through wrappers in the module `os`, for this run.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import gc
import io
import os
import pathlib
import sys
import threading
import tracemalloc
import types
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import Literal

from pytest_veo.evidence import objects
from pytest_veo.evidence import stacks


Kind = Literal["thread", "process", "task", "descriptor"]

_FD_FOLDER = "/proc/self/fd"
_MAKERS = ("open", "pipe", "pipe2", "dup", "openpty", "memfd_create", "eventfd")
_DEEPEST = 60
_MOST_PARTS = 30


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """Something that is still running or open, and the line that made it."""

    kind: Kind
    what: str
    """For people: `Thread-7 (poll)`, `/tmp/a.log`, `Task-3: fetch`."""
    where: str
    """`app.py:12`; empty when it was made by C code or before tracing began."""
    source: str
    per_run: float


class Descriptors:
    """The process's open descriptors, and who opens them without a file object."""

    def __init__(self) -> None:
        self._before: dict[int, str] = {}
        self._lines: dict[int, tuple[str, stacks.Line | None]] = {}
        """What a number was made for, and where; the number may be used again."""
        self._wrapped: dict[str, tuple[Any, Any]] = {}

    @property
    def containers(self) -> tuple[object, ...]:
        """What grows here itself."""
        return self._lines, self._before

    def begin(self) -> None:
        """Note what is open, and note stacks from now on."""
        self._before = _open_descriptors()
        for name in _MAKERS:
            own = getattr(os, name, None)
            if own is not None:
                wrapper = self._noting(own)
                self._wrapped[name] = own, wrapper
                setattr(os, name, wrapper)

    def _noting(self, own: Callable[..., Any]) -> Callable[..., Any]:
        lines = self._lines

        @functools.wraps(own)
        def make(*args: Any, **kwargs: Any) -> Any:
            made = own(*args, **kwargs)
            for number in made if isinstance(made, tuple) else (made,):
                lines[number] = _target(number), _calling_line()
            return made

        return make

    def end(self) -> dict[int, tuple[str, stacks.Line | None]]:
        """The new descriptors: number to target, with the line if it is known."""
        for name, (own, wrapper) in self._wrapped.items():
            if getattr(os, name) is wrapper:
                setattr(os, name, own)
        self._wrapped.clear()
        now = _open_descriptors()
        return {
            number: (target, self._line_of(number, target))
            for number, target in now.items()
            if self._before.get(number) != target
        }

    def _line_of(self, number: int, target: str) -> stacks.Line | None:
        """The line that made it, unless the number is another thing's by now."""
        made_for, line = self._lines.get(number, ("", None))
        return line if made_for == target else None


def _open_descriptors() -> dict[int, str]:
    found: dict[int, str] = {}
    with contextlib.suppress(FileNotFoundError):  # no /proc: nothing is known
        for each in pathlib.Path(_FD_FOLDER).iterdir():
            with contextlib.suppress(OSError):  # the listing's own, closed again
                found[int(each.name)] = str(each.readlink())
    return found


def _target(number: int) -> str:
    try:
        return str((pathlib.Path(_FD_FOLDER) / str(number)).readlink())
    except OSError:  # no /proc, or closed by another thread already
        return ""


def _calling_line() -> stacks.Line | None:
    frame: types.FrameType | None = sys._getframe(2)
    frames: list[tuple[str, int]] = []
    while frame is not None and len(frames) < _DEEPEST:
        frames.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    if stacks.is_side_effect(frames):
        return None  # a re-run's own folder, a report: not the test's
    return stacks.users(stacks.trimmed(frames))


def made_by(obj: object, depth: int = 2) -> stacks.Line | None:
    """The user's line that made an object, while tracemalloc is on.

    tracemalloc does not find instances of Python classes on every CPython, but what
    their `__init__` made beside them.
    """
    traceback = tracemalloc.get_object_traceback(obj)
    if traceback is not None:
        frames = [(frame.filename, frame.lineno) for frame in reversed(traceback)]
        return stacks.users(stacks.trimmed(frames))
    if not depth or objects.is_type(obj) or objects.is_module(obj):
        return None
    parts = gc.get_referents(obj)[:_MOST_PARTS]
    lines = (made_by(part, depth - 1) for part in parts)
    return next((line for line in lines if line and stacks.is_users(line.file)), None)


def find(
    newborn: Iterable[object],
    descriptors: dict[int, tuple[str, stacks.Line | None]],
    runs: int,
) -> tuple[Creation, ...]:
    """What the runs have left running or open, and where it was made.

    Call it while tracemalloc is still on.
    """
    counts: collections.Counter[tuple[Kind, str]] = collections.Counter()
    examples: dict[tuple[Kind, str], tuple[str, str]] = {}
    left = dict(descriptors)
    for kind, what, line in _objects(newborn, left):
        _count(counts, examples, kind, what, line)
    for target, line in left.values():
        _count(counts, examples, "descriptor", target, line)
    return tuple(
        Creation(
            kind=key[0],
            what=examples[key][0],
            where=key[1] if line_known(key[1]) else "",
            source=examples[key][1],
            per_run=count / runs,
        )
        for key, count in counts.most_common()
        if count * 2 >= runs
    )


def line_known(where: str) -> bool:
    """Whether the key is a place; things without one are counted by their kind."""
    return not where.startswith("?")


def _count(
    counts: collections.Counter[tuple[Kind, str]],
    examples: dict[tuple[Kind, str], tuple[str, str]],
    kind: Kind,
    what: str,
    line: stacks.Line | None,
) -> None:
    key = kind, str(line) if line is not None else "?"
    counts[key] += 1
    examples.setdefault(key, (what, "" if line is None else line.source))


def _objects(
    newborn: Iterable[object], left: dict[int, tuple[str, stacks.Line | None]]
) -> Iterator[tuple[Kind, str, stacks.Line | None]]:
    for each in newborn:
        kind = type(each)
        if objects.is_subtype(kind, threading.Thread):
            line = made_by(each)
            yield "thread", _text(each, "_name"), line
        elif objects.type_name(kind) == "subprocess.Popen":
            line = made_by(each)
            yield "process", _command(each), line
        elif _is_process(kind):
            line = made_by(each)
            yield "process", _text(each, "_name"), line
        elif objects.type_name(kind) in ("_asyncio.Task", "asyncio.tasks.Task"):
            yield "task", _coroutine(each), made_by(each)
        else:
            number = _descriptor_of(each)
            if number in left:
                target, noted = left.pop(number)
                yield "descriptor", target, made_by(each) or noted


def _is_process(kind: type) -> bool:
    module: Any = sys.modules.get("multiprocessing.process")
    return module is not None and objects.is_subtype(kind, module.BaseProcess)


def _text(obj: object, name: str) -> str:
    value = (objects.instance_dict(obj) or {}).get(name)
    return value if type(value) is str else objects.type_name(type(obj))


def _command(process: object) -> str:
    args = (objects.instance_dict(process) or {}).get("args")
    first = args[0] if type(args) in (list, tuple) and args else args
    return first if type(first) is str else "subprocess.Popen"


def _coroutine(task: object) -> str:
    for held in gc.get_referents(task):
        if type(held) is types.CoroutineType:
            return held.__qualname__
    return "asyncio task"


def _descriptor_of(obj: object) -> int:
    """The descriptor of a raw file or socket; -1 for others and for closed ones."""
    kind = type(obj)
    if kind is io.FileIO:
        with contextlib.suppress(ValueError):
            return io.FileIO.fileno(obj)  # type: ignore[arg-type]
        return -1
    sockets = sys.modules.get("_socket")
    if sockets is not None and objects.is_subtype(kind, sockets.socket):
        return int(sockets.socket.fileno(obj))
    return -1
