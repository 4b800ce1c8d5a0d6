from __future__ import annotations

import torch


MODEL = torch.nn.Identity()


def test_activations_are_seen() -> None:
    seen: list[torch.Tensor] = []
    MODEL.register_forward_hook(lambda module, args, out: seen.append(out))
    MODEL(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
    assert len(seen) == 1
