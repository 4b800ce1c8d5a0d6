"""Where device allocations are heard of: CuPy, numba-cuda, RMM and cuda.core.

Each source hooks in while tracking is on and leaves nothing behind afterwards. It
raises `ProbeUnavailable` with its reason when it cannot hook in.
"""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any
from typing import Protocol

from pytest_veo.errors import ProbeUnavailable
from pytest_veo.tracemalloc_ext.cupy_source import CupyRuntimeSource
from pytest_veo.tracemalloc_ext.cupy_source import CupySource
from pytest_veo.tracemalloc_ext.ledger import Ledger


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
    return (
        CupySource(),
        CupyRuntimeSource(),
        NumbaSource(),
        RmmSource(),
        CudaCoreSource(),
    )
