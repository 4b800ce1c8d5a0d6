from __future__ import annotations

import itertools

import torch

from tests.simgpu.driver import Sim


KEPT: list[torch.Tensor] = []
TENANT_MIB = itertools.cycle((0, 64, 512, 128, 1024))


def test_beside_another_tenant() -> None:
    Sim.here().device(0).other_used_bytes = next(TENANT_MIB) << 20
    KEPT.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
