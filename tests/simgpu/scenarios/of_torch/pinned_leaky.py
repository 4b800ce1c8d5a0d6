from __future__ import annotations

import torch


KEPT: list[torch.Tensor] = []


def test_buffer_is_pinned() -> None:
    KEPT.append(torch.empty(1 << 20, dtype=torch.uint8).pin_memory())
    assert KEPT[-1].is_pinned()
