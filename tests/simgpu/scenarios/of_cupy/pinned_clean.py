from __future__ import annotations

import cupy


def test_buffer_is_pinned() -> None:
    assert cupy.cuda.alloc_pinned_memory(1 << 20).size() >= 1 << 20
