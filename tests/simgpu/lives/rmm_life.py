"""RMM's life: its statistics, over a resource that asks the simulated driver."""

from __future__ import annotations

import rmm

from tests.simgpu.lives.stage import Stage
from tests.simgpu.lives.stage import play
from tests.simgpu.scenarios.rmm_resource import RESOURCE


MIB = 1 << 20


def framework(index: int) -> dict[str, int]:
    """What the counting adaptor says; it serves the first device."""
    if index:
        return {}
    counts = RESOURCE.allocation_counts
    return {"allocated": counts.current_bytes, "allocations": counts.current_count}


def ordinary(stage: Stage) -> None:
    """Buffers come and go."""
    stage.step("imported")
    kept = [rmm.DeviceBuffer(size=4 * MIB, mr=RESOURCE)]
    stage.step("one buffer")
    kept.append(rmm.DeviceBuffer(size=30 * MIB, mr=RESOURCE))
    stage.step("two buffers")
    kept.clear()
    stage.step("everything given back")


GROUPS = {"main": (ordinary,)}

if __name__ == "__main__":
    play(framework, ("rmm", "nvml"), GROUPS)
