"""Letting go of what a failed test's traceback holds.

A failure keeps its frames, and with them every local: pytest in `sys.last_*`, other
plugins in their own lists, some until the session ends. Clearing the frames frees
the locals and leaves the exception, its text and its traceback as they are.

On CPython 3.11 and 3.12 pytest has made `f_locals` a dictionary already, which
`frame.clear()` leaves alone; reading `f_locals` once more empties it.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from collections.abc import Iterator


def release_frames(error: BaseException) -> None:
    """Clear the frames of an exception and of all that it is linked with."""
    for linked in _linked(error):
        trace = linked.__traceback__
        traceback.clear_frames(trace)
        while trace is not None:
            _ = trace.tb_frame.f_locals
            trace = trace.tb_next


def _linked(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        waiting += (current.__cause__, current.__context__)
        if isinstance(current, BaseExceptionGroup):
            waiting += current.exceptions
