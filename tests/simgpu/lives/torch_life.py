"""PyTorch's lives: each a script that is played in the `torch` environment."""

from __future__ import annotations

import gc
import os

import torch

from tests.simgpu.driver import CudaCode
from tests.simgpu.lives.stage import Stage
from tests.simgpu.lives.stage import failure
from tests.simgpu.lives.stage import play


MIB = 1 << 20


def framework(index: int) -> dict[str, int]:
    """What torch says of itself; nothing before it is initialised."""
    if not torch.cuda.is_initialized():
        return {}
    stats = torch.cuda.memory_stats(index)
    return {
        "allocated": torch.cuda.memory_allocated(index),
        "reserved": torch.cuda.memory_reserved(index),
        "active": stats["active_bytes.all.current"],
        "allocations": stats["allocation.all.current"],
        "ooms": stats["num_ooms"],
        "retries": stats["num_alloc_retries"],
        "pinned": torch.cuda.host_memory_stats().get("active_bytes.current", 0),
        "pinned_held": torch.cuda.host_memory_stats().get("allocated_bytes.current", 0),
    }


def block(mib: int, device: str = "cuda:0") -> torch.Tensor:
    return torch.empty(mib * MIB, dtype=torch.uint8, device=device)


def ordinary(stage: Stage) -> None:
    """First use, growth, free, cache, empty cache, OOM, retry."""
    stage.step("imported")
    torch.cuda.init()
    first = torch.empty(1, device="cuda")
    stage.step("first use")
    kept = [block(3), block(30), block(30)]
    stage.step("grown")
    kept.pop()
    stage.step("freed into the cache")
    again = block(30)
    stage.step("served from the cache")
    del again
    torch.cuda.empty_cache()
    stage.step("cache emptied")
    failed = failure(lambda: block(8 << 10))
    stage.step("out of memory", failed=failed)
    fault = stage.sim.fail("cudaMalloc", CudaCode.OUT_OF_MEMORY, times=1)
    retried = block(50)
    stage.step("retried after one failure", hits=fault.hits)
    del retried, first
    kept.clear()
    gc.collect()
    torch.cuda.empty_cache()
    stage.step("everything given back")


def two_devices(stage: Stage) -> None:
    """Memory on a second device is that device's alone."""
    first = block(4)
    stage.step("on the first")
    second = block(24, "cuda:1")
    stage.step("on the second too")
    del first
    torch.cuda.empty_cache()
    stage.step("off the first")
    del second
    torch.cuda.empty_cache()
    stage.step("off both")


def pinned(stage: Stage) -> None:
    """Pinned host memory: its own allocator, with a cache of its own."""
    torch.cuda.init()
    buffer = torch.empty(3 * MIB, dtype=torch.uint8).pin_memory()
    stage.step("pinned", is_pinned=buffer.is_pinned())
    del buffer
    stage.step("unpinned")
    torch._C._host_emptyCache()
    stage.step("host cache emptied")


def held_stream(stage: Stage) -> None:
    """A block that another stream still uses comes back when that is done."""
    other = torch.cuda.Stream()
    tensor = block(8)
    tensor.record_stream(other)
    stage.step("in use by two streams")
    with stage.sim.hold_events():
        del tensor
        stage.step("freed while the other works")
    torch.empty(1, device="cuda")  # the allocator looks at its events when it is asked
    stage.step("the other is done")


def synchronised_stream(stage: Stage) -> None:
    """Synchronising is enough: work up to it is done although events are held."""
    other = torch.cuda.Stream()
    tensor = block(8)
    tensor.record_stream(other)
    with stage.sim.hold_events():
        del tensor
        stage.step("freed while the other works")
        torch.cuda.synchronize()
        torch.empty(1, device="cuda")
        stage.step("synchronised")


def private_pool(stage: Stage) -> None:
    """A graph's pool stays reserved as long as the graph, and no longer."""
    block(1)
    stage.step("before")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        inside = block(4)
    stage.step("captured", launches=stage.sim.device(0).launches)
    graph.replay()
    del inside
    torch.cuda.empty_cache()
    stage.step("tensor gone, graph kept")
    del graph
    torch.cuda.empty_cache()
    stage.step("graph gone")


def memory_pool(stage: Stage) -> None:
    """A `MemPool` of the user's own."""
    torch.cuda.init()
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = block(6)
    stage.step("allocated in a pool")
    del inside
    stage.step("freed in the pool")
    del pool
    torch.cuda.empty_cache()
    stage.step("pool gone")


def training(stage: Stage) -> None:
    """A training loop: workspaces and optimiser state come once, then nothing."""
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)
    ).cuda()
    optimiser = torch.optim.Adam(model.parameters())
    stage.step("model")
    for turn in range(3):
        optimiser.zero_grad()
        output = model(torch.zeros(128, 256, device="cuda"))
        target = torch.zeros(128, dtype=torch.long, device="cuda")
        loss = torch.nn.functional.cross_entropy(output, target)
        loss.backward()
        optimiser.step()
        del output, target, loss
        stage.step(f"turn {turn}")


def raw_driver(stage: Stage) -> None:
    """Bytes that no allocator of torch's knows."""
    import ctypes

    block(1)
    stage.step("before")
    runtime = ctypes.CDLL("libcudart.so.13")
    pointer = ctypes.c_void_p()
    runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(5 * MIB))
    stage.step("raw allocation")
    runtime.cudaFree(pointer)
    stage.step("raw allocation freed")


def faults(stage: Stage) -> None:
    """Errors are torch's own, and leave the books in order."""
    torch.cuda.init()
    tensor = block(2)
    stage.step("before")
    seen = {}
    for function, code, act in (
        ("cudaDeviceSynchronize", CudaCode.ILLEGAL_ADDRESS, torch.cuda.synchronize),
        ("cudaLaunchKernel", CudaCode.LAUNCH_FAILURE, lambda: tensor.fill_(1)),
        ("cudaMemGetInfo", CudaCode.UNKNOWN, torch.cuda.mem_get_info),
    ):
        stage.sim.fail(function, code, times=1)
        seen[function] = failure(act)
        stage.sim.heal()
    stage.step("after three errors", **seen)


def forked(stage: Stage) -> None:
    """A fork cannot use the parent's devices, and does not move its books."""
    tensor = block(2)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, failure(lambda: block(1)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    stage.step("after the fork", said=said, kept=tensor.numel())


def stream_ordered(stage: Stage) -> None:
    """The cudaMallocAsync backend: the driver's own pool does the caching."""
    tensor = block(6)
    stage.step("allocated")
    del tensor
    stage.step("freed")
    torch.cuda.synchronize()
    stage.step("synchronised")


def expandable(stage: Stage) -> None:
    """Segments that grow, over the virtual memory interface."""
    kept = [block(30)]
    stage.step("allocated")
    kept.append(block(30))
    stage.step("grown")
    kept.clear()
    torch.cuda.empty_cache()
    stage.step("given back")


GROUPS = {
    "native": (
        ordinary,
        two_devices,
        pinned,
        held_stream,
        synchronised_stream,
        private_pool,
        memory_pool,
        training,
        raw_driver,
        faults,
        forked,
    ),
    "stream_ordered": (stream_ordered,),
    "expandable": (expandable,),
}

if __name__ == "__main__":
    play(framework, ("torch", "nvml"), GROUPS)
