from __future__ import annotations

import torch


def test_batch_is_processed() -> None:
    kept: list[torch.Tensor] = []
    batch = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    kept.append(batch)
