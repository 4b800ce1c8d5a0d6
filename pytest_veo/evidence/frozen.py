"""Whether the code under test has put objects aside with `gc.freeze`.

There is no way to thaw some objects only: who unfreezes and finds that a freeze was in
force freezes again, more than before.
"""

from __future__ import annotations

import gc
import sys


_INTERPRETERS_OWN = 5000 if sys.version_info[:2] == (3, 12) else 0
"""CPython 3.12 keeps its immortal objects, some hundreds, with the frozen ones."""


def count() -> int:
    """How many objects are put aside; 0 if only the interpreter's own are."""
    frozen = gc.get_freeze_count()
    return frozen if frozen > _INTERPRETERS_OWN else 0
