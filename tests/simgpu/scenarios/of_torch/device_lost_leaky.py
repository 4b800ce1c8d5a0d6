from __future__ import annotations

import torch

from tests.simgpu.driver import Sim


def test_device_falls_off_the_bus() -> None:
    batch = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    Sim.here().device(0).lost = 1
    assert batch.numel() == 1 << 20


def test_on_the_host() -> None:
    assert torch.empty(3).shape == (3,)
