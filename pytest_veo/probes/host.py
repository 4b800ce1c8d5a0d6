"""This process on the host: Python blocks, native heap, mappings, handles.

All of `glance` takes about 8 us on Linux with glibc. What another libc or system
does not offer is left out and said so.

Source: `sys.getallocatedblocks`, mallinfo2(3), proc(5).
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Reading
from pytest_veo.memory.snapshot import Rung
from pytest_veo.memory.snapshot import Trouble
from pytest_veo.units import Unit


if TYPE_CHECKING:
    from collections.abc import Callable


def _counter(name: str, unit: Unit, **more: object) -> Counter:
    return Counter(probe="host", name=name, unit=unit, **more)  # type: ignore[arg-type]


BLOCKS = _counter("python_blocks", Unit.COUNT, gate=8)
"""Objects of up to 512 bytes that Python's own allocator has handed out."""
HEAP = _counter("heap", Unit.BYTES, gate=2048, exact=False, step=16)
"""Native memory in use: malloc'ed and not freed, objects over 512 bytes included."""
MAPPED = _counter(
    "mapped", Unit.BYTES, rung=Rung.DRIVER, gate=256 << 10, exact=False, step=4096
)
"""Private writable mappings that malloc does not own: raw mmap, Python's arenas,
thread stacks."""
SHARED = _counter(
    "shared", Unit.BYTES, rung=Rung.DRIVER, gate=0, exact=False, step=4096
)
"""All other mappings: shared memory, files, libraries, reserved address space."""
DESCRIPTORS = _counter("descriptors", Unit.COUNT, always=True)
THREADS = _counter("threads", Unit.COUNT, always=True)
CHILDREN = _counter("children", Unit.COUNT, always=True)
RSS = _counter("rss", Unit.BYTES, rung=Rung.DEVICE, exact=False, step=4096)
"""Resident memory. Arenas and pinned tops move it: context, never evidence."""
TASKS = _counter("asyncio_tasks", Unit.COUNT)
"""asyncio tasks that are not done."""

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class _Mallinfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


def _find_mallinfo() -> Callable[[], _Mallinfo2] | None:
    """Glibc's mallinfo2, if it tells the truth about this process's malloc."""
    try:
        libc = ctypes.CDLL(None)
        mallinfo = libc.mallinfo2
    except (OSError, AttributeError, TypeError):
        return None
    mallinfo.restype = _Mallinfo2
    mallinfo.argtypes = []
    # A preloaded allocator (jemalloc, tcmalloc) leaves glibc's figures still.
    before = mallinfo()
    held = ctypes.create_string_buffer(256 << 10)
    after = mallinfo()
    moved = (after.uordblks + after.hblkhd) - (before.uordblks + before.hblkhd)
    if moved < ctypes.sizeof(held):
        return None
    return mallinfo


