from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
import types
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_veo import tracemalloc_ext
from pytest_veo.tracemalloc_ext import Domain
from tests.evidence import stub_cupy


ADDRESS = 0x7FFF_0000_0000


@pytest.fixture(autouse=True)
def _off(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("cupy", "numba.cuda.cudadrv.devices", "rmm", "cuda.core"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield
    tracemalloc_ext.stop()
    tracemalloc.stop()


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = stub_cupy.cupy()
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def device_bytes() -> dict[str, tuple[int, int]]:
    snapshot = tracemalloc_ext.take_snapshot()
    return {
        each.domain.label: (each.size_bytes, each.count)
        for each in tracemalloc_ext.statistics(snapshot)
        if each.domain.source not in ("host", "other")
    }


def make(cupy: Any, size: int) -> Any:
    return cupy.cuda.alloc(size)


def test_a_device_allocation_is_a_trace_of_its_own_domain(cupy: Any) -> None:
    tracemalloc_ext.start()
    kept = make(cupy, 100_000)
    assert device_bytes() == {"cupy device 0": (100_352, 1)}
    del kept
    assert device_bytes() == {}


def test_the_newest_frame_is_the_callers_not_a_hook(cupy: Any) -> None:
    tracemalloc_ext.start()
    kept = make(cupy, 4096)
    snapshot = tracemalloc_ext.only(tracemalloc_ext.take_snapshot(), "cupy")
    (trace,) = snapshot.traces
    assert trace.traceback[-1].filename.endswith("stub_cupy.py")
    files = [frame.filename for frame in trace.traceback]
    assert files[-3] == __file__
    assert not any("pytest_veo/" in file for file in files)
    assert not any("/_pytest/" in file or "/pluggy/" in file for file in files)
    del kept


def test_host_and_device_figures_are_told_apart(cupy: Any) -> None:
    tracemalloc_ext.start()
    kept = make(cupy, 50 << 20)
    assert tracemalloc.get_traced_memory()[0] > 50 << 20
    assert tracemalloc_ext.traced_host_bytes() < 10 << 20
    host = tracemalloc_ext.only(tracemalloc_ext.take_snapshot(), "host")
    assert {trace.domain for trace in host.traces} == {0}
    del kept


def in_thread(call: Callable[[], object]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join(30)


def test_allocations_of_other_threads_are_seen(cupy: Any) -> None:
    kept: list[Any] = []
    tracemalloc_ext.start()
    in_thread(lambda: kept.append(make(cupy, 512)))
    assert device_bytes() == {"cupy device 0": (512, 1)}


def test_a_thread_that_was_there_before_is_seen_as_well(cupy: Any) -> None:
    go, done = threading.Event(), threading.Event()
    kept: list[Any] = []

    def work() -> None:
        assert go.wait(30)
        kept.append(make(cupy, 512))
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    tracemalloc_ext.start()
    go.set()
    assert done.wait(30)
    assert device_bytes() == {"cupy device 0": (512, 1)}
    thread.join(30)


def test_a_block_that_another_thread_frees_is_gone(cupy: Any) -> None:
    tracemalloc_ext.start()
    kept = [make(cupy, 512)]
    in_thread(kept.clear)
    assert device_bytes() == {}


def test_the_device_is_the_memorys_own(cupy: Any) -> None:
    tracemalloc_ext.start()
    kept = [make(cupy, 512)]
    cupy.cuda.device = 1
    kept.append(make(cupy, 1024))
    assert device_bytes() == {
        "cupy device 0": (512, 1),
        "cupy device 1": (1024, 1),
    }


def test_what_is_handed_out_is_the_allocators_place(cupy: Any) -> None:
    def upper_half(size: int) -> Any:
        whole = cupy.cuda.pool_malloc(2 * size)
        return stub_cupy.MemoryPointer(whole.mem, size)

    cupy.cuda.are_whole = False
    cupy.cuda.set_allocator(upper_half)
    tracemalloc_ext.start()
    kept = make(cupy, 512)
    assert kept.ptr == kept.mem.ptr + 512
    assert (kept.mem.size, kept.device_id) == (1024, 0)
    assert device_bytes() == {"cupy device 0": (1024, 1)}
    assert make(cupy, 0).ptr == 0
    tracemalloc_ext.stop()
    assert cupy.cuda.get_allocator() is upper_half
    assert cupy.cuda.free_addresses == []
    del kept
    assert len(cupy.cuda.free_addresses) == 1


@pytest.mark.parametrize("how", ["global", "local"])
def test_an_allocator_that_is_set_meanwhile_is_followed(cupy: Any, how: str) -> None:
    tracemalloc_ext.start()
    if how == "global":
        cupy.cuda.set_allocator(cupy.cuda.pool_malloc)
        kept = make(cupy, 512)
    else:
        with cupy.cuda.using_allocator(cupy.cuda.pool_malloc):
            kept = make(cupy, 512)
    assert device_bytes() == {"cupy device 0": (512, 1)}
    del kept


def test_stopped_inside_another_allocator_nothing_is_traced_any_more(
    cupy: Any,
) -> None:
    tracemalloc_ext.start()
    with cupy.cuda.using_allocator(cupy.cuda.pool_malloc):
        tracemalloc_ext.stop()
        tracemalloc.start()
        kept = make(cupy, 512)
    assert {trace.domain for trace in tracemalloc.take_snapshot().traces} == {0}
    tracemalloc.stop()
    del kept


def test_raw_memory_of_cupys_runtime_is_tracked(cupy: Any) -> None:
    runtime = cupy.cuda.runtime
    own = runtime.malloc, runtime.free
    tracemalloc_ext.start()
    kept, gone = runtime.malloc(4096), runtime.malloc(512)
    runtime.free(gone)
    assert device_bytes() == {"cupy.runtime device 0": (4096, 1)}
    tracemalloc_ext.stop()
    assert (runtime.malloc, runtime.free) == own
    assert cupy.cuda.raw == {kept: 4096}


def test_an_address_that_is_used_again_counts_once(cupy: Any) -> None:
    tracemalloc_ext.start()
    for _ in range(5):
        kept = make(cupy, 1024)
    assert device_bytes() == {"cupy device 0": (1024, 1)}
    del kept


def test_nothing_is_left_behind(cupy: Any) -> None:
    cuda = cupy.cuda
    own = cuda.get_allocator(), cuda.set_allocator, cuda.using_allocator
    tracemalloc_ext.start()
    kept = make(cupy, 1024)
    tracemalloc_ext.stop()
    assert (cuda.get_allocator(), cuda.set_allocator, cuda.using_allocator) == own
    assert not tracemalloc.is_tracing()
    assert tracemalloc_ext.domains() == ()
    del kept


def test_an_allocator_the_user_has_set_meanwhile_stays(cupy: Any) -> None:
    tracemalloc_ext.start()
    cupy.cuda.set_allocator(len)
    tracemalloc_ext.stop()
    assert cupy.cuda.get_allocator() is len


def test_a_tracing_of_the_users_goes_on_without_our_domains(cupy: Any) -> None:
    tracemalloc.start(4)
    tracemalloc_ext.start(nframe=20)
    kept = make(cupy, 1024)
    assert tracemalloc.get_traceback_limit() == 4
    tracemalloc_ext.stop()
    assert tracemalloc.is_tracing()
    assert {trace.domain for trace in tracemalloc.take_snapshot().traces} == {0}
    del kept


def test_a_source_that_is_not_imported_is_named() -> None:
    tracemalloc_ext.start()
    assert "cupy: cupy is not imported" in tracemalloc_ext.notes()
    assert tracemalloc_ext.domains() == ()


def test_a_source_that_cannot_be_hooked_says_why(cupy: Any) -> None:
    with cupy.cuda.using_allocator():
        tracemalloc_ext.start()
    assert any("using_allocator" in note for note in tracemalloc_ext.notes())


def test_allocations_while_tracemalloc_is_off_are_said_to_be_missed() -> None:
    tracemalloc_ext.start()
    tracemalloc.stop()
    tracemalloc_ext.track("mine", 0, ADDRESS, 64)
    assert "1 allocations while tracemalloc was off" in tracemalloc_ext.notes()


def test_an_allocator_of_ones_own_can_be_tracked() -> None:
    tracemalloc_ext.start()
    tracemalloc_ext.track("vulkan", 1, ADDRESS, 4096)
    assert device_bytes() == {"vulkan device 1": (4096, 1)}
    tracemalloc_ext.untrack("vulkan", 1, ADDRESS)
    assert device_bytes() == {}


def test_addresses_above_4_gib_and_sizes_too_are_kept_whole() -> None:
    tracemalloc_ext.start()
    tracemalloc_ext.track("big", 0, (1 << 64) - 512, 5 << 40)
    assert device_bytes() == {"big device 0": (5 << 40, 1)}


def test_two_sources_and_two_devices_have_four_domains() -> None:
    tracemalloc_ext.start()
    for source in ("a", "b"):
        for device in (0, 1):
            tracemalloc_ext.track(source, device, ADDRESS, 1)
    numbers = [each.number for each in tracemalloc_ext.domains()]
    assert len(set(numbers)) == 4


def test_while_it_is_off_tracking_does_nothing() -> None:
    tracemalloc_ext.track("off", 0, ADDRESS, 1)
    tracemalloc_ext.untrack("off", 0, ADDRESS)
    assert not tracemalloc_ext.is_tracking()
    assert tracemalloc_ext.domains() == ()
    assert tracemalloc_ext.notes() == ()


def test_start_twice_is_start() -> None:
    tracemalloc_ext.start(nframe=3)
    tracemalloc_ext.start(nframe=9)
    assert tracemalloc.get_traceback_limit() == 3


class Pointer:
    """numba's MemoryPointer as far as tracking sees it."""

    def __init__(self, address: int) -> None:
        self.device_ctypes_pointer = types.SimpleNamespace(value=address)


class Manager:
    def memalloc(self, size: int) -> Pointer:
        return Pointer(ADDRESS + size)


def test_numbas_memory_manager_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = Manager()
    context = types.SimpleNamespace(memory_manager=manager)
    gpu = types.SimpleNamespace(id=1, primary_context=context)
    devices: Any = types.ModuleType("devices")
    devices.gpus = types.SimpleNamespace(lst=[gpu])
    monkeypatch.setitem(sys.modules, "numba.cuda.cudadrv.devices", devices)
    tracemalloc_ext.start()
    pointer = manager.memalloc(256)
    assert device_bytes() == {"numba device 1": (256, 1)}
    del pointer
    assert device_bytes() == {}
    tracemalloc_ext.stop()
    assert "memalloc" not in vars(manager)


def test_numba_without_a_context_is_not_initialised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    devices: Any = types.ModuleType("devices")
    devices.gpus = types.SimpleNamespace(lst=[])
    monkeypatch.setitem(sys.modules, "numba.cuda.cudadrv.devices", devices)
    tracemalloc_ext.start()
    assert "numba: no CUDA context exists yet" in tracemalloc_ext.notes()


class Resource:
    def __init__(self) -> None:
        self.freed: list[int] = []

    def allocate(self, size: int, stream: object = None) -> int:
        return ADDRESS + size

    def deallocate(self, address: int, size: int, stream: object = None) -> None:
        self.freed.append(address)


class CallbackResource:
    def __init__(self, allocate: Any, deallocate: Any) -> None:
        self.allocate, self.deallocate = allocate, deallocate


def test_rmms_resource_is_followed_and_put_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    current = [upstream := Resource()]
    rmm: Any = types.ModuleType("rmm")
    rmm.mr = types.SimpleNamespace(
        get_current_device_resource=lambda: current[0],
        set_current_device_resource=lambda resource: current.__setitem__(0, resource),
        CallbackMemoryResource=CallbackResource,
    )
    monkeypatch.setitem(sys.modules, "rmm", rmm)
    tracemalloc_ext.start()
    front = current[0]
    address = front.allocate(1024, "stream")
    assert device_bytes() == {"rmm device 0": (1024, 1)}
    front.deallocate(address, 1024, "stream")
    assert device_bytes() == {}
    assert upstream.freed == [address]
    tracemalloc_ext.stop()
    assert current == [upstream]


class Buffer:
    def __init__(self, address: int) -> None:
        self.handle = address


class MemoryResource:
    """cuda.core's class, as far as tracking sees it."""

    __module__ = "cuda.core._memory"
    device_id = 2

    def __init__(self) -> None:
        self.cycle = self  # so that the collector lists it, as it does the real one

    def allocate(self, size: int, stream: object = None) -> Buffer:
        return Buffer(ADDRESS + size)


class SealedResource(MemoryResource):
    def __setattr__(self, name: str, value: object) -> None:
        if name == "allocate":
            raise AttributeError("read only")
        object.__setattr__(self, name, value)


@pytest.fixture
def _cuda_core(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    monkeypatch.setitem(sys.modules, "cuda.core", types.ModuleType("cuda.core"))


@pytest.mark.usefixtures("_cuda_core")
def test_cuda_cores_resource_is_followed() -> None:
    resource = MemoryResource()
    tracemalloc_ext.start()
    buffer = resource.allocate(64)
    assert device_bytes() == {"cuda.core device 2": (64, 1)}
    del buffer
    assert device_bytes() == {}
    tracemalloc_ext.stop()
    assert "allocate" not in vars(resource)


@pytest.mark.usefixtures("_cuda_core")
def test_a_sealed_resource_of_cuda_core_is_named() -> None:
    resource = SealedResource()
    tracemalloc_ext.start()
    assert "cuda.core: SealedResource cannot be hooked" in tracemalloc_ext.notes()
    assert resource.allocate(64).handle == ADDRESS + 64


@pytest.mark.usefixtures("_cuda_core")
def test_cuda_core_without_a_resource_is_not_made_to_have_one() -> None:
    tracemalloc_ext.start()
    assert "cuda.core: no memory resource is in use" in tracemalloc_ext.notes()


class BrokenSource:
    name = "broken"

    def attach(self, ledger: object) -> None:
        raise OSError("driver is gone")

    def detach(self) -> None: ...


def test_a_librarys_own_failure_is_a_note_not_an_error() -> None:
    tracemalloc_ext.start(sources=[BrokenSource()])
    assert tracemalloc_ext.is_tracking()
    assert tracemalloc_ext.notes() == ("broken: OSError: driver is gone",)


def test_a_domain_is_named_for_people() -> None:
    assert Domain(1, "cupy", 0).label == "cupy device 0"
    assert Domain(0, "host").label == "host"
