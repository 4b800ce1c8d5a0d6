from __future__ import annotations

import numpy as np
import onnxruntime

from tests.simgpu.scenarios.onnx_model import MODEL


SESSION = onnxruntime.InferenceSession(MODEL, providers=["CUDAExecutionProvider"])


def test_arena_grows_and_shrinks() -> None:
    SESSION.run(None, {"x": np.ones(4 << 20, dtype=np.float32)})
    options = onnxruntime.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "gpu:0")
    SESSION.run(None, {"x": np.ones(10, dtype=np.float32)}, options)
