"""CuPy's allocations: those of its allocators, and raw ones through its runtime.

CuPy's own memory hooks are not used. It calls four methods for an allocation and its
free, and what these calls need for their arguments is traced itself: with 25 frames
that alone costs 47 us. Besides, a hook belongs to one thread, and CuPy 14 tells it the
wrong device. So while tracking is on the allocator, which all threads and streams
share, is wrapped, and what it hands out has an owner whose end is the free.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable
from typing import Any

from pytest_veo.errors import ProbeUnavailable
from pytest_veo.tracemalloc_ext.ledger import Ledger


Allocator = Callable[[int], Any]


@dataclasses.dataclass(slots=True, eq=False)
class Owner:
    """Keeps a block alive for whoever uses it, and takes it out when it is freed."""

    memory: Any
    ledger: Ledger
    number: int
    address: int

    def __del__(self) -> None:
        # Before the block is given back: then the address may be someone else's.
        self.ledger.untrack(self.number, self.address)


class CupySource:
    """The allocators of CuPy, on every thread, device and stream."""

    name = "cupy"

    def __init__(self) -> None:
        self._cuda: Any = None
        self._replaced: list[tuple[Any, str, Any, Any]] = []

    def attach(self, ledger: Ledger) -> None:
        """Wrap the allocator, and those that are set while tracking is on."""
        if "cupy" not in sys.modules:
            raise ProbeUnavailable(self.name, "cupy is not imported")
        cuda = self._cuda = sys.modules["cupy"].cuda
        try:
            cuda.set_allocator(self._through(cuda.get_allocator(), ledger))
        except ValueError as error:  # inside `using_allocator`
            raise ProbeUnavailable(self.name, str(error)) from error
        for module in (cuda, getattr(cuda, "memory", None)):
            for name in ("set_allocator", "using_allocator"):
                self._wrap_setter(module, name, ledger)

    def _through(self, allocator: Allocator, ledger: Ledger) -> Allocator:
        pointer_to, unowned = self._cuda.MemoryPointer, self._cuda.UnownedMemory
        pooled = getattr(self._cuda.memory, "PooledMemory", None)
        numbers: dict[int, int] = {}
        track = ledger.track

        def allocate(size: int) -> Any:
            pointer = allocator(size)
            memory = pointer.mem
            address = memory.ptr
            if not address:
                return pointer
            device = memory.device_id
            number = numbers.get(device)
            if number is None:
                number = numbers[device] = ledger.number("cupy", device)
            size_bytes = memory.size
            owner = Owner(memory, ledger, number, address)
            track(number, address, size_bytes)
            is_whole = type(memory) is pooled  # known without another number
            offset = 0 if is_whole else pointer.ptr - address
            return pointer_to(unowned(address, size_bytes, owner, device), offset)

        allocate.allocator = allocator  # type: ignore[attr-defined]
        return allocate

    def _wrap_setter(self, module: Any, name: str, ledger: Ledger) -> None:
        own = getattr(module, name, None)
        if own is None:
            return

        def setter(allocator: Allocator | None = None) -> Any:
            return own(None if allocator is None else self._through(allocator, ledger))

        setattr(module, name, setter)
        self._replaced.append((module, name, own, setter))

    def detach(self) -> None:
        """Put everything back; an allocator that the user has set stays."""
        for module, name, own, setter in self._replaced:
            if getattr(module, name) is setter:
                setattr(module, name, own)
        self._replaced.clear()
        current = getattr(self._cuda.get_allocator(), "allocator", None)
        if current is not None:
            # Inside `using_allocator` CuPy refuses: then it passes on what it gets.
            with contextlib.suppress(ValueError):
                self._cuda.set_allocator(current)


class CupyRuntimeSource:
    """Raw device memory that Python code asks CuPy's runtime for.

    CuPy's own pools call the runtime from C and are not seen here.
    """

    name = "cupy.runtime"
    _ALLOCATING = ("malloc", "mallocManaged", "mallocAsync")
    _FREEING = ("free", "freeAsync")

    def __init__(self) -> None:
        self._runtime: Any = None
        self._replaced: dict[str, tuple[Any, Any]] = {}

    def attach(self, ledger: Ledger) -> None:
        """Wrap the functions by name."""
        cupy = sys.modules.get("cupy")
        self._runtime = getattr(getattr(cupy, "cuda", None), "runtime", None)
        if self._runtime is None:
            raise ProbeUnavailable(self.name, "cupy is not imported")
        known: dict[int, int] = {}
        for name in self._ALLOCATING:
            self._replace(name, lambda own: self._allocating(own, known, ledger))
        for name in self._FREEING:
            self._replace(name, lambda own: _freeing(own, known, ledger))

    def _replace(self, name: str, wrap: Callable[[Any], Any]) -> None:
        own = getattr(self._runtime, name, None)
        if own is not None:
            ours = wrap(own)
            self._replaced[name] = own, ours
            setattr(self._runtime, name, ours)

    def _allocating(
        self, own: Callable[..., int], known: dict[int, int], ledger: Ledger
    ) -> Callable[..., int]:
        def allocate(size: int, *stream: Any) -> int:
            address = own(size, *stream)
            number = ledger.number(self.name, int(self._runtime.getDevice()))
            known[address] = number
            ledger.track(number, address, size)
            return address

        return allocate

    def detach(self) -> None:
        """Put the functions back."""
        for name, (own, ours) in self._replaced.items():
            if getattr(self._runtime, name) is ours:
                setattr(self._runtime, name, own)
        self._replaced.clear()


def _freeing(
    own: Callable[..., None], known: dict[int, int], ledger: Ledger
) -> Callable[..., None]:
    def free(address: int, *stream: Any) -> None:
        number = known.pop(address, None)
        if number is not None:
            ledger.untrack(number, address)
        own(address, *stream)

    return free
