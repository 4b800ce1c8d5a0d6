"""What all tests of pure parts share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _small_heap() -> Iterator[None]:
    """Put aside what earlier tests made: collecting after each run is cheap then."""
    gc.freeze()
    yield
    gc.unfreeze()
