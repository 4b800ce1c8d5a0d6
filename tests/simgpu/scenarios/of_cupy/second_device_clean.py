from __future__ import annotations

import cupy


def test_on_both_devices() -> None:
    cupy.empty(1 << 20, dtype=cupy.uint8)
    with cupy.cuda.Device(1):
        cupy.empty(1 << 20, dtype=cupy.uint8)
