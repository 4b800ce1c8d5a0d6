"""Where an archive lies: a folder, or whatever fsspec reaches by URL.

A folder needs nothing but the standard library. Names inside a place are relative,
with `/` between their parts.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_veo.errors import ArchiveError
from pytest_veo.errors import MissingDependency


_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://|([A-Za-z][A-Za-z0-9+.\-]+)::")
DRAFT = ".draft-"
"""What a name begins with while it is not whole."""


class Place:
    """A folder or a bucket, with the few things an archive asks of it.

    Args:
        url: a path, a `file://` URL, or any URL that fsspec knows.

    Raises:
        MissingDependency: it is a URL, and fsspec is not installed.
        ArchiveError: no library for this kind of URL, or it refuses the URL.
    """

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self.url = os.fspath(url)
        """As it was given, for people."""
        self.folder = _local(self.url)
        """The folder; None for a bucket."""
        self._remote: Any = None
        self._root = ""
        if self.folder is None:
            self._remote, self._root = _connect(self.url)

    def __repr__(self) -> str:
        return f"Place({self.url!r})"

    @property
    def is_local(self) -> bool:
        """Whether it is a folder."""
        return self.folder is not None

    @property
    def filesystem(self) -> Any:
        """The fsspec filesystem, None for a folder."""
        return self._remote

    def full(self, name: str = "") -> str:
        """The path that the folder's or bucket's own library takes."""
        root = str(self.folder) if self.folder is not None else self._root
        return f"{root.rstrip('/')}/{name}" if name else root

    def shown(self, name: str = "") -> str:
        """The whole name, for messages."""
        return f"{self.url.rstrip('/')}/{name}" if name else self.url

    def names(self, name: str = "") -> list[str]:
        """What lies directly below, sorted; empty where there is nothing.

        Raises:
            ArchiveError: it is there and cannot be listed.
        """
        with self._named("list", name):
            try:
                if self.folder is not None:
                    return sorted(path.name for path in (self.folder / name).iterdir())
                # What others wrote since is wanted, not what was listed before.
                self._remote.invalidate_cache()
                found = self._remote.ls(self.full(name), detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return []
            here = self.full(name).rstrip("/")
            return sorted(
                {
                    path.rstrip("/").rpartition("/")[2]
                    for path in found
                    if path.rstrip("/") != here
                }
            )

    def folders(self, name: str = "") -> list[str]:
        """As `names`, without files where telling them apart costs nothing.

        Raises:
            ArchiveError: it is there and cannot be listed.
        """
        if self.folder is None:
            return self.names(name)
        with self._named("list", name):
            try:
                with os.scandir(self.folder / name) as found:
                    return sorted(each.name for each in found if each.is_dir())
            except (FileNotFoundError, NotADirectoryError):
                return []

    def is_folder(self, name: str = "") -> bool:
        """Whether something can lie below.

        Raises:
            ArchiveError: that cannot be told.
        """
        with self._named("read", name):
            if self.folder is not None:
                return (self.folder / name).is_dir()
            return bool(self._remote.isdir(self.full(name)))

    def exists(self, name: str = "") -> bool:
        """Whether it is there.

        Raises:
            ArchiveError: that cannot be told.
        """
        with self._named("read", name):
            if self.folder is not None:
                return (self.folder / name).exists()
            return bool(self._remote.exists(self.full(name)))

    def read(self, name: str) -> bytes:
        """All of a file or object.

        Raises:
            ArchiveError: it is not there or cannot be read.
        """
        with self._named("read", name):
            if self.folder is not None:
                return (self.folder / name).read_bytes()
            return bytes(self._remote.cat_file(self.full(name)))

    def write(self, name: str, content: bytes) -> None:
        """Put a file or object there, whole or not at all.

        Raises:
            ArchiveError: it cannot be written; what was there before still is.
        """
        with self._named("write", name):
            if self.folder is not None:
                path = self.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(path, content)
                return
            self._remote.pipe_file(self.full(name), content)

    def put(self, path: Path, name: str) -> None:
        """Put a file of this machine there, whole or not at all.

        Raises:
            ArchiveError: it cannot be read or written.
        """
        with self._named("write", name):
            if self.folder is None:
                self._remote.put_file(str(path), self.full(name))
                return
            target = self.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(f"{DRAFT}{target.name}-{os.getpid()}")
            try:
                shutil.copyfile(path, draft)
                draft.replace(target)
            except OSError:
                draft.unlink(missing_ok=True)
                raise

    def fetch(self, name: str, path: Path) -> None:
        """Have a file on this machine, to be read only.

        Raises:
            ArchiveError: it is not there or cannot be read.
        """
        with self._named("read", name):
            if self.folder is None:
                self._remote.get_file(self.full(name), str(path))
                return
            path.symlink_to((self.folder / name).resolve(strict=True))

    def remove(self, name: str) -> None:
        """Take a file, or a folder with all that is in it, away.

        Raises:
            ArchiveError: it cannot be removed.
        """
        with self._named("remove", name):
            if self.folder is None:
                self._remote.rm(self.full(name), recursive=True)
                return
            path = self.folder / name
            if not path.is_dir():
                path.unlink(missing_ok=True)
                return
            # Gone at once for readers, however long the removing takes.
            away = path.with_name(f"{DRAFT}removed-{path.name}-{os.getpid()}")
            path.rename(away)
            shutil.rmtree(away)

    @contextlib.contextmanager
    def _named(self, verb: str, name: str) -> Iterator[None]:
        try:
            yield
        except ArchiveError:
            raise
        except OSError as error:
            why = error.strerror or str(error) or type(error).__name__
            raise ArchiveError(f"cannot {verb} {self.shown(name)}: {why}") from error
        except Exception as error:
            # fsspec's filesystems raise what their own libraries do, of any type.
            if self.is_local:
                raise
            why = f"{type(error).__name__}: {error}"
            raise ArchiveError(f"cannot {verb} {self.shown(name)}: {why}") from error


def replace_file(path: Path, content: bytes) -> None:
    """Write a file beside the old one and put it in its place.

    Raises:
        OSError: it cannot be written; the old one still stands.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    draft = path.with_name(f"{DRAFT}{path.name}-{os.getpid()}")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _local(url: str) -> Path | None:
    match = _URL.match(url)
    if match is None:
        return Path(url)
    if match[1] in ("file", "local"):
        import urllib.parse
        import urllib.request  # and all of HTTP: not for every session

        path = urllib.parse.urlsplit(url)
        return Path(urllib.request.url2pathname(path.netloc + path.path))
    return None


def _connect(url: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise MissingDependency("fsspec", "archive", f"the archive {url}") from None
    try:
        filesystem, root = fsspec.core.url_to_fs(url)
    except Exception as error:
        # Its filesystems raise what their own libraries do, of any type.
        why = str(error) or type(error).__name__
        raise ArchiveError(f"cannot open the archive {url}: {why}") from error
    return filesystem, str(root)
