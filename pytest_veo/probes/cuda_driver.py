"""The CUDA driver as this process has loaded it: asked, never loaded or initialised.

Every function used here answers `CUDA_ERROR_NOT_INITIALIZED` before the user's
program has called `cuInit`, and none of them makes a context. Devices are named by
UUID, the one name that CUDA, NVML and every framework share.

The C interface is described in the "CUDA Driver API" manual, chapters "Device
Management" and "Primary Context Management".
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any


_SUCCESS = 0


class CudaDriver:
    """Questions to `libcuda.so.1`."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._count = library.cuDeviceGetCount
        self._state = library.cuDevicePrimaryCtxGetState
        self._state.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        # The second version gives a MIG slice its own UUID, the first its parent's.
        self._parent_uuid = library.cuDeviceGetUuid
        self._uuid = getattr(library, "cuDeviceGetUuid_v2", library.cuDeviceGetUuid)
        for function in (self._parent_uuid, self._uuid):
            function.argtypes = (ctypes.c_void_p, ctypes.c_int)
        self._flags = ctypes.c_uint()
        self._active = ctypes.c_int()
        self._state_places = (
            ctypes.addressof(self._flags),
            ctypes.addressof(self._active),
        )

    def device_count(self) -> int:
        """Devices visible to this process; 0 until the program has called `cuInit`."""
        count = ctypes.c_int()
        if self._count(ctypes.byref(count)) != _SUCCESS:
            return 0
        return count.value

    def has_context(self, ordinal: int) -> bool:
        """Whether this process holds the device's primary context."""
        status = self._state(ordinal, *self._state_places)
        return status == _SUCCESS and self._active.value != 0

    def device_name(self, ordinal: int) -> str:
        """`GPU-<uuid>` of the device with this CUDA ordinal; `MIG-<uuid>` of a slice.

        Raises:
            OSError: the driver does not tell.
        """
        raw = self._ask(self._uuid, ordinal)
        if raw != self._ask(self._parent_uuid, ordinal):
            return device_name(raw, "MIG")
        return device_name(raw)

    def _ask(self, function: Any, ordinal: int) -> bytes:
        raw = (ctypes.c_ubyte * 16)()
        status = function(raw, ordinal)
        if status != _SUCCESS:
            raise OSError(f"cuDeviceGetUuid of device {ordinal}: CUDA error {status}")
        return bytes(raw)


def device_name(raw: bytes, kind: str = "GPU") -> str:
    """`GPU-<uuid>` from the sixteen bytes CUDA gives."""
    digits = raw.hex()
    groups = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return f"{kind}-{'-'.join(groups)}"


class DriverWatch:
    """Notices when `libcuda.so.1` enters this process, for under a microsecond.

    To ask the loader for a library that is not there costs twenty times as much as
    to ask how many it has loaded so far, so the first is done only after the second
    has moved.
    """

    def __init__(self) -> None:
        self._driver: CudaDriver | None = None
        self._likely = -1
        """The device whose context was seen last: most often it is still there."""
        self._loads_seen = -1
        self._loads = _load_counter()

    def driver(self) -> CudaDriver | None:
        """The driver, once the program has loaded it."""
        if self._driver is not None:
            return self._driver
        loads = self._loads()
        if loads != self._loads_seen:
            self._loads_seen = loads
            self._driver = _loaded_driver()
        return self._driver

    def has_any_context(self) -> bool:
        """Whether this process holds a CUDA context, whoever made it."""
        driver = self.driver()
        if driver is None:
            return False
        if self._likely >= 0 and driver.has_context(self._likely):
            return True
        for ordinal in range(driver.device_count()):
            if driver.has_context(ordinal):
                self._likely = ordinal
                return True
        return False


def _loaded_driver() -> CudaDriver | None:
    if sys.platform != "linux":
        return None
    try:
        library = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:  # not loaded: exactly what was asked
        return None
    return CudaDriver(library)


class _LoadedObject(ctypes.Structure):
    """`struct dl_phdr_info`, dl_iterate_phdr(3)."""

    _fields_ = (
        ("address", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.c_void_p),
        ("header_count", ctypes.c_uint16),
        ("loads", ctypes.c_ulonglong),
        ("unloads", ctypes.c_ulonglong),
    )


class _LoadCounter:
    """How many objects the dynamic loader has loaded since the process began."""

    def __init__(self, library: ctypes.CDLL) -> None:
        callback = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
        )
        self._count = 0
        self._note = callback(self._first_object)
        self._iterate = library.dl_iterate_phdr
        self._iterate.argtypes = (callback, ctypes.c_void_p)

    def __call__(self) -> int:
        self._iterate(self._note, None)
        return self._count

    def _first_object(self, place: int, _size: int, _data: int | None) -> int:
        field = place + _LoadedObject.loads.offset
        self._count = ctypes.c_ulonglong.from_address(field).value
        return 1  # the counter is the same in every object: stop


def _load_counter() -> Callable[[], int]:
    if sys.platform != "linux":
        return lambda: 0
    return _LoadCounter(ctypes.CDLL(None))
