from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import settings


# `tests.frames.shapes` is imported by its full name, which needs the root.
ROOT = str(Path(__file__).parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

# A loaded machine is slow, and that is no failure of the code under test.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
