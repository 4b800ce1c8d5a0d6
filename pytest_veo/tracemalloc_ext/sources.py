"""Where device allocations are heard of: CuPy, numba-cuda, RMM and cuda.core.

Each source hooks in while tracking is on and leaves nothing behind afterwards. It
raises `ProbeUnavailable` with its reason when it cannot hook in.
"""

from __future__ import annotations

import functools
import gc
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable
from typing import Any
from typing import Protocol

from pytest_veo.errors import ProbeUnavailable
from pytest_veo.tracemalloc_ext.ledger import Ledger


_PATIENCE_S = 0.05


class Source(Protocol):
    """Hears of one library's allocations."""

    name: str

    def attach(self, ledger: Ledger) -> None:
        """Hook in.

        Raises:
            ProbeUnavailable: the library is not there, or cannot be hooked.
        """

    def detach(self) -> None:
        """Take the hooks out again."""


def _imported(source: str, module: str) -> Any:
    found = sys.modules.get(module)
    if found is None:
        raise ProbeUnavailable(source, f"{module} is not imported")
    return found


class CupySource:
    """CuPy's memory hooks, on every thread that allocates.

    CuPy keeps hooks for each thread. The allocator, which all threads share, is
    wrapped while tracking is on: a thread gets its hook with its first allocation.
    """

    name = "cupy"

    def __init__(self) -> None:
        self._cuda: Any = None
        self._hook: Any = None
        self._shim: Any = None
        self._allocator: Any = None
        self._hooks: dict[int, Any] = {}
        self._codes: set[types.CodeType] = set()

    def attach(self, ledger: Ledger) -> None:
        """Hook in on this thread, and on others with their first allocation."""
        self._cuda = _imported(self.name, "cupy").cuda
        self._hook = _cupy_hook(self._cuda.MemoryHook, ledger)
        self._codes = {
            function.__code__
            for function in vars(type(self._hook)).values()
            if isinstance(function, types.FunctionType)
        }
        self._register()
        self._allocator = self._cuda.get_allocator()
        self._shim = self._through(self._allocator)
        try:
            self._cuda.set_allocator(self._shim)
        except ValueError as error:  # inside `using_allocator`
            self._shim = None
            self.detach()
            raise ProbeUnavailable(self.name, str(error)) from error

    def _through(self, allocator: Callable[[int], Any]) -> Callable[[int], Any]:
        known, ident, register = self._hooks, threading.get_ident, self._register

        def allocate(size: int) -> Any:
            if ident() not in known:
                register()
            return allocator(size)

        return allocate

    def _register(self) -> None:
        hooks = self._cuda.memory_hook.get_memory_hooks()
        hooks[self._hook.name] = self._hook
        self._hooks[threading.get_ident()] = hooks

    def detach(self) -> None:
        """Take the hook from every thread, and the allocator's wrapper."""
        if self._shim is not None and self._cuda.get_allocator() is self._shim:
            self._cuda.set_allocator(self._allocator)
        self._hook.ledger = None
        deadline = time.monotonic() + _PATIENCE_S
        for thread, hooks in self._hooks.items():
            while self._is_calling(thread) and time.monotonic() < deadline:
                time.sleep(0.001)  # it walks through its hooks: do not take one away
            if not self._is_calling(thread):
                hooks.pop(self._hook.name, None)
        self._hooks.clear()

    def _is_calling(self, thread: int) -> bool:
        if thread == threading.get_ident():
            return False
        frame = sys._current_frames().get(thread)
        while frame is not None:
            if frame.f_code in self._codes:
                return True
            frame = frame.f_back
        return False


def _cupy_hook(base: type, ledger: Ledger) -> Any:
    """A hook of CuPy's own base class, which exists only once CuPy is imported.

    All of today's keyword arguments are named: what ends up in `**_` would have to be
    allocated, and so be traced.
    """

    class Hook(base):  # type: ignore[misc]
        name = "pytest_veo"

        def __init__(self) -> None:
            self.ledger: Ledger | None = ledger
            self.numbers: dict[int, int] = {}

        def malloc_postprocess(
            self,
            device_id: int = 0,
            size: int = 0,
            mem_size: int = 0,
            mem_ptr: int = 0,
            pmem_id: int = 0,
            **_: object,
        ) -> None:
            if self.ledger is None or not mem_ptr:
                return
            number = self.numbers.get(device_id)
            if number is None:
                number = self.ledger.number("cupy", device_id)
                self.numbers[device_id] = number
            self.ledger.track(number, mem_ptr, mem_size)

        def free_preprocess(
            self,
            device_id: int = 0,
            mem_size: int = 0,
            mem_ptr: int = 0,
            pmem_id: int = 0,
            **_: object,
        ) -> None:
            # Before, not after: then the address may be another thread's again.
            if self.ledger is not None and device_id in self.numbers:
                self.ledger.untrack(self.numbers[device_id], mem_ptr)

    return Hook()


