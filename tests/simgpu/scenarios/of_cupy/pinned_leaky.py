from __future__ import annotations

from typing import Any

import cupy


KEPT: list[Any] = []


def test_buffer_is_pinned() -> None:
    KEPT.append(cupy.cuda.alloc_pinned_memory(1 << 20))
