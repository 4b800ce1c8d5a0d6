"""Progress bars of what lasts longer than a second, on terminals only."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from collections.abc import Sequence
from typing import TypeVar


T = TypeVar("T")
_SHOWN_AFTER_S = 1.0


def track(items: Sequence[T], label: str) -> Iterable[T]:
    """The items, with a bar on the error stream that tells how many are done.

    Args:
        items: what is worked through.
        label: what is being done, before the bar.
    """
    if not sys.stderr.isatty():
        return items
    try:
        from tqdm import tqdm
    except ImportError:
        return items  # nothing depends on seeing it
    shown: Iterable[T] = tqdm(items, desc=label, delay=_SHOWN_AFTER_S, leave=False)
    return shown
