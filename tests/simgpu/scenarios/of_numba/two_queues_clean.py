from __future__ import annotations

import numpy as np
from numba import cuda


def test_array_is_used() -> None:
    # its free waits in the memory manager's queue, not in the context's
    assert cuda.device_array(4 << 20, dtype=np.uint8).size == 4 << 20
