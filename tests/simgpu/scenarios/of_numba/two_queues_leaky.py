from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda


KEPT: list[Any] = []


def test_array_is_used() -> None:
    cuda.device_array(4 << 20, dtype=np.uint8)
    KEPT.append(cuda.device_array(1 << 20, dtype=np.uint8))