class HostProbe:
    """Reads this process's own figures."""

    name = "host"

    def __init__(self, proc: Path = Path("/proc/self")) -> None:
        self._proc = proc
        self.counters: tuple[Counter, ...] = ()
        self.troubles: tuple[Trouble, ...] = ()
        self._statm = -1
        self._children = -1
        self._task_folder = -1
        self._fd_folder = -1
        self._mallinfo: Callable[[], _Mallinfo2] | None = None
        self._pid = 0
        self.shared_place = -1
        """Where `SHARED` stands in a glance; -1: it does not."""
        self.glance: Callable[..., tuple[int, ...]] = lambda: ()
        self.can_skip_blocks = False
        """Whether `glance` may be given what to take for Python's blocks."""

    def open(self) -> None:
        """Find out what this system offers."""
        self._pid = os.getpid()
        missing: list[Trouble] = []
        counters = []
        if sys.getallocatedblocks() > 0:
            counters.append(BLOCKS)
        else:
            missing.append(
                Trouble(
                    "host",
                    "Python's allocator is off (PYTHONMALLOC=malloc)",
                    counter="python_blocks",
                )
            )
        self._mallinfo = _find_mallinfo()
        self._open_statm()
        self._open_children()
        self._open_folders()
        if self._mallinfo is not None:
            counters.append(HEAP)
        else:
            missing.append(
                Trouble("host", "malloc is not glibc's: no mallinfo2", counter="heap")
            )
        if self._mallinfo is not None and self._statm >= 0:
            counters.append(MAPPED)
        else:
            missing.append(
                Trouble(
                    "host", "needs /proc/self/statm and mallinfo2", counter="mapped"
                )
            )
        if self._statm >= 0:
            counters.append(SHARED)
        else:
            missing.append(Trouble("host", "no /proc/self/statm", counter="shared"))
        counters.append(THREADS)
        if self._fd_folder >= 0:
            counters.append(DESCRIPTORS)
        else:
            missing.append(Trouble("host", "no /proc/self/fd", counter="descriptors"))
        if self._children >= 0:
            counters.append(CHILDREN)
        else:
            missing.append(
                Trouble("host", "no /proc/self/task/*/children", counter="children")
            )
        self.counters = tuple(counters)
        self.shared_place = counters.index(SHARED) if SHARED in counters else -1
        self.troubles = tuple(missing)
        self.can_skip_blocks = len(counters) == 7
        self.glance = self._fast() if self.can_skip_blocks else self._slow

    def _open_statm(self) -> None:
        try:
            self._statm = os.open(self._proc / "statm", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._statm = -1

    def _open_folders(self) -> None:
        # Kept open: to ask a descriptor takes half the time that a path takes.
        self._task_folder = _open_folder(self._proc / "task")
        self._fd_folder = _open_folder(self._proc / "fd")

    def _open_children(self) -> None:
        path = self._proc / "task" / str(os.getpid()) / "children"
        try:
            self._children = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._children = -1

    def is_active(self) -> bool:
        """Always: a process is its own host."""
        return True

    def _fast(self) -> Callable[..., tuple[int, ...]]:
        """`glance` for Linux with glibc, every look-up done beforehand."""
        mallinfo = self._mallinfo
        assert mallinfo is not None
        blocks = sys.getallocatedblocks
        pread, fstat = os.pread, os.fstat
        statm, children, task = self._statm, self._children, self._task_folder
        folder, listdir, page = self._fd_folder, os.listdir, _PAGE_BYTES
        # Since Linux 6.2 the folder's size is the number of open descriptors.
        has_size = fstat(folder).st_size > 0

        def glance(count: Callable[[], int] = blocks) -> tuple[int, ...]:
            heap = mallinfo()
            hblkhd = heap.hblkhd
            words = pread(statm, 128, 0).split()
            data = int(words[5]) * page
            return (
                count(),
                heap.uordblks + hblkhd,
                data - heap.arena - hblkhd,
                int(words[0]) * page - data,
                # One link for each thread: Python's and a library's own alike.
                fstat(task).st_nlink - 2,
                fstat(folder).st_size if has_size else len(listdir(folder)) - 1,
                pread(children, 4096, 0).count(b" "),
            )

        return glance

    def _count_descriptors(self) -> int:
        size = os.fstat(self._fd_folder).st_size
        return size if size > 0 else len(list(os.scandir(self._fd_folder))) - 1

    def _count_threads(self) -> int:
        if self._task_folder < 0:
            return threading.active_count()
        return os.fstat(self._task_folder).st_nlink - 2

    def heap_bytes(self) -> int:
        """The native heap in use alone: a fraction of a microsecond."""
        if self._mallinfo is None:
            return 0
        heap = self._mallinfo()
        return int(heap.uordblks + heap.hblkhd)

    def _slow(self) -> tuple[int, ...]:
        return tuple(map(self._one, self.counters))

    def _one(self, counter: Counter) -> int:
        if counter is BLOCKS:
            return sys.getallocatedblocks()
        if counter is THREADS:
            return self._count_threads()
        if counter is DESCRIPTORS:
            return self._count_descriptors()
        if counter is CHILDREN:
            return os.pread(self._children, 4096, 0).count(b" ")
        if counter is HEAP:
            return self.heap_bytes()
        words = os.pread(self._statm, 128, 0).split()
        data = int(words[5]) * _PAGE_BYTES
        if counter is SHARED:
            return int(words[0]) * _PAGE_BYTES - data
        assert self._mallinfo is not None
        heap = self._mallinfo()
        return int(data - heap.arena - heap.hblkhd)

    def settle(self) -> None:
        """Nothing to flush: gc is the caller's."""

    def read(self) -> tuple[Reading, ...]:
        """The glance, resident memory and pending asyncio tasks."""
        readings = [
            Reading(counter, value)
            for counter, value in zip(self.counters, self.glance(), strict=True)
        ]
        if self._statm >= 0:
            words = os.pread(self._statm, 128, 0).split()
            readings.append(Reading(RSS, int(words[1]) * _PAGE_BYTES))
        readings.append(Reading(TASKS, len(pending_tasks())))
        return tuple(readings)

    def close(self) -> None:
        """Close the kept descriptors; a forked child leaves its parent's alone."""
        kept = (self._statm, self._children, self._task_folder, self._fd_folder)
        if os.getpid() == self._pid:
            for descriptor in kept:
                if descriptor >= 0:
                    os.close(descriptor)
        self._statm = self._children = self._task_folder = self._fd_folder = -1
        self.counters = ()
        self.can_skip_blocks = False
        self.glance = tuple


def _open_folder(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, AttributeError):
        return -1


def pending_tasks() -> list[object]:
    """Asyncio tasks of every loop that are not done; none if asyncio is not loaded."""
    tasks = sys.modules.get("asyncio.tasks")
    if tasks is None:
        return []
    # 3.11 keeps `_all_tasks`; 3.12 tells scheduled from eager ones.
    every = (
        getattr(tasks, "_scheduled_tasks", None)
        or getattr(tasks, "_all_tasks", None)
        or ()
    )
    try:
        return [task for task in list(every) if not task.done()]
    except RuntimeError:  # another thread changed the set
        return []
