from __future__ import annotations

import torch


def test_product_has_its_shape() -> None:
    left, right = (torch.ones(512, 512, device="cuda") for _ in range(2))
    assert (left @ right).shape == (512, 512)
