from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.simgpu.driver import Sim


OTHER = torch.cuda.Stream()


@pytest.fixture(scope="module", autouse=True)
def busy_device() -> Iterator[None]:
    with Sim.here().hold_events():
        yield


def test_batch_goes_to_another_stream() -> None:
    batch = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    batch.record_stream(OTHER)  # comes back when the other stream is done
