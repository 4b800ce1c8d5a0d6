from __future__ import annotations

import torch


class Node:
    def __init__(self) -> None:
        self.data = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
        self.owner = self


def test_node_has_data() -> None:
    assert Node().data.numel() == 1 << 20
