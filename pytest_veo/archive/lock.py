"""One at a time: what rewrites an archive's tables keeps others from it meanwhile.

Runs are written without it. In a bucket the lock is a promise among careful people:
two that start in the same instant may both get it.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

from pytest_veo.archive.place import Place
from pytest_veo.errors import ArchiveError


LOCK = "tables/lock.json"
_STALE_AFTER_S = 6 * 3600.0
"""Nothing takes that long: who held it was killed."""


@contextlib.contextmanager
def locked(place: Place, who: str) -> Iterator[None]:
    """Hold the archive's lock.

    Args:
        place: the archive.
        who: what holds it, for those who find it taken.

    Raises:
        ArchiveError: another holds it, or the archive cannot be written.
    """
    owner = {
        "who": who,
        "host": platform.node(),
        "pid": os.getpid(),
        "since_s": time.time(),
    }
    _take(place, owner)
    try:
        yield
    finally:
        with contextlib.suppress(ArchiveError):
            place.remove(LOCK)


def _take(place: Place, owner: dict[str, object]) -> None:
    content = json.dumps(owner).encode()
    for _ in range(2):
        if place.folder is None:
            if not place.exists(LOCK):
                place.write(LOCK, content)
                return
        elif _create(place, place.folder / LOCK, content):
            return
        _refuse_if_held(place)
        place.remove(LOCK)
    raise ArchiveError(f"cannot lock {place.url}: others are faster, try again")


def _create(place: Place, path: Path, content: bytes) -> bool:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        return False
    except OSError as error:
        raise ArchiveError(
            f"cannot write {place.shown(LOCK)}: {error.strerror or error}"
        ) from error
    return True


def _refuse_if_held(place: Place) -> None:
    try:
        held = json.loads(place.read(LOCK))
        age_s = time.time() - float(held["since_s"])
        who, host, pid = str(held["who"]), str(held["host"]), int(held["pid"])
    except (ArchiveError, ValueError, KeyError, TypeError):
        return  # gone meanwhile, or cut off when its owner was killed
    if age_s > _STALE_AFTER_S or (host == platform.node() and not _is_alive(pid)):
        return
    raise ArchiveError(
        f"{place.url} is being rewritten by {who} on {host} (process {pid}, "
        f"for {age_s:.0f} s): wait, or remove {place.shown(LOCK)}"
    )


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
