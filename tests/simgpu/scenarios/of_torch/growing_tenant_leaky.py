from __future__ import annotations

import torch

from tests.simgpu.driver import Sim


KEPT: list[torch.Tensor] = []


def test_beside_a_growing_tenant() -> None:
    Sim.here().device(0).other_used_bytes += 8 << 20
    KEPT.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
