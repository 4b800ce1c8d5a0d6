"""JAX's life: an arena that takes most of the device at first use and keeps it."""

from __future__ import annotations

import time

import jax
import numpy as np

from tests.simgpu.lives.stage import Stage
from tests.simgpu.lives.stage import play


MIB = 1 << 20


def framework(index: int) -> dict[str, int]:
    """What JAX says of a device, once its backend is initialised."""
    import jax._src.xla_bridge as bridge

    backend = bridge._backends.get("cuda")
    if backend is None:
        return {}
    device = backend.local_devices()[index]
    stats = device.memory_stats()
    live = [one for one in backend.live_arrays() if one.devices() == {device}]
    return {
        "allocated": stats["bytes_in_use"],
        "held": stats["pool_bytes"],
        "arrays": len(live),
        "array_bytes": sum(one.nbytes for one in live),
    }


def settle() -> None:
    """JAX gives a block back a little after its array: wait, not for long."""
    deadline = time.monotonic() + 10
    for index in range(2):
        while time.monotonic() < deadline:
            seen = framework(index)
            if seen["allocated"] == seen["array_bytes"]:
                break
            time.sleep(0.002)


def array(mib: int, device: int = 0) -> jax.Array:
    host = np.zeros(mib * MIB, dtype=np.uint8)
    return jax.device_put(host, jax.devices()[device]).block_until_ready()


def ordinary(stage: Stage) -> None:
    """Preallocation, growth and free: the driver sees the first step only."""
    stage.step("imported")
    jax.devices()
    stage.step("backend")
    kept = [array(1)]
    stage.step("first array")
    kept.append(array(30))
    stage.step("grown")
    kept.pop()
    settle()
    stage.step("freed")
    kept.append(array(4, device=1))
    stage.step("on the second device")
    kept.clear()
    settle()
    stage.step("everything freed")


GROUPS = {"main": (ordinary,)}

if __name__ == "__main__":
    play(framework, ("jax", "nvml"), GROUPS)
