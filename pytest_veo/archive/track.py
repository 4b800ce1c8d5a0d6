"""How far a loop has come, shown by whoever asks for it."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Protocol
from typing import TypeVar


T = TypeVar("T")


class Track(Protocol):
    """Gives the items of a sequence, and shows how many are done."""

    def __call__(self, items: Sequence[T], label: str, /) -> Iterable[T]:
        """Go through the items; `label` tells what is being done."""


def no_track(items: Sequence[T], _label: str) -> Iterable[T]:
    """Shows nothing."""
    return items
