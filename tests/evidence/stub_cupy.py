"""CuPy's memory pool and hooks as far as allocation tracking sees them.

The calls, their keyword arguments and their order are those of CuPy 13 and 14
(`cupy/cuda/memory.pyx`): hooks belong to a thread, the allocator to all of them.
"""

from __future__ import annotations

import collections
import itertools
import threading
import types
from collections.abc import Callable
from typing import Any


_UNIT_BYTES = 512


class Hook:
    name = "MemoryHook"

    def alloc_preprocess(self, **kwargs: Any) -> None: ...
    def alloc_postprocess(self, **kwargs: Any) -> None: ...
    def malloc_preprocess(self, **kwargs: Any) -> None: ...
    def malloc_postprocess(self, **kwargs: Any) -> None: ...
    def free_preprocess(self, **kwargs: Any) -> None: ...
    def free_postprocess(self, **kwargs: Any) -> None: ...


class Pointer:
    """`MemoryPointer` and `PooledMemory` in one; like these without weak references."""

    __slots__ = ("_pool", "ptr", "size")

    def __init__(self, pool: Cuda, ptr: int, size: int) -> None:
        self._pool, self.ptr, self.size = pool, ptr, size

    def __del__(self) -> None:
        self._pool.free(self)


class Cuda(types.ModuleType):
    """The module `cupy.cuda`, one for each test."""

    MemoryHook = Hook

    def __init__(self) -> None:
        super().__init__("cupy.cuda")
        self.local = threading.local()
        self.free_addresses: list[int] = []
        self.addresses = itertools.count(0x7F00_0000_0000, 1 << 21)
        self.allocator: Callable[[int], Any] = self.pool_malloc
        self.is_using_allocator = False
        self.memory_hook = types.SimpleNamespace(get_memory_hooks=self.hooks)

    def hooks(self) -> collections.OrderedDict[str, Hook]:
        if not hasattr(self.local, "hooks"):
            self.local.hooks = collections.OrderedDict()
        found: collections.OrderedDict[str, Hook] = self.local.hooks
        return found

    def get_allocator(self) -> Callable[[int], Any]:
        return self.allocator

    def set_allocator(self, allocator: Callable[[int], Any]) -> None:
        if self.is_using_allocator:
            raise ValueError(
                "Can't change the global allocator inside `using_allocator` context "
                "manager"
            )
        self.allocator = allocator

    def alloc(self, size: int) -> Any:
        return self.get_allocator()(size)

    def pool_malloc(self, size: int) -> Pointer:
        rounded = -(-size // _UNIT_BYTES) * _UNIT_BYTES
        hooks = self.hooks()
        for hook in hooks.values():
            hook.malloc_preprocess(device_id=0, size=size, mem_size=rounded)
        address = (
            self.free_addresses.pop() if self.free_addresses else next(self.addresses)
        )
        pointer = Pointer(self, address, rounded)
        for hook in hooks.values():
            hook.malloc_postprocess(
                device_id=0,
                size=size,
                mem_size=rounded,
                mem_ptr=address,
                pmem_id=id(pointer),
            )
        return pointer

    def free(self, pointer: Pointer) -> None:
        about = {
            "device_id": 0,
            "mem_size": pointer.size,
            "mem_ptr": pointer.ptr,
            "pmem_id": id(pointer),
        }
        hooks = self.hooks()
        for hook in hooks.values():
            hook.free_preprocess(**about)
        self.free_addresses.append(pointer.ptr)
        for hook in hooks.values():
            hook.free_postprocess(**about)


def cupy() -> Any:
    module: Any = types.ModuleType("cupy")
    module.cuda = Cuda()
    return module
