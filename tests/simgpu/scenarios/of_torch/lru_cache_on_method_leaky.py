from __future__ import annotations

import functools

import torch


class Model:
    @functools.lru_cache(maxsize=None)  # noqa: B019, UP033
    def table(self, size: int) -> torch.Tensor:
        return torch.empty(size, dtype=torch.uint8, device="cuda")


def test_table_has_its_size() -> None:
    assert Model().table(1 << 20).numel() == 1 << 20
