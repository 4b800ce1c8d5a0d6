"""Leaks of device memory, each found with `pytest --veo-leak-check`.

    pytest --veo-leak-check examples/evidence_gpu

Needs PyTorch and a CUDA device. A simulated one will do: nothing here looks at what
the device has computed.
"""

from __future__ import annotations

import pytest


torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

FRAMES = []
BACKBONE = torch.nn.Linear(8, 8)


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(256, 256, device="cuda"))


def test_frame_is_kept_for_later():
    FRAMES.append(torch.empty(3, 480, 640, device="cuda"))
    assert FRAMES[-1].shape == (3, 480, 640)


def test_hook_of_a_head_stays():
    head = Head()
    BACKBONE.register_forward_hook(lambda *_: head)
    assert head.weight.is_cuda


def test_clean_twin_of_the_hook():
    head = Head()
    handle = BACKBONE.register_forward_hook(lambda *_: head)
    handle.remove()
    assert head.weight.is_cuda
