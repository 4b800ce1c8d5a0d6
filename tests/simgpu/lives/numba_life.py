"""Numba's life: its memory manager, and the two queues in which frees wait."""

from __future__ import annotations

import os

import numpy as np
from numba import cuda

from tests.simgpu.driver import CudaCode
from tests.simgpu.lives.stage import Stage
from tests.simgpu.lives.stage import failure
from tests.simgpu.lives.stage import play


MIB = 1 << 20


def framework(index: int) -> dict[str, int]:
    """What Numba says of a device on which it has made a context."""
    from numba.cuda.cudadrv.driver import driver

    device = driver.devices.get(index)
    context = device.primary_context if device else None
    if context is None:
        return {}
    manager = context.memory_manager
    return {
        "allocated": sum(int(one.size) for one in manager.allocations.values()),
        "allocations": len(manager.allocations),
        "waiting": len(manager.deallocations),
        "waiting_others": len(context.deallocations),
    }


def array(mib: int) -> cuda.cudadrv.devicearray.DeviceNDArray:
    return cuda.device_array(mib * MIB, dtype=np.uint8)


def ordinary(stage: Stage) -> None:
    """First use, growth, a free that waits, the right queue and the wrong one."""
    stage.step("imported")
    context = cuda.current_context()
    stage.step("context")
    kept = [array(4), array(30)]
    stage.step("grown")
    kept.pop()
    stage.step("freed, the free waits")
    context.deallocations.clear()
    stage.step("the other queue cleared")
    context.memory_manager.deallocations.clear()
    stage.step("its own queue cleared")
    failed = failure(lambda: array(8 << 10))
    stage.step("out of memory", failed=failed)
    fault = stage.sim.fail("cuMemAlloc_v2", CudaCode.OUT_OF_MEMORY, times=1)
    kept.append(array(2))
    stage.step("retried after one failure", hits=fault.hits)
    kept.clear()
    context.memory_manager.deallocations.clear()
    stage.step("everything given back")


def many_frees(stage: Stage) -> None:
    """The queue empties itself when it is long."""
    cuda.current_context()
    seen = []
    for _ in range(12):
        array(2)
        row = stage.sim.process(os.getpid())
        seen.append((row.used_bytes - row.context_bytes) // MIB if row else 0)
    stage.step("twelve arrays", charged_mib=seen)


def pinned(stage: Stage) -> None:
    """Pinned host memory."""
    context = cuda.current_context()
    buffer = cuda.pinned_array(3 * MIB, dtype=np.uint8)
    stage.step("pinned")
    del buffer
    context.memory_manager.deallocations.clear()
    stage.step("unpinned")


GROUPS = {"main": (ordinary, many_frees, pinned)}

if __name__ == "__main__":
    play(framework, ("numba", "nvml"), GROUPS)
