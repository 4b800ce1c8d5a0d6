from __future__ import annotations

import rmm

from tests.simgpu.scenarios.rmm_resource import RESOURCE


def test_buffer_is_used() -> None:
    buffer = rmm.DeviceBuffer(size=1 << 20, mr=RESOURCE)
    assert buffer.size == 1 << 20
