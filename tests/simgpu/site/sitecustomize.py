"""Opens the door to the simulated driver when a child imports CuPy or JAX.

This folder is on PYTHONPATH of the bench's child processes only.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from types import ModuleType


class Doorkeeper(importlib.abc.MetaPathFinder):
    """Acts just before the first import of `cupy`, just after that of JAX's look-out."""

    def find_spec(
        self, name: str, path: object, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find nothing; open the door in passing."""
        if name == "cupy":
            sys.meta_path.remove(self)
            import veosim_door

            veosim_door.open_cupy()
            sys.meta_path.insert(0, self)
        elif name == "jax._src.hardware_utils":
            return self._jax(name)
        return None

    def _jax(self, name: str) -> importlib.machinery.ModuleSpec | None:
        sys.meta_path.remove(self)
        import veosim_door

        module = importlib.import_module(name)
        veosim_door.open_jax(module)
        return module.__spec__


if os.environ.get("VEOSIM_STATE"):
    sys.meta_path.insert(0, Doorkeeper())
