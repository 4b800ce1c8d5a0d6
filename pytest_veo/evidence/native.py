"""Native stacks of what still holds memory, from memray when it is installed."""

from __future__ import annotations

import collections
import dataclasses
import importlib.util
import tempfile
from pathlib import Path
from typing import Any

from pytest_veo.errors import MissingDependency
from pytest_veo.evidence import stacks


_MOST_SITES = 4
_MOST_FRAMES = 4
_ALLOCATORS = ("<unknown>", "_PyObject_Malloc", "_PyMem_RawMalloc", "PyObject_Malloc")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NativeSite:
    """Memory of C code that was not given back, and the line that called into it."""

    where: str
    """The user's line: `test_case.py:12`."""
    source: str
    native: tuple[str, ...]
    """The functions of C code, the allocating one first."""
    bytes_per_run: float
    blocks_per_run: float


def is_installed() -> bool:
    """Whether memray is there; nothing is imported."""
    return importlib.util.find_spec("memray") is not None


class NativeTracing:
    """memray between two instants. tracemalloc should be off meanwhile."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._tracker: Any = None

    def begin(self) -> None:
        """Start to record every allocation with its native stack.

        Raises:
            MissingDependency: memray is not installed.
        """
        if not is_installed():
            raise MissingDependency("memray", "native", "the stacks of native memory")
        import memray

        self._folder = tempfile.TemporaryDirectory(prefix="veo-native-")
        file = Path(self._folder.name) / "run.bin"
        self._tracker = memray.Tracker(file, native_traces=True)
        self._tracker.__enter__()

    def end(self, runs: int) -> tuple[NativeSite, ...]:
        """What was allocated in the runs and not freed, most bytes first."""
        if self._tracker is None or self._folder is None:
            return ()
        import memray

        self._tracker.__exit__(None, None, None)
        self._tracker = None
        file = Path(self._folder.name) / "run.bin"
        with memray.FileReader(file) as reader:
            records = list(reader.get_leaked_allocation_records(merge_threads=True))
            found = _sites(records, runs)
        self._folder.cleanup()
        return found


def _sites(records: list[Any], runs: int) -> tuple[NativeSite, ...]:
    sizes: collections.Counter[tuple[str, tuple[str, ...]]] = collections.Counter()
    counts: collections.Counter[tuple[str, tuple[str, ...]]] = collections.Counter()
    sources: dict[tuple[str, tuple[str, ...]], str] = {}
    for record in records:
        line, native = _stack(record)
        if line is None:
            continue
        key = str(line), native
        sizes[key] += record.size
        counts[key] += record.n_allocations
        sources[key] = line.source
    often = [key for key, _ in sizes.most_common() if counts[key] * 2 >= runs]
    return tuple(
        NativeSite(
            where=key[0],
            source=sources[key],
            native=key[1],
            bytes_per_run=sizes[key] / runs,
            blocks_per_run=counts[key] / runs,
        )
        for key in often[:_MOST_SITES]
    )


def _stack(record: Any) -> tuple[stacks.Line | None, tuple[str, ...]]:
    python = [(file, line) for _, file, line in record.stack_trace()]
    line = stacks.users(stacks.trimmed(python))
    native = []
    for function, file, _ in record.hybrid_stack_trace():
        if file.endswith(".py"):
            break
        if function not in _ALLOCATORS and function not in native:
            native.append(function)
    return line, tuple(native[:_MOST_FRAMES])