class NumbaSource:
    """The memory managers of numba-cuda's live contexts."""

    name = "numba"

    def __init__(self) -> None:
        self._managers: list[Any] = []
        self._pointers: dict[int, Any] = {}

    def attach(self, ledger: Ledger) -> None:
        """Wrap `memalloc` of each context that exists already."""
        devices = _imported(self.name, "numba.cuda.cudadrv.devices")
        gpus = getattr(devices.gpus, "lst", None) or []
        contexts = {
            gpu.id: context
            for gpu in gpus
            if (context := getattr(gpu, "primary_context", None)) is not None
        }
        if not contexts:
            raise ProbeUnavailable(self.name, "no CUDA context exists yet")
        for device, context in contexts.items():
            manager = context.memory_manager
            number = ledger.number(self.name, int(device))
            manager.memalloc = self._through(manager.memalloc, ledger, number)
            self._managers.append(manager)

    def _through(
        self, memalloc: Callable[[int], Any], ledger: Ledger, number: int
    ) -> Callable[[int], Any]:
        pointers = self._pointers

        @functools.wraps(memalloc)
        def allocate(size: int) -> Any:
            pointer = memalloc(size)
            address = int(pointer.device_ctypes_pointer.value or 0)

            def gone(_: object) -> None:
                pointers.pop(address, None)
                ledger.untrack(number, address)

            ledger.track(number, address, size)
            pointers[address] = weakref.ref(pointer, gone)
            return pointer

        return allocate

    def detach(self) -> None:
        """Give the managers their own method back."""
        for manager in self._managers:
            vars(manager).pop("memalloc", None)
        self._managers.clear()
        self._pointers.clear()


class RmmSource:
    """RMM's resource of each device, seen through its callbacks."""

    name = "rmm"

    def __init__(self) -> None:
        self._mr: Any = None
        self._replaced: list[tuple[int, Any, Any]] = []

    def attach(self, ledger: Ledger) -> None:
        """Put a callback resource in front of the current one.

        Buffers keep the resource they came from, so those of before are freed where
        they belong and are not seen.
        """
        self._mr = _imported(self.name, "rmm").mr
        number = ledger.number(self.name, 0)
        upstream = self._mr.get_current_device_resource()

        def allocate(size: int, *stream: Any) -> int:
            address = int(upstream.allocate(size, *stream))
            ledger.track(number, address, size)
            return address

        def deallocate(address: int, size: int, *stream: Any) -> None:
            ledger.untrack(number, address)
            upstream.deallocate(address, size, *stream)

        front = self._mr.CallbackMemoryResource(allocate, deallocate)
        self._mr.set_current_device_resource(front)
        self._replaced.append((number, upstream, front))

    def detach(self) -> None:
        """Put the resource back, unless somebody has set another one meanwhile."""
        for _, upstream, front in self._replaced:
            if self._mr.get_current_device_resource() is front:
                self._mr.set_current_device_resource(upstream)
        self._replaced.clear()


class CudaCoreSource:
    """The memory resources of cuda.core that are in use.

    Asking a device for its resource would make one, so those that exist are looked for
    among the collector's objects. The resources that cuda.core brings are sealed (C
    classes); a subclass written in Python can be followed.
    """

    name = "cuda.core"

    def __init__(self) -> None:
        self._resources: list[Any] = []
        self._buffers: dict[tuple[int, int], Any] = {}

    def attach(self, ledger: Ledger) -> None:
        """Wrap `allocate` of each resource whose class allows that."""
        if "cuda.core" not in sys.modules:
            _imported(self.name, "cuda.core.experimental")
        found = _live_resources()
        if not found:
            raise ProbeUnavailable(self.name, "no memory resource is in use")
        sealed = set()
        for resource in found:
            number = ledger.number(self.name, int(getattr(resource, "device_id", 0)))
            try:
                resource.allocate = self._through(resource.allocate, ledger, number)
            except (AttributeError, TypeError):
                sealed.add(type(resource).__name__)
            else:
                self._resources.append(resource)
        if not self._resources:
            names = ", ".join(sorted(sealed))
            raise ProbeUnavailable(self.name, f"{names} cannot be hooked")

    def _through(
        self, own: Callable[..., Any], ledger: Ledger, number: int
    ) -> Callable[..., Any]:
        buffers = self._buffers

        def allocate(size: int, *args: Any, **kwargs: Any) -> Any:
            buffer = own(size, *args, **kwargs)
            address = int(buffer.handle)

            def gone(_: object) -> None:
                buffers.pop((number, address), None)
                ledger.untrack(number, address)

            ledger.track(number, address, size)
            buffers[number, address] = weakref.ref(buffer, gone)
            return buffer

        return allocate

    def detach(self) -> None:
        """Give the resources their own method back."""
        for resource in self._resources:
            vars(resource).pop("allocate", None)
        self._resources.clear()
        self._buffers.clear()


def _live_resources() -> list[Any]:
    """Objects of `cuda.core`'s MemoryResource classes; gc must not be frozen."""
    heap = gc.get_objects()
    kinds = dict(zip(map(id, map(type, heap)), map(type, heap), strict=True))
    wanted = {number for number, kind in kinds.items() if _is_resource(kind)}
    return [each for each in heap if id(type(each)) in wanted]


def _is_resource(kind: type) -> bool:
    return any(
        base.__name__ == "MemoryResource" and base.__module__.startswith("cuda.core")
        for base in type.__dict__["__mro__"].__get__(kind)
    )


def all_sources() -> tuple[Source, ...]:
    """A fresh source of each kind."""
    return CupySource(), NumbaSource(), RmmSource(), CudaCoreSource()
