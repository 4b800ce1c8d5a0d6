from __future__ import annotations

import pytest
import torch


class Model(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1 << 20, device="cuda"))
        self.seen: list[torch.Tensor] = []


@pytest.fixture(scope="session")
def model() -> Model:
    return Model()


def test_model_is_used(model: Model) -> None:
    batch = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    model.seen.append(batch)  # the model lives as long as the session
