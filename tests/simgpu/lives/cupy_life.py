"""CuPy's lives: each a script that is played in the `cupy` environments."""

from __future__ import annotations

import importlib
import os

import cupy

from tests.simgpu.driver import CudaCode
from tests.simgpu.lives.stage import Stage
from tests.simgpu.lives.stage import failure
from tests.simgpu.lives.stage import play


MIB = 1 << 20
POOL = cupy.get_default_memory_pool()
PINNED = cupy.get_default_pinned_memory_pool()


def framework(index: int) -> dict[str, int]:
    """What CuPy's default pool says of a device that has a context."""
    import ctypes

    active = ctypes.c_int()
    flags = ctypes.c_uint()
    state = ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxGetState
    if state(index, ctypes.byref(flags), ctypes.byref(active)) or not active.value:
        return {}
    with cupy.cuda.Device(index):
        return {
            "used": POOL.used_bytes(),
            "held": POOL.total_bytes(),
            "free_blocks": POOL.n_free_blocks(),
            "pinned_free_blocks": PINNED.n_free_blocks(),
        }


def block(mib: int) -> cupy.ndarray:
    return cupy.empty(mib * MIB, dtype=cupy.uint8)


def ordinary(stage: Stage) -> None:
    """First use, growth, free, cache, free blocks, OOM, retry."""
    stage.step("imported")
    first = cupy.empty(1, dtype=cupy.uint8)
    stage.step("first use")
    kept = [block(3), block(30), block(30)]
    stage.step("grown")
    kept.pop()
    stage.step("freed into the pool")
    again = block(30)
    stage.step("served from the pool")
    del again
    POOL.free_all_blocks()
    stage.step("free blocks given back")
    failed = failure(lambda: block(8 << 10))
    stage.step("out of memory", failed=failed)
    fault = stage.sim.fail("cupy:malloc", CudaCode.OUT_OF_MEMORY, times=2)
    retried = block(50)
    stage.step("retried after two failures", hits=fault.hits)
    del retried, first
    kept.clear()
    POOL.free_all_blocks()
    stage.step("everything given back")


def two_devices(stage: Stage) -> None:
    """Memory on a second device is that device's alone."""
    first = block(4)
    stage.step("on the first")
    with cupy.cuda.Device(1):
        second = block(24)
    stage.step("on the second too")
    del first
    POOL.free_all_blocks()
    stage.step("off the first")
    del second
    with cupy.cuda.Device(1):
        POOL.free_all_blocks()
    stage.step("off both")


def pinned(stage: Stage) -> None:
    """Pinned host memory has a pool of its own."""
    cupy.cuda.Device(0).use()
    buffer = cupy.cuda.alloc_pinned_memory(3 * MIB)
    stage.step("pinned")
    del buffer
    stage.step("unpinned")
    PINNED.free_all_blocks()
    stage.step("pinned pool emptied")


def stream_arenas(stage: Stage) -> None:
    """Every stream has an arena: one stream's free block serves no other."""
    stream = cupy.cuda.Stream()
    with stream:
        inside = block(8)
    stage.step("in a stream's arena")
    del inside
    stage.step("freed in the stream's arena")
    outside = block(8)
    stage.step("allocated outside")
    POOL.free_all_blocks(stream=stream)
    stage.step("the stream's arena given back")
    del outside
    POOL.free_all_blocks()
    stage.step("everything given back")


def held_events(stage: Stage) -> None:
    """Events wait while they are held, and a synchronise ends the wait."""
    stream = cupy.cuda.Stream()
    with stage.sim.hold_events():
        event = stream.record()
        waiting = event.done
        stream_waiting = stream.done
        stream.synchronize()
        done = event.done
    stage.step(
        "synchronised", waiting=waiting, stream_waiting=stream_waiting, done=done
    )


