from __future__ import annotations

import cupy


KEPT: list[cupy.ndarray] = []


def test_expression_has_its_shape() -> None:
    KEPT.append(cupy.ones(1 << 17) * 2 + 1)  # its temporaries go back to the pool
    assert KEPT[-1].shape == (1 << 17,)
