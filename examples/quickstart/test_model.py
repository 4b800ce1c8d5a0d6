"""A fixture that stands for a whole module, and what it is charged with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from thumbnails import Model


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    """Set up once: its memory is booked on the fixture, not on the first test."""
    loaded = Model()
    yield loaded
    loaded.close()


def test_scores(model: Model) -> None:
    """Clean: the model is the fixture's, and the fixture gives it back."""
    assert model.score(bytearray(1000)) == 0
