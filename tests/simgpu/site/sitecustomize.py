"""Opens the door to the simulated driver when a child imports CuPy or JAX.

This folder is on PYTHONPATH of the bench's child processes only.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from types import ModuleType


class Doorkeeper(importlib.abc.MetaPathFinder):
    """Acts before the first import of `cupy`, and after that of JAX's look-out."""

    def find_spec(
        self, name: str, path: object, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find nothing; open the door in passing."""
        if name == "cupy":
            sys.meta_path.remove(self)
            _door().open_cupy()
            sys.meta_path.insert(0, self)
        elif name == "jax._src.hardware_utils":
            return self._jax(name)
        return None

    def _jax(self, name: str) -> importlib.machinery.ModuleSpec | None:
        sys.meta_path.remove(self)
        module = importlib.import_module(name)
        _door().open_jax(module)
        return module.__spec__


def _door() -> ModuleType:
    return importlib.import_module("veosim_door")


if os.environ.get("VEOSIM_STATE"):
    sys.meta_path.insert(0, Doorkeeper())
