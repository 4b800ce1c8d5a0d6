"""Stacks for people: our frames, pluggy's and pytest's are cut."""

from __future__ import annotations

import dataclasses
import functools
import linecache
import pathlib
import sys
import sysconfig
from collections.abc import Iterable


_IMPORT = "<frozen importlib"
_PACKAGES = ("pytest_veo", "_pytest", "pytest", "pluggy")


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """A place in a source file."""

    file: str
    number: int

    @property
    def source(self) -> str:
        """The line's text; empty when the file cannot be read."""
        was_known = self.file in linecache.cache
        text = linecache.getline(self.file, self.number).strip()
        if not was_known:
            linecache.cache.pop(self.file, None)  # or our looking were growth itself
        return text

    def __str__(self) -> str:
        return f"{shown(self.file)}:{self.number}"


@functools.lru_cache(maxsize=1)
def _own_folders() -> tuple[str, ...]:
    folders = [str(pathlib.Path(__file__).parent.parent)]
    for name in _PACKAGES[1:]:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file:
            folders.append(str(pathlib.Path(file).parent))
    return tuple(f"{folder}/" for folder in folders)


@functools.lru_cache(maxsize=1)
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    names = ("stdlib", "platstdlib")
    return (*{f"{paths[name]}/" for name in names}, "<frozen")


@functools.lru_cache(maxsize=1)
def _site_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({f"{paths[name]}/" for name in ("purelib", "platlib")})


def is_own(file: str) -> bool:
    """Whether the file is this plugin's, pytest's or pluggy's."""
    return file.startswith(_own_folders())


def is_users(file: str) -> bool:
    """Whether the file is the user's: no library and none of ours."""
    if is_own(file) or file.startswith("<"):
        return False
    return not file.startswith((*_site_folders(), *_library_folders()))


def trimmed(frames: Iterable[tuple[str, int]]) -> tuple[Line, ...]:
    """The frames of a stack, newest first, without ours and all that called pytest."""
    kept: list[Line] = []
    for file, number in frames:
        if not is_own(file):
            kept.append(Line(file, number))
        elif kept:
            break  # from here on it is the runner
    return tuple(kept)


def is_side_effect(frames: Iterable[tuple[str, int]]) -> bool:
    """Whether a stack is of pytest, this plugin or an import, not of the test.

    Libraries work for whoever called them: the first frame that is no library's says
    for whom. An import happens once.
    """
    files = [file for file, _ in frames]
    if any(file.startswith(_IMPORT) for file in files):
        return True
    libraries = (*_library_folders(), "<")
    first = next((f for f in files if not f.startswith(libraries)), "")
    return is_own(first)


def users(lines: tuple[Line, ...]) -> Line | None:
    """The newest line of the user's own code, or the newest at all."""
    return next(
        (each for each in lines if is_users(each.file)), next(iter(lines), None)
    )


def shown(file: str) -> str:
    """The path as it is shortest: relative to the working directory or a library."""
    for folder in (*_site_folders(), *_library_folders()):
        if file.startswith(folder) and folder.endswith("/"):
            return file[len(folder) :]
    path = pathlib.Path(file)
    try:
        return str(path.relative_to(pathlib.Path.cwd()))
    except ValueError:
        return file
