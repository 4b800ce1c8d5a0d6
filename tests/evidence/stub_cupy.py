"""CuPy's allocators as far as allocation tracking sees them.

Classes, their arguments and attributes are those of CuPy 13 and 14
(`cupy/cuda/memory.pyx`): none of them allows weak references.
"""

from __future__ import annotations

import contextlib
import itertools
import types
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any


_UNIT_BYTES = 512


class Memory:
    """Goes back to its pool when nobody has it any more."""

    __slots__ = ("_pool", "device_id", "ptr", "size")

    def __init__(self, pool: Cuda, ptr: int, size: int) -> None:
        self._pool, self.ptr, self.size = pool, ptr, size
        self.device_id = pool.device

    def __del__(self) -> None:
        if self.ptr:
            self._pool.free_addresses.append(self.ptr)


class PooledMemory(Memory):
    """Of the pool: what is handed out is all of it."""

    __slots__ = ()


class UnownedMemory:
    """Memory of somebody else, who is kept alive."""

    __slots__ = ("_owner", "device_id", "ptr", "size")

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        self.ptr, self.size, self._owner, self.device_id = ptr, size, owner, device_id


class MemoryPointer:
    """A place in a memory."""

    __slots__ = ("device_id", "mem", "ptr")

    def __init__(self, mem: Any, offset: int) -> None:
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id


class Cuda(types.ModuleType):
    """The module `cupy.cuda`, one for each test."""

    MemoryPointer = MemoryPointer
    UnownedMemory = UnownedMemory

    def __init__(self) -> None:
        super().__init__("cupy.cuda")
        self.device = 0
        self.are_whole = True
        self.free_addresses: list[int] = []
        self.addresses = itertools.count(0x7F00_0000_0000, 1 << 21)
        self.allocator: Callable[[int], Any] = self.pool_malloc
        self.local: Callable[[int], Any] | None = None
        self.raw: dict[int, int] = {}
        self.memory = types.SimpleNamespace(PooledMemory=PooledMemory)
        self.runtime = types.SimpleNamespace(
            malloc=self.raw_malloc, free=self.raw_free, getDevice=lambda: self.device
        )

    def get_allocator(self) -> Callable[[int], Any]:
        return self.local or self.allocator

    def set_allocator(self, allocator: Callable[[int], Any] | None = None) -> None:
        if self.local is not None:
            raise ValueError(
                "Can't change the global allocator inside `using_allocator` context "
                "manager"
            )
        self.allocator = allocator or self.pool_malloc

    @contextlib.contextmanager
    def using_allocator(
        self, allocator: Callable[[int], Any] | None = None
    ) -> Iterator[None]:
        self.local = allocator or self.pool_malloc
        try:
            yield
        finally:
            self.local = None

    def alloc(self, size: int) -> Any:
        return self.get_allocator()(size)

    def pool_malloc(self, size: int) -> Any:
        rounded = -(-size // _UNIT_BYTES) * _UNIT_BYTES
        address = (
            self.free_addresses.pop() if self.free_addresses else next(self.addresses)
        )
        memory = PooledMemory if self.are_whole else Memory
        return MemoryPointer(memory(self, address if size else 0, rounded), 0)

    def raw_malloc(self, size: int) -> int:
        address = next(self.addresses)
        self.raw[address] = size
        return address

    def raw_free(self, address: int) -> None:
        del self.raw[address]


def cupy() -> Any:
    module: Any = types.ModuleType("cupy")
    module.cuda = Cuda()
    return module
