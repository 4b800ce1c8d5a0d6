from __future__ import annotations

import torch


def test_sizes_of_all_kinds() -> None:
    for mib in (1, 90, 5, 160, 12):
        torch.empty(mib << 20, dtype=torch.uint8, device="cuda")