def hooks(stage: Stage) -> None:
    """A memory hook sees each request, and the driver only where it was asked."""

    class Log(cupy.cuda.MemoryHook):  # type: ignore[misc]
        name = "veosim log"

        def __init__(self) -> None:
            self.asked_pool: list[int] = []
            self.asked_driver: list[int] = []

        def malloc_postprocess(self, **given: int) -> None:
            self.asked_pool.append(given["mem_size"])

        def alloc_postprocess(self, **given: int) -> None:
            self.asked_driver.append(given["mem_size"])

    log = Log()
    with log:
        first = block(2)
        del first
        second = block(2)
    stage.step("two requests", pool=log.asked_pool, driver=log.asked_driver)
    del second


def kernels(stage: Stage) -> None:
    """Kernels are counted and not run; their results have their sizes."""
    before = stage.sim.device(0).launches
    total = (cupy.ones(1000) * 2 + 1).sum()
    launches = stage.sim.device(0).launches - before
    stage.step("launched", launches=launches, shape=list(total.shape))
    del total
    POOL.free_all_blocks()
    stage.step("given back")


def managed(stage: Stage) -> None:
    """Managed memory in a pool of the user's own."""
    pool = cupy.cuda.MemoryPool(cupy.cuda.malloc_managed)
    with cupy.cuda.using_allocator(pool.malloc):
        array = block(6)
    stage.step("allocated", used=pool.used_bytes())
    del array
    pool.free_all_blocks()
    stage.step("given back", used=pool.used_bytes())


def stream_ordered(stage: Stage) -> None:
    """CuPy's asynchronous pool: the driver's own pool does the caching."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # CuPy: experimental
        pool = cupy.cuda.MemoryAsyncPool()
    with cupy.cuda.using_allocator(pool.malloc):
        array = block(6)
    stage.step("allocated", used=pool.used_bytes(), held=pool.total_bytes())
    del array
    stage.step("freed", used=pool.used_bytes(), held=pool.total_bytes())
    pool.free_all_blocks()
    stage.step("given back", used=pool.used_bytes(), held=pool.total_bytes())


def raw_driver(stage: Stage) -> None:
    """Bytes that no pool of CuPy's knows."""
    block(2)
    stage.step("before")
    pointer = cupy.cuda.runtime.malloc(5 * MIB)
    stage.step("raw allocation")
    cupy.cuda.runtime.free(pointer)
    stage.step("raw allocation freed")


def faults(stage: Stage) -> None:
    """Errors are CuPy's own, and leave the books in order."""
    array = block(2)
    stage.step("before")
    seen = {}
    device = cupy.cuda.Device(0)
    for function, code, act in (
        ("cupy:deviceSynchronize", CudaCode.ILLEGAL_ADDRESS, device.synchronize),
        ("cupy:launchKernel", CudaCode.LAUNCH_FAILURE, lambda: array.fill(1)),
        ("cupy:memGetInfo", CudaCode.UNKNOWN, lambda: device.mem_info),
    ):
        stage.sim.fail(function, code, times=1)
        seen[function] = failure(act)
        stage.sim.heal()
    stage.step("after three errors", **seen)


def forked(stage: Stage) -> None:
    """A fork cannot use the parent's devices, and does not move its books."""
    array = block(2)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, failure(lambda: block(1)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    stage.step("after the fork", said=said, kept=array.size)


def gaps(stage: Stage) -> None:
    """What the door leaves to CuPy's own runtime is listed, with its reason."""
    door = importlib.import_module("veosim_door")
    listed = [[gap.module, gap.function, gap.reason] for gap in door.gaps]
    stage.step("imported", gaps=listed)


GROUPS = {
    "pools": (
        ordinary,
        two_devices,
        pinned,
        stream_arenas,
        held_events,
        hooks,
        kernels,
        managed,
        stream_ordered,
        raw_driver,
        faults,
        forked,
        gaps,
    ),
}

if __name__ == "__main__":
    play(framework, ("cupy", "nvml"), GROUPS)
