from __future__ import annotations

import sys
from pathlib import Path


# `tests.frames.shapes` is imported by its full name, which needs the root.
ROOT = str(Path(__file__).parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)
