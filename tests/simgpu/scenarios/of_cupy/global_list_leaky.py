from __future__ import annotations

import cupy


KEPT: list[cupy.ndarray] = []


def test_batch_is_processed() -> None:
    KEPT.append(cupy.empty(1 << 20, dtype=cupy.uint8))
