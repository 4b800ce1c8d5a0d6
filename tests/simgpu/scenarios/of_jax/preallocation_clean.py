from __future__ import annotations

import jax
import numpy as np


def test_array_is_on_the_device() -> None:
    assert jax.device_put(np.zeros(1 << 20, dtype=np.uint8)).nbytes == 1 << 20
