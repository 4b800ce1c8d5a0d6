from __future__ import annotations

import torch


KEPT: list[torch.Tensor] = []


def test_batch_is_processed() -> None:
    batch = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    KEPT.append(batch)
