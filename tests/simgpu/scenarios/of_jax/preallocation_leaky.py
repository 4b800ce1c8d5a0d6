from __future__ import annotations

import jax
import numpy as np


KEPT: list[jax.Array] = []


def test_array_is_on_the_device() -> None:
    KEPT.append(jax.device_put(np.zeros(1 << 20, dtype=np.uint8)))
