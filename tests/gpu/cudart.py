"""Loads CUDA 12's runtime from NVIDIA's wheel where the loader does not know it.

RMM has its own inside; the resource of the scenarios asks for it by its name, and
finds what is loaded already.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import pathlib


def _from_the_wheel() -> None:
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for path in pathlib.Path(place).glob("cuda_runtime/lib/libcudart.so.12"):
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


# where neither has it, the scenario's own import names the library that is missing
with contextlib.suppress(OSError):
    _from_the_wheel()
