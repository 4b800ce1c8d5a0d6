from __future__ import annotations

import sys

import pytest

from pytest_veo.memory.snapshot import HOST
from pytest_veo.memory.snapshot import Rung
from pytest_veo.probes.base import Probe
from pytest_veo.probes.torch_cuda import TorchCudaProbe
from tests.probes.conformance import ProbeConformance
from tests.probes.fake_torch import FakeTorch
from tests.probes.stubs import GPU_0
from tests.probes.stubs import GPU_1
from tests.probes.stubs import by_name
from tests.probes.stubs import figures
from tests.probes.stubs import install
from tests.probes.stubs import said


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    torch = FakeTorch()
    torch.install(monkeypatch)
    return torch


@pytest.fixture
def probe() -> TorchCudaProbe:
    return TorchCudaProbe()


class TestTorchCudaProbe(ProbeConformance):
    def make_probe(self) -> Probe:
        return TorchCudaProbe()

    def start_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.torch = FakeTorch()
        self.torch.devices[0].allocate(1000)
        self.torch.install(monkeypatch)

    def break_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.torch.error = RuntimeError("CUDA error: unspecified launch failure")


@pytest.mark.parametrize("initialised", [False, None, object()])
def test_an_uninitialised_or_mocked_torch_is_left_alone(
    torch: FakeTorch, probe: TorchCudaProbe, initialised: object
) -> None:
    torch.is_initialized = initialised
    assert probe.is_active() is False


def test_a_half_imported_torch_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, probe: TorchCudaProbe
) -> None:
    install(monkeypatch, torch={}, torch__cuda={})
    assert probe.is_active() is False


def test_the_figures_of_a_device(torch: FakeTorch, probe: TorchCudaProbe) -> None:
    torch.devices[0].allocate(1000)
    torch.devices[0].capture((1, 0), 20 << 20)
    torch.pinned = 4096
    assert figures(probe) == {
        ("pinned", HOST): 4096,
        ("allocated", GPU_0): 1024,
        ("allocations", GPU_0): 1,
        ("active", GPU_0): 1024,
        ("reserved", GPU_0): 2 << 20,
        ("private_pools", GPU_0): 20 << 20,
    }
    more = by_name(probe.read())
    assert more["requested", GPU_0] == 1000
    assert more["pinned_held", HOST] == 1 << 20


def test_only_devices_with_a_context_are_watched(
    torch: FakeTorch, probe: TorchCudaProbe
) -> None:
    probe.glance()
    assert {counter.device for counter in probe.counters} == {HOST, GPU_0}


def test_a_second_device_appears_when_it_is_used(
    torch: FakeTorch, probe: TorchCudaProbe
) -> None:
    probe.glance()
    before = probe.counters
    torch.contexts.add(1)
    torch.devices[1].allocate(512)
    assert figures(probe)["allocated", GPU_1] == 512
    assert probe.counters is not before


def test_live_bytes_are_exact_and_held_bytes_are_not(
    torch: FakeTorch, probe: TorchCudaProbe
) -> None:
    probe.glance()
    live = {c.name for c in probe.counters if c.rung is Rung.LIVE}
    assert live == {"pinned", "allocated", "allocations"}
    assert all(c.exact == c.always == (c.rung is Rung.LIVE) for c in probe.counters)


def test_the_list_of_pools_is_asked_for_only_after_a_segment_came_or_went(
    torch: FakeTorch, probe: TorchCudaProbe
) -> None:
    probe.glance()
    torch.asked.clear()
    probe.glance()
    assert list(torch.asked) == [True]
    torch.devices[0].capture((1, 0), 20 << 20)
    assert figures(probe)["private_pools", GPU_0] == 20 << 20
    assert list(torch.asked) == [True, True, False]


@pytest.mark.parametrize("reason", ["older", "another accelerator"])
def test_without_the_short_question_the_long_one_serves(
    torch: FakeTorch,
    monkeypatch: pytest.MonkeyPatch,
    probe: TorchCudaProbe,
    reason: str,
) -> None:
    torch.accelerator = "npu"
    if reason == "older":
        monkeypatch.delattr(sys.modules["torch"]._C, "_accelerator_getDeviceStats")
    torch.devices[0].allocate(1000)
    assert figures(probe)["allocated", GPU_0] == 1024
    assert True not in torch.asked


def test_without_per_pool_figures_a_snapshot_tells_of_private_pools(
    monkeypatch: pytest.MonkeyPatch, probe: TorchCudaProbe
) -> None:
    torch = FakeTorch(has_private_pools=False)
    torch.devices[0].capture((1, 0), 20 << 20)
    torch.install(monkeypatch)
    assert ("private_pools", GPU_0) not in figures(probe)
    assert by_name(probe.read())["private_pools", GPU_0] == 20 << 20
    (reserved,) = [c for c in probe.counters if c.name == "reserved"]
    assert reserved.gate == 0


