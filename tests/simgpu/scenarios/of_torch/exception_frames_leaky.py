from __future__ import annotations

import torch


ERRORS: list[Exception] = []


def step() -> None:
    batch = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    raise ValueError(f"{batch.numel()} values are no batch")


def test_errors_are_collected() -> None:
    try:
        step()
    except ValueError as error:
        ERRORS.append(error)  # its traceback holds the frame, the frame its locals
