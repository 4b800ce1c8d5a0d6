from __future__ import annotations

import cupy


def test_batch_is_processed() -> None:
    assert cupy.empty(1 << 20, dtype=cupy.uint8).size == 1 << 20
