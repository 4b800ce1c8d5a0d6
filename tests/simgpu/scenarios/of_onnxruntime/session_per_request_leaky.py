from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime

from tests.simgpu.scenarios.onnx_model import MODEL


SESSIONS: list[Any] = []
PROVIDERS = ["CUDAExecutionProvider"]


def test_request_is_served() -> None:
    session = onnxruntime.InferenceSession(MODEL, providers=PROVIDERS)
    (answer,) = session.run(None, {"x": np.ones(1000, dtype=np.float32)})
    assert answer.shape == (1000,)
    SESSIONS.append(session)
