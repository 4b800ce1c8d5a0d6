from __future__ import annotations

import torch

from tests.simgpu.driver import NvmlCode
from tests.simgpu.driver import Sim


def test_before() -> None:
    torch.empty(1 << 20, dtype=torch.uint8, device="cuda")


def test_nvml_stops_answering() -> None:
    Sim.here().heal()
    for function in (
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetComputeRunningProcesses_v3",
    ):
        Sim.here().fail(function, NvmlCode.UNKNOWN)
    torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
