from __future__ import annotations

import torch


PREPARED = [torch.empty(1 << 20, dtype=torch.uint8, device="cuda")]


def test_prepared_batch_is_used() -> None:
    PREPARED.clear()
    PREPARED.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
