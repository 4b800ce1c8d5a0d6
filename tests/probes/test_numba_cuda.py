from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import pytest

from pytest_veo.probes.base import Probe
from pytest_veo.probes.numba_cuda import NumbaCudaProbe
from tests.probes.conformance import ProbeConformance
from tests.probes.stubs import GPU_0
from tests.probes.stubs import GPU_1
from tests.probes.stubs import UUIDS
from tests.probes.stubs import by_name
from tests.probes.stubs import figures
from tests.probes.stubs import install
from tests.probes.stubs import said


class Queue(deque[int]):
    """Frees that wait; a queue that is shut ignores `clear`, as Numba's does."""

    is_shut = False

    def clear(self) -> None:
        if not self.is_shut:
            super().clear()


class NumbaCUDAMemoryManager:
    def __init__(self) -> None:
        self.allocations: dict[int, SimpleNamespace] = {}
        self.deallocations = Queue()


class PluginMemoryManager(NumbaCUDAMemoryManager):
    pass


class Context:
    def __init__(self, manager: NumbaCUDAMemoryManager) -> None:
        self.memory_manager = manager
        self.deallocations = Queue()
        self.log: deque[str] = deque(maxlen=8)
        self.error: Exception | None = None

    def push(self) -> None:
        self.log.append("push")

    def synchronize(self) -> None:
        self.log.append("synchronize")
        if self.error is not None:
            raise self.error

    def pop(self) -> None:
        self.log.append("pop")


class FakeNumba:
    def __init__(self, manager: type[NumbaCUDAMemoryManager]) -> None:
        self.contexts = [Context(manager()), Context(manager())]
        self.devices = [
            SimpleNamespace(uuid=f"GPU-{uuid}", primary_context=None) for uuid in UUIDS
        ]

    def use_device(self, ordinal: int) -> Context:
        self.devices[ordinal].primary_context = self.contexts[ordinal]
        return self.contexts[ordinal]

    def allocate(self, ordinal: int, size: int) -> None:
        allocations = self.contexts[ordinal].memory_manager.allocations
        allocations[len(allocations)] = SimpleNamespace(size=size)

    def install(
        self, monkeypatch: pytest.MonkeyPatch, *, simulates: bool = False
    ) -> None:
        driver = SimpleNamespace(devices=dict(enumerate(self.devices)))
        install(
            monkeypatch,
            numba__cuda={},
            numba__cuda__cudadrv__driver={"driver": driver},
            numba__core__config={"ENABLE_CUDASIM": int(simulates)},
        )


@pytest.fixture
def numba(monkeypatch: pytest.MonkeyPatch) -> FakeNumba:
    numba = FakeNumba(NumbaCUDAMemoryManager)
    numba.install(monkeypatch)
    return numba


@pytest.fixture
def probe() -> NumbaCudaProbe:
    return NumbaCudaProbe()


class TestNumbaCudaProbe(ProbeConformance):
    def make_probe(self) -> Probe:
        return NumbaCudaProbe()

    def start_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.numba = FakeNumba(NumbaCUDAMemoryManager)
        self.numba.use_device(0)
        self.numba.install(monkeypatch)

    def break_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        manager = self.numba.contexts[0].memory_manager
        monkeypatch.delattr(manager, "allocations")
        monkeypatch.delattr(manager, "deallocations")


def test_an_imported_numba_without_a_context_is_left_alone(
    numba: FakeNumba, probe: NumbaCudaProbe
) -> None:
    assert probe.is_active() is False


def test_live_allocations_and_frees_in_both_queues(
    numba: FakeNumba, probe: NumbaCudaProbe
) -> None:
    context = numba.use_device(0)
    numba.allocate(0, 8000)
    numba.allocate(0, 16000)
    context.memory_manager.deallocations.append(1)
    context.deallocations.extend([2, 3])
    assert figures(probe) == {("allocations", GPU_0): 2}
    more = by_name(probe.read())
    assert more["allocated", GPU_0] == 24000
    assert more["pending", GPU_0] == 3


def test_a_second_device_appears_when_it_is_used(
    numba: FakeNumba, probe: NumbaCudaProbe
) -> None:
    numba.use_device(0)
    probe.glance()
    numba.use_device(1)
    assert set(figures(probe)) == {("allocations", GPU_0), ("allocations", GPU_1)}


def test_settling_flushes_both_queues_inside_the_devices_own_context(
    numba: FakeNumba, probe: NumbaCudaProbe
) -> None:
    context = numba.use_device(0)
    context.memory_manager.deallocations.append(1)
    context.deallocations.append(2)
    probe.glance()
    probe.settle()
    assert by_name(probe.read())["pending", GPU_0] == 0
    assert list(context.log) == ["push", "synchronize", "pop"]


def test_settling_leaves_a_queue_shut_that_the_user_has_shut(
    numba: FakeNumba, probe: NumbaCudaProbe
) -> None:
    context = numba.use_device(0)
    context.memory_manager.deallocations.append(1)
    context.memory_manager.deallocations.is_shut = True
    probe.glance()
    probe.settle()
    assert by_name(probe.read())["pending", GPU_0] == 1


def test_a_context_is_popped_even_when_the_device_fails(
    numba: FakeNumba, probe: NumbaCudaProbe
) -> None:
    context = numba.use_device(0)
    context.error = RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")
    probe.glance()
    probe.settle()
    assert list(context.log) == ["push", "synchronize", "pop"]
    assert said(probe) == [
        "numba: error, settling failed: RuntimeError: CUDA_ERROR_ILLEGAL_ADDRESS"
    ]


def test_a_closed_context_really_has_no_allocations(
    numba: FakeNumba, probe: NumbaCudaProbe
) -> None:
    numba.use_device(0)
    numba.allocate(0, 8000)
    probe.glance()
    numba.devices[0].primary_context = None
    probe.settle()
    assert figures(probe) == {("allocations", GPU_0): 0}
    assert by_name(probe.read())["pending", GPU_0] == 0


def test_the_books_of_a_plugin_are_not_taken_for_numbas(
    monkeypatch: pytest.MonkeyPatch, probe: NumbaCudaProbe
) -> None:
    numba = FakeNumba(PluginMemoryManager)
    numba.use_device(0)
    numba.install(monkeypatch)
    assert figures(probe) == {}
    assert said(probe) == [
        f"numba {GPU_0}: unavailable, "
        "the memory manager PluginMemoryManager keeps its own books"
    ]


def test_the_simulator_is_refused(
    monkeypatch: pytest.MonkeyPatch, probe: NumbaCudaProbe
) -> None:
    FakeNumba(NumbaCUDAMemoryManager).install(monkeypatch, simulates=True)
    assert probe.is_active() is True
    assert figures(probe) == {}
    assert said(probe) == [
        "numba: unavailable, "
        "the CUDA simulator (NUMBA_ENABLE_CUDASIM) has no device memory"
    ]
