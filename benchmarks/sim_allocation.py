"""Cost of one cached allocation and its release, bare and recorded.

    python benchmarks/sim_allocation.py [torch] [cupy] [cupy13]

What the evidence run pays for each allocation: PyTorch's memory history, and
`tracemalloc_ext` through CuPy's allocator (marks: at most 10 us at one frame, 25 us at
25). The allocators are real, over the simulated driver. CuPy's figures are of
processor time.
"""

from __future__ import annotations

import argparse
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
    """CuPy's memory pool, hooks that do nothing, and `tracemalloc_ext`."""
    import cupy

    from benchmarks.sim_gate import cpu_us
    from pytest_veo import tracemalloc_ext

    class Nothing(cupy.cuda.MemoryHook):  # type: ignore[misc]
        name = "benchmark"

    def allocate() -> None:
        cupy.cuda.alloc(1000)

    def timed() -> float:
        return cpu_us(allocate)

    allocate()
    print(f"  bare               {deep(timed):7.2f} us")
    for frames in (1, 10, FRAMES):
        tracemalloc.start(frames)
        python_only = deep(timed)
        with Nothing():
            hooked = deep(timed)
        tracemalloc.stop()
        tracemalloc_ext.start(frames)
        tracked = deep(timed)
        tracemalloc_ext.stop()
        print(
            f"  {frames:2} frames: tracking adds {tracked - python_only:6.2f} us; "
            f"CuPy's hooks, doing nothing, would add {hooked - python_only:6.2f} us"
        )
    print(f"  after stop         {deep(timed):7.2f} us")


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
