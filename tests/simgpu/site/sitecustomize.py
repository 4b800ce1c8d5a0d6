"""Opens the door to the simulated driver when a child imports CuPy or JAX.

This folder is on PYTHONPATH of the bench's child processes only.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from types import ModuleType


class Doorkeeper(importlib.abc.MetaPathFinder):
    """Acts before the first import of `cupy`, and after that of JAX's look-out."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find CuPy where it is; give JAX's look-out a loader that answers for it."""
        if name == "cupy":
            sys.meta_path.remove(self)  # what the door imports comes through here
            _door().open_cupy()
            sys.meta_path.insert(0, self)
        if name != "jax._src.hardware_utils":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = Opened(spec.loader)
        return spec


class Opened(importlib.abc.Loader):
    """Loads as another loader does, then opens JAX's door."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """As the other does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """As the other does, and then."""
        self._loader.exec_module(module)
        _door().open_jax(module)


def _door() -> ModuleType:
    return importlib.import_module("veosim_door")


if os.environ.get("VEOSIM_STATE"):
    sys.meta_path.insert(0, Doorkeeper())
