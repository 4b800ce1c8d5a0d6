from __future__ import annotations

import torch


PREPARED = [torch.empty(1 << 20, dtype=torch.uint8, device="cuda")]
KEPT: list[torch.Tensor] = []


def test_prepared_batch_is_used() -> None:
    PREPARED.clear()  # frees one: this run's balance is nought
    KEPT.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