def test_an_older_torch_without_pinned_statistics_says_so(
    torch: FakeTorch, monkeypatch: pytest.MonkeyPatch, probe: TorchCudaProbe
) -> None:
    monkeypatch.delattr(sys.modules["torch"]._C, "_cuda_hostMemoryStats")
    assert ("pinned", HOST) not in figures(probe)
    assert said(probe) == [
        "torch.pinned: unavailable, PyTorch 2.14.1 keeps no statistics of pinned memory"
    ]
    probe.settle()
    assert torch.synchronized == [0]


def test_without_a_context_query_a_used_allocator_tells_the_device(
    torch: FakeTorch, monkeypatch: pytest.MonkeyPatch, probe: TorchCudaProbe
) -> None:
    monkeypatch.delattr(sys.modules["torch"]._C, "_cuda_hasPrimaryContext")
    torch.devices[1].allocate(512)
    assert figures(probe)["allocated", GPU_1] == 512
    assert ("allocated", GPU_0) not in figures(probe)


def test_a_pluggable_allocator_without_statistics_is_unavailable(
    torch: FakeTorch, probe: TorchCudaProbe
) -> None:
    torch.error = RuntimeError("CUDAPluggableAllocator does not support getDeviceStats")
    assert figures(probe) == {}
    assert said(probe)[0] == (
        f"torch {GPU_0}: unavailable, "
        "RuntimeError: CUDAPluggableAllocator does not support getDeviceStats"
    )


def test_a_driver_pool_that_reports_nothing_is_never_0(
    torch: FakeTorch, probe: TorchCudaProbe
) -> None:
    torch.backend = "cudaMallocAsync"
    torch.devices[0].allocated = 4096
    assert figures(probe) == {("pinned", HOST): 0}
    assert said(probe) == [
        f"torch {GPU_0}: unavailable, "
        "the cudaMallocAsync backend has reported no byte so far"
    ]


def test_a_driver_pool_is_watched_once_it_has_reported_a_byte(
    torch: FakeTorch, probe: TorchCudaProbe
) -> None:
    torch.backend = "cudaMallocAsync"
    probe.glance()
    torch.devices[0].allocate(1000)
    seen = figures(probe)
    assert seen["allocated", GPU_0] == 1024
    assert seen["reserved", GPU_0] == 2 << 20
    assert ("allocations", GPU_0) not in seen
    assert (
        f"torch.allocations {GPU_0}: unavailable, "
        "the cudaMallocAsync backend keeps no count"
    ) in said(probe)
    assert not any("no byte so far" in line for line in said(probe))
    (allocated,) = [c for c in probe.counters if c.name == "allocated"]
    assert not allocated.exact


def test_settling_waits_for_each_device_and_books_what_came_back(
    torch: FakeTorch, probe: TorchCudaProbe
) -> None:
    torch.contexts.add(1)
    torch.devices[0].waiting = 8 << 20
    torch.pinned = 4096
    assert figures(probe)["active", GPU_0] == 8 << 20
    probe.settle()
    assert torch.synchronized == [0, 1]
    assert figures(probe)["active", GPU_0] == 0
    assert figures(probe)["pinned", HOST] == 0


def test_settling_asks_for_no_byte_where_nothing_waits(
    torch: FakeTorch, probe: TorchCudaProbe
) -> None:
    torch.is_full = True
    probe.glance()
    probe.settle()
    assert said(probe) == []


def test_a_full_device_keeps_what_waits_on_the_books(
    torch: FakeTorch, probe: TorchCudaProbe
) -> None:
    torch.devices[0].waiting = 512
    torch.is_full = True
    probe.glance()
    probe.settle()
    assert figures(probe)["active", GPU_0] == 512
    assert said(probe) == []


def test_settling_does_not_break_a_capture(
    torch: FakeTorch, probe: TorchCudaProbe
) -> None:
    probe.glance()
    torch.is_capturing = True
    probe.settle()
    assert torch.synchronized == []


def test_a_device_that_fails_to_synchronise_is_lost_and_the_other_stays(
    torch: FakeTorch, probe: TorchCudaProbe
) -> None:
    torch.contexts.add(1)
    probe.glance()
    torch.sync_errors[0] = RuntimeError("CUDA error: an illegal memory access")
    probe.settle()
    assert {c.device for c in probe.counters} == {HOST, GPU_1}
    assert said(probe) == [
        f"torch {GPU_0}: error, RuntimeError: CUDA error: an illegal memory access"
    ]
    probe.settle()
    assert torch.synchronized == [1, 1]


def test_a_device_without_uuid_is_named_by_number_where_no_driver_helps(
    torch: FakeTorch, probe: TorchCudaProbe
) -> None:
    torch.uuids = [None, None]
    assert ("allocated", "cuda:0") in figures(probe)
