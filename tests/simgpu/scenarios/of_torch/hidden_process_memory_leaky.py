from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.simgpu.driver import Sim
from tests.simgpu.layout import View


KEPT: list[torch.Tensor] = []


@pytest.fixture(scope="session", autouse=True)
def driver_that_hides() -> Iterator[None]:
    Sim.here().hide_process_memory(View.NO_BYTES)
    yield
    Sim.here().hide_process_memory(View.VISIBLE)


def test_with_hidden_process_memory() -> None:
    KEPT.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
