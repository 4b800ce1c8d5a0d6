"""A counting RMM resource over callbacks that ask the simulated CUDA runtime.

RMM's own CUDA resources use a runtime of their own, which does not run here.
"""

from __future__ import annotations

import ctypes

import rmm.mr


_RUNTIME = ctypes.CDLL("libcudart.so.12")


def _allocate(size: int, stream: object = None) -> int:
    pointer = ctypes.c_void_p()
    status = _RUNTIME.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size))
    if status or pointer.value is None:
        raise MemoryError(f"cudaMalloc of {size} bytes: CUDA error {status}")
    return pointer.value


def _free(pointer: int, size: int, stream: object = None) -> None:
    status = _RUNTIME.cudaFree(ctypes.c_void_p(pointer))
    if status:
        raise RuntimeError(f"cudaFree of {size} bytes: CUDA error {status}")


RESOURCE = rmm.mr.StatisticsResourceAdaptor(
    rmm.mr.CallbackMemoryResource(_allocate, _free)
)
rmm.mr.set_per_device_resource(0, RESOURCE)
