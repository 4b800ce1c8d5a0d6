from __future__ import annotations

import cupy


KEPT: list[cupy.ndarray] = []


def test_on_both_devices() -> None:
    cupy.empty(1 << 20, dtype=cupy.uint8)
    with cupy.cuda.Device(1):
        KEPT.append(cupy.empty(1 << 20, dtype=cupy.uint8))
