from __future__ import annotations

import ctypes

import torch


RUNTIME = ctypes.CDLL(f"libcudart.so.{str(torch.version.cuda).partition('.')[0]}")


def test_extension_works() -> None:
    pointer = ctypes.c_void_p()
    assert RUNTIME.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(4 << 20)) == 0
