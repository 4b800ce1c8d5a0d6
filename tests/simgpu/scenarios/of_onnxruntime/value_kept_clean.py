from __future__ import annotations

import numpy as np
import onnxruntime


def test_input_is_on_the_device() -> None:
    host = np.ones(1 << 20, dtype=np.uint8)
    value = onnxruntime.OrtValue.ortvalue_from_numpy(host, "cuda", 0)
    assert value.device_name() == "cuda"
