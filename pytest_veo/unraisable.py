"""What collecting brings to light between tests is not the next test's.

Python cannot raise what a finalizer raises (an unclosed file, where warnings are
errors); pytest queues it and tells it in whichever phase comes next. We collect
after a test, so the next one would be blamed for the last one's garbage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any


if TYPE_CHECKING:
    from collections import deque

    import pytest


class Unraisable:
    """Pytest's queue of one session, told at the right time."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.queue = queue_of(config)
        self._kept: list[Any] = []

    def tell(self) -> None:
        """Tell what is queued as warnings of the test that has just ended.

        Those that are errors wait for the session's end, where pytest collects for
        the last time and tells them itself.
        """
        if not self.queue:
            return
        from _pytest.unraisableexception import collect_unraisable

        queued = list(self.queue)
        try:
            collect_unraisable(self._config)
        except Exception:  # whatever the filters make of them
            self._kept += queued

    def give_back(self) -> None:
        """Queue again what waited."""
        if self.queue is not None:
            self.queue.extend(self._kept)
        self._kept.clear()


def queue_of(config: pytest.Config) -> deque[Any] | None:
    """Pytest's queue; None where there is none (before pytest 8.4)."""
    try:
        from _pytest.unraisableexception import unraisable_exceptions
    except ImportError:
        return None
    return config.stash.get(unraisable_exceptions, None)
