from __future__ import annotations

import cupy


def test_extension_works() -> None:
    pointer = cupy.cuda.runtime.malloc(4 << 20)
    cupy.cuda.runtime.free(pointer)
