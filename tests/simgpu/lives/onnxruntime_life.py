"""ONNX Runtime's life: an arena for each session, which grows and can be shrunk."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import onnxruntime

from tests.simgpu.lives.stage import Stage
from tests.simgpu.lives.stage import failure
from tests.simgpu.lives.stage import play
from tests.simgpu.scenarios.onnx_model import MODEL


MIB = 1 << 20
PROVIDER = "CUDAExecutionProvider"


def framework(index: int) -> dict[str, int]:
    """What can be counted: sessions and values; the arena tells Python nothing."""
    kinds = {
        "sessions": onnxruntime.InferenceSession,
        "values": onnxruntime.OrtValue,
    }
    objects = gc.get_objects()
    return {
        name: sum(type(one) is kind for one in objects)
        for name, kind in kinds.items()
        if index == 0
    }


def session(**options: str) -> Any:
    return onnxruntime.InferenceSession(MODEL, providers=[(PROVIDER, options)])


def feed(mib: float) -> dict[str, Any]:
    return {"x": np.ones(int(mib * MIB) // 4, dtype=np.float32)}


def ordinary(stage: Stage) -> None:
    """A session, a run that grows its arena, the arena shrunk, the session gone."""
    stage.step("imported")
    kept = session()
    stage.step("session")
    kept.run(None, feed(0.001))
    stage.step("small run")
    kept.run(None, feed(16))
    stage.step("large run")
    kept.run(None, feed(16))
    stage.step("large run again")
    options = onnxruntime.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "gpu:0")
    kept.run(None, feed(0.001), options)
    stage.step("arena shrunk")
    del kept
    gc.collect()
    stage.step("session gone")


def values(stage: Stage) -> None:
    """Values of the user's own on the device."""
    host = np.ones(4 * MIB, dtype=np.uint8)
    value = onnxruntime.OrtValue.ortvalue_from_numpy(host, "cuda", 0)
    stage.step("value", place=value.device_name())
    del value
    gc.collect()
    stage.step("value gone")


def limited(stage: Stage) -> None:
    """A limit of the session's own ends a run with ONNX Runtime's error."""
    kept = session(gpu_mem_limit=str(8 * MIB))
    failed = failure(lambda: kept.run(None, feed(16)))
    stage.step("over the limit", failed=failed)


GROUPS = {"main": (ordinary, values, limited)}

if __name__ == "__main__":
    play(framework, ("onnxruntime", "nvml"), GROUPS)
