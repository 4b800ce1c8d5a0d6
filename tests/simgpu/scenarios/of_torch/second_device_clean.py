from __future__ import annotations

import torch


def test_on_both_devices() -> None:
    torch.empty(1 << 20, dtype=torch.uint8, device="cuda:0")
    torch.empty(1 << 20, dtype=torch.uint8, device="cuda:1")
