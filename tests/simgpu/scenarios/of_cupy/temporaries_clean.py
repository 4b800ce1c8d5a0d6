from __future__ import annotations

import cupy


def test_expression_has_its_shape() -> None:
    assert (cupy.ones(1 << 17) * 2 + 1).shape == (1 << 17,)
