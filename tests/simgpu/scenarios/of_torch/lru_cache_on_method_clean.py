from __future__ import annotations

import functools

import torch


class Model:
    @functools.cached_property
    def table(self) -> torch.Tensor:
        return torch.empty(1 << 20, dtype=torch.uint8, device="cuda")


def test_table_has_its_size() -> None:
    assert Model().table.numel() == 1 << 20
