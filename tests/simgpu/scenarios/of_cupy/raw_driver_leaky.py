from __future__ import annotations

import cupy


def test_extension_works() -> None:
    assert cupy.cuda.runtime.malloc(4 << 20)
