"""Python code in a child on the simulated devices, for the bench's own tests."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from tests.simgpu.driver import Sim
from tests.simgpu.environments import ROOT


ALLOCATE = """
    import ctypes, os, sys
    from tests.simgpu.driver import Sim
    cuda = ctypes.CDLL("libcudart.so.13")
    pointer = ctypes.c_void_p()
    def allocate(mib):
        assert cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(mib << 20)) == 0
        return pointer.value
"""
"""Begins a child's code: raw allocations of whole MiB."""


def run(sim: Sim, code: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run code, which may import this repository, and wait for its end."""
    environment = sim.environment()
    environment["PYTHONPATH"] += f":{ROOT}"
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**environment, **settings},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
