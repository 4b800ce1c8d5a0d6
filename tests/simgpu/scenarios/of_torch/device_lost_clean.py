from __future__ import annotations

import torch


def test_device_stays() -> None:
    batch = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    assert batch.numel() == 1 << 20


def test_on_the_host() -> None:
    assert torch.empty(3).shape == (3,)
