from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest
import torch

from tests.simgpu.driver import Sim


RUNTIME = ctypes.CDLL(f"libcudart.so.{str(torch.version.cuda).partition('.')[0]}")


@pytest.fixture(scope="module", autouse=True)
def late_driver() -> Iterator[None]:
    Sim.here().delay_frees(queries=2)
    yield
    Sim.here().delay_frees()


def test_extension_works() -> None:
    pointer = ctypes.c_void_p()
    assert RUNTIME.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(4 << 20)) == 0
    assert RUNTIME.cudaFree(pointer) == 0
