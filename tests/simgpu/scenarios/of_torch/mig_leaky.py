from __future__ import annotations

import torch


KEPT: list[torch.Tensor] = []


def test_on_a_slice_of_the_device() -> None:
    KEPT.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
