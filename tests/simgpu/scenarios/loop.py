"""A pytest plugin for the child: run the last test of a file again and again.

Between the runs it writes what allocators and driver have on their books, with and
without what the cyclic collector would free. It proves the table's figures without
the plugin under test.
"""

from __future__ import annotations

import gc
import json
import os
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.simgpu.driver import Sim


RUNS = 6


def _torch(device: int) -> dict[str, int]:
    cuda = sys.modules["torch"].cuda
    if not cuda.is_initialized():
        return {}
    stats = cuda.memory_stats(device)
    private = stats.get("reserved_bytes_by_private_pools") or {}
    if not private:
        raw = sys.modules["torch"]._C._cuda_memoryStats(device)
        private = raw["reserved_bytes_by_private_pools"]
    return {
        "torch.allocated": cuda.memory_allocated(device),
        "torch.reserved": cuda.memory_reserved(device),
        "torch.private_pools": sum(pool["all"]["current"] for pool in private.values()),
    }


def _cupy(device: int) -> dict[str, int]:
    cupy = sys.modules["cupy"]
    pool = cupy.get_default_memory_pool()
    with cupy.cuda.Device(device):
        return {"cupy.used": pool.used_bytes(), "cupy.held": pool.total_bytes()}


def _pinned(sim: Sim) -> int:
    """Bytes handed out: by torch's own count, else what the driver has pinned."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return int(torch.cuda.host_memory_stats().get("active_bytes.current", 0))
    rows = [sim.process(os.getpid(), index) for index in range(sim.state.devices)]
    return sum(row.pinned_bytes for row in rows if row)


def _numba(device: int) -> dict[str, int]:
    known = sys.modules["numba.cuda.cudadrv.driver"].driver.devices.get(device)
    context = known.primary_context if known else None
    if context is None:
        return {}
    held = context.memory_manager.allocations.values()
    return {
        "numba.allocated": sum(int(one.size) for one in held),
        "numba.allocations": len(held),
    }


def _jax(device: int) -> dict[str, int]:
    backend = sys.modules["jax._src.xla_bridge"]._backends.get("cuda")
    if backend is None:
        return {}
    stats = backend.local_devices()[device].memory_stats()
    return {"jax.allocated": stats["bytes_in_use"], "jax.held": stats["pool_bytes"]}


def _rmm(device: int) -> dict[str, int]:
    resource = sys.modules["rmm"].mr.get_per_device_resource(device)
    if not hasattr(resource, "allocation_counts"):
        return {}
    return {"rmm.allocated": resource.allocation_counts.current_bytes}


def _onnxruntime() -> dict[str, int]:
    """Objects alive, by type: the arenas tell Python nothing."""
    module = sys.modules["onnxruntime"]
    kinds = {
        "sessions": module.InferenceSession,
        "values": module.OrtValue,
        "bindings": module.IOBinding,
    }
    objects = gc.get_objects()
    return {
        f"onnxruntime.{name} host": sum(type(one) is kind for one in objects)
        for name, kind in kinds.items()
    }


FRAMEWORKS: dict[str, Callable[[int], dict[str, int]]] = {
    "torch": _torch,
    "cupy": _cupy,
    "numba.cuda": _numba,
    "jax": _jax,
    "rmm": _rmm,
}


def figures(sim: Sim) -> dict[str, int]:
    """`probe.counter device` to value, as the scenarios' table names them."""
    found = {}
    for index in range(sim.state.devices):
        row = sim.process(os.getpid(), index)
        if row is None:
            continue
        mig = sim.device(index).mig_mode > 0
        name = sim.device(index).mig_uuid.decode() if mig else sim.uuid(index)
        found[f"nvml.process {name}"] = row.used_bytes
        for framework, read in FRAMEWORKS.items():
            if framework in sys.modules:
                own = read(index).items()
                found |= {f"{counter} {name}": value for counter, value in own}
    for framework in ("torch", "cupy"):
        if framework in sys.modules:
            found[f"{framework}.pinned host"] = _pinned(sim)
    if "onnxruntime" in sys.modules:
        found |= _onnxruntime()
    return found


def _bring_to_rest() -> None:
    """Wait for frees that come late: the figures are of what stays."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
        # blocks that other streams used come back when the allocator looks for them
        torch.empty(1, device="cuda")
    numba = sys.modules.get("numba.cuda.cudadrv.driver")
    for device in numba.driver.devices.values() if numba is not None else ():
        if device.primary_context is not None:
            device.primary_context.memory_manager.deallocations.clear()
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and "cuda" in bridge._backends:
        _wait_for_jax(bridge._backends["cuda"])


def _wait_for_jax(backend: Any) -> None:
    """JAX gives a block back a little after its array."""
    deadline = time.monotonic() + 10
    for device in backend.local_devices():
        while time.monotonic() < deadline:
            live = [one for one in backend.live_arrays() if one.devices() == {device}]
            rounded = sum(-(-one.nbytes // 256) * 256 for one in live)
            if device.memory_stats()["bytes_in_use"] <= rounded:
                break
            time.sleep(0.002)


class Sibling:
    """Stands for a next test of the same parents: wider fixtures are left standing."""

    def __init__(self, item: Any) -> None:
        self._parents = item.listchain()[:-1]

    def listchain(self) -> list[Any]:
        """As a pytest item has it."""
        return [*self._parents, self]


class Loop:
    """Runs the last test `RUNS` times and notes the figures after each run."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._sim = Sim.here()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> Any:
        """Once for every other test; the last again and again, fixtures fresh."""
        if nextitem is not None:
            return (yield)
        for _ in range(RUNS):
            self._once(item)
        return (yield)  # the last run tears wider fixtures down: not noted

    def _once(self, item: Any) -> None:
        from _pytest.runner import runtestprotocol

        sibling: Any = Sibling(item)
        reports = runtestprotocol(item, log=False, nextitem=sibling)
        failed = [str(report.longrepr) for report in reports if report.failed]
        assert not failed, "\n".join(failed)
        self._note()

    def _note(self) -> None:
        _bring_to_rest()
        bare = figures(self._sim)
        gc.collect()
        line = {"bare": bare, "collected": figures(self._sim)}
        with self._path.open("a") as out:
            out.write(json.dumps(line) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Start the loop where the parent wants its figures."""
    gc.freeze()  # what was imported before is no garbage: collecting becomes cheap
    config.pluginmanager.register(Loop(pathlib.Path(os.environ["VEOSIM_FIGURES"])))
