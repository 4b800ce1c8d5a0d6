"""How the simulated driver keeps its books: who has what, and when it shows."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest

from tests.simgpu.children import ALLOCATE
from tests.simgpu.children import run
from tests.simgpu.driver import CudaCode
from tests.simgpu.driver import Sim
from tests.simgpu.environments import ROOT


pytestmark = pytest.mark.sim


MIB = 1 << 20
CONTEXT = 300 * MIB

HOLD_LOCK_AND_DIE = """
    import os, signal
    from tests.simgpu.driver import Sim
    sim = Sim.here()
    with sim.locked():
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_lock_survives_its_owners_death(sim: Sim) -> None:
    child = run(sim, HOLD_LOCK_AND_DIE)
    assert child.returncode == -signal.SIGKILL
    sim.fail("cuInit", CudaCode.UNKNOWN)  # takes the lock
    assert sim.state.armed == 1


def test_a_killed_process_gives_its_memory_back(sim: Sim) -> None:
    code = ALLOCATE + "    allocate(64); print('up', flush=True); sys.stdin.read()"
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**sim.environment(), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        assert sim.process_bytes(child.pid) == CONTEXT + 64 * MIB
        child.kill()
    assert sim.process_bytes(child.pid) == 0


def test_an_exec_gives_the_old_images_memory_back(sim: Sim) -> None:
    code = (
        ALLOCATE
        + """
    import os
    if len(sys.argv) == 1:
        allocate(64)
        os.execv(sys.executable, [sys.executable, "-c", CODE, "again"])
    allocate(2)
    from tests.simgpu.driver import Sim
    print(Sim.here().process_bytes(os.getpid()))
"""
    )
    code = textwrap.dedent(code)
    code = code.replace("CODE", repr(code))
    child = run(sim, code)
    assert child.stdout == f"{CONTEXT + 2 * MIB}\n", child.stderr


def test_small_allocations_are_charged_by_the_granule(sim: Sim) -> None:
    code = (
        ALLOCATE
        + """
    import os
    from tests.simgpu.driver import Sim
    sim, pointers = Sim.here(), []
    for _ in range(3):
        assert cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 20)) == 0
        pointers.append(pointer.value)
        row = sim.process(os.getpid())
        print(row.used_bytes - row.context_bytes, row.requested_bytes)
    for one in pointers:
        assert cuda.cudaFree(ctypes.c_void_p(one)) == 0
    row = sim.process(os.getpid())
    print(row.used_bytes - row.context_bytes, row.requested_bytes)
    print(cuda.cudaFree(ctypes.c_void_p(pointers[0])))
"""
    )
    child = run(sim, code)
    assert child.stdout.splitlines() == [
        f"{2 * MIB} {1 * MIB}",
        f"{2 * MIB} {2 * MIB}",
        f"{4 * MIB} {3 * MIB}",
        "0 0",
        "1",  # freed twice: invalid value
    ], child.stderr


FREE_AND_LOOK = (
    ALLOCATE
    + """
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    def used():
        assert cuda.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)) == 0
        return (total.value - free.value) >> 20
    cuda.cudaFree(ctypes.c_void_p(allocate(64)))
    print([used() for _ in range(5)])
    print(allocate(8 * 1024 - 300 - 256) > 0)
"""
)
HELD, FREE = 256 + 300 + 64, 256 + 300


def test_a_free_shows_at_once(sim: Sim) -> None:
    assert run(sim, FREE_AND_LOOK).stdout == f"{[FREE] * 5}\nTrue\n"


def test_a_delayed_free_shows_after_some_queries(sim: Sim) -> None:
    sim.delay_frees(queries=3)
    # the memory itself is free at once: the driver's counters are late
    assert run(sim, FREE_AND_LOOK).stdout == f"{[HELD] * 3 + [FREE] * 2}\nTrue\n"


def test_a_delayed_free_shows_after_some_time(sim: Sim) -> None:
    sim.delay_frees(ms=3_600_000)
    assert run(sim, FREE_AND_LOOK).stdout == f"{[HELD] * 5}\nTrue\n"


def test_other_tenants_take_memory_away(sim: Sim) -> None:
    sim.device(0).other_used_bytes = 7 << 30
    child = run(sim, ALLOCATE + "    allocate(1024)")
    assert child.returncode == 1
    assert "AssertionError" in child.stderr


def test_a_context_that_does_not_fit_is_out_of_memory(sim: Sim) -> None:
    sim.device(0).other_used_bytes = (8 << 30) - 300 * MIB
    code = "import ctypes; print(ctypes.CDLL('libcudart.so.13').cudaFree(None))"
    assert run(sim, code).stdout == "2\n"


def test_a_reset_device_has_nothing_of_the_process(sim: Sim) -> None:
    code = (
        ALLOCATE
        + """
    import os
    from tests.simgpu.driver import Sim
    allocate(64)
    assert cuda.cudaDeviceReset() == 0
    print(Sim.here().process_bytes(os.getpid()))
    allocate(2)
    print(Sim.here().process_bytes(os.getpid()) >> 20)
"""
    )
    child = run(sim, code)
    assert child.stdout == "0\n302\n", child.stderr


def test_the_driver_waits_for_its_initialisation(sim: Sim) -> None:
    code = """
        import ctypes
        cuda, n = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
        print(cuda.cuDeviceGetCount(ctypes.byref(n)), cuda.cuInit(0))
        print(cuda.cuDeviceGetCount(ctypes.byref(n)), n.value)
    """
    assert run(sim, code).stdout == "3 0\n0 2\n"


def test_a_lost_device_fails_cuda_too(sim: Sim) -> None:
    sim.device(0).lost = 1
    code = """
        import ctypes
        cuda = ctypes.CDLL("libcudart.so.13")
        print(cuda.cudaDeviceSynchronize(), cuda.cudaGetLastError())
    """
    assert run(sim, code).stdout == f"{CudaCode.UNKNOWN:d} {CudaCode.UNKNOWN:d}\n"


def test_an_integrated_device_says_so_in_its_attributes(sim: Sim) -> None:
    sim.device(1).integrated = 1
    code = """
        import ctypes
        cuda, v = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
        cuda.cuInit(0)
        print([cuda.cuDeviceGetAttribute(ctypes.byref(v), 18, d) or v.value
               for d in range(2)])
    """
    assert run(sim, code).stdout == "[0, 1]\n"


def test_device_memory_is_no_private_memory_of_the_host(sim: Sim) -> None:
    code = (
        ALLOCATE
        + """
    def statm():
        return [int(word) * 4096 for word in open("/proc/self/statm").read().split()]
    kept = [allocate(1)]
    size, resident, *_, data, _ = statm()
    kept += [allocate(512) for _ in range(4)]
    print([abs(after - before) < 1 << 20
           for before, after in zip((size, resident), statm())], statm()[5] == data)
"""
    )
    # neither resident nor private nor, after the context, more address space
    assert run(sim, code).stdout == "[True, True] True\n"


def test_addresses_are_given_back_and_used_again(sim: Sim) -> None:
    code = (
        ALLOCATE
        + """
    kept = {allocate(mib): mib for mib in (1, 2, 64, 3, 200)}
    assert len(kept) == 5
    ctypes.memset(min(kept), 7, 1 << 20)
    first = min(kept)
    for one in kept:
        assert cuda.cudaFree(ctypes.c_void_p(one)) == 0
    again = allocate(270)
    print(again - first < 2 << 20, ctypes.string_at(first, 4))
"""
    )
    # the range is whole again (large blocks begin at a granule) and holds no past
    assert run(sim, code).stdout == f"True {bytes(4)!r}\n"
