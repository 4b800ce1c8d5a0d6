from __future__ import annotations

import torch


def test_buffer_is_pinned() -> None:
    assert torch.empty(1 << 20, dtype=torch.uint8).pin_memory().is_pinned()
