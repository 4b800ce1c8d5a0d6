"""Cost of one cached allocation and its release, bare and recorded.

    python benchmarks/sim_allocation.py [torch] [cupy] [cupy13]

What the evidence run pays for each allocation: PyTorch's memory history, CuPy's
memory hook with a tracked trace. The allocators are real, over the simulated driver.
"""

from __future__ import annotations

import argparse
import ctypes
import pathlib
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable


ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

FRAMES = 25
DEPTH = 40
DOMAIN = 0x5E0
"""A tracemalloc domain of this file's own."""


def deep(act: Callable[[], float], depth: int = DEPTH) -> float:
    """`act`, called from a stack as deep as a test's."""
    return deep(act, depth - 1) if depth else act()


def in_torch() -> None:
    """PyTorch's caching allocator, and its history."""
    import torch

    from benchmarks.sim_gate import time_us

    def allocate() -> None:
        torch.empty(1000, device="cuda")

    def timed() -> float:
        return time_us(allocate)

    allocate()
    print(f"  bare               {deep(timed):7.2f} us")
    for stacks in ("python", "all"):
        torch.cuda.memory._record_memory_history(
            enabled="state", context="alloc", stacks=stacks, max_entries=10_000
        )
        print(f"  history, {stacks:9} {deep(timed):7.2f} us")
        torch.cuda.memory._record_memory_history(enabled=None)


def in_cupy() -> None:
    """CuPy's memory pool, a hook, and a hook that tracks."""
    import cupy

    from benchmarks.sim_gate import time_us

    track = ctypes.pythonapi.PyTraceMalloc_Track
    track.argtypes = [ctypes.c_uint, ctypes.c_size_t, ctypes.c_size_t]
    untrack = ctypes.pythonapi.PyTraceMalloc_Untrack
    untrack.argtypes = [ctypes.c_uint, ctypes.c_size_t]

    class Trace(cupy.cuda.MemoryHook):  # type: ignore[misc]
        name = "benchmark"

        def malloc_postprocess(self, **given: int) -> None:
            track(DOMAIN, given["mem_ptr"], given["mem_size"])

        def free_postprocess(self, **given: int) -> None:
            untrack(DOMAIN, given["mem_ptr"])

    def allocate() -> None:
        cupy.empty(1000)

    def timed() -> float:
        return time_us(allocate)

    allocate()
    print(f"  bare               {deep(timed):7.2f} us")
    with Trace():
        print(f"  hook, not tracing  {deep(timed):7.2f} us")
        for frames in (1, FRAMES):
            tracemalloc.start(frames)
            print(f"  hook, {frames:2} frames    {deep(timed):7.2f} us")
            tracemalloc.stop()


def measure(name: str) -> None:
    """One environment's table."""
    from tests.simgpu import build
    from tests.simgpu import contract
    from tests.simgpu import environments
    from tests.simgpu.driver import Sim

    environment = environments.find(name)
    libraries = build.build(environments.client(environment, name.removesuffix("13")))
    with tempfile.TemporaryDirectory() as folder:
        sim = Sim.create(pathlib.Path(folder) / "state", libraries)
        print(
            f"{name}: one allocation and its release, {DEPTH} frames deep", flush=True
        )
        subprocess.run(
            [str(environment.python), __file__, "--child", name.removesuffix("13")],
            env=contract.child_environment(sim),
            check=True,
        )
        sim.close()


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environments", nargs="*", default=["torch", "cupy"])
    parser.add_argument("--child", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        {"torch": in_torch, "cupy": in_cupy}[chosen.child]()
        return
    for name in chosen.environments:
        measure(name)


if __name__ == "__main__":
    main()
