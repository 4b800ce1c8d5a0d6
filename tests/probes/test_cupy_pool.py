from __future__ import annotations

import sys
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_veo.memory.snapshot import HOST
from pytest_veo.memory.snapshot import Rung
from pytest_veo.probes.base import Probe
from pytest_veo.probes.cupy_pool import CupyPoolProbe
from tests.probes.conformance import ProbeConformance
from tests.probes.stubs import GPU_0
from tests.probes.stubs import GPU_1
from tests.probes.stubs import StubWatch
from tests.probes.stubs import by_name
from tests.probes.stubs import figures
from tests.probes.stubs import install
from tests.probes.stubs import said


OTHER_ALLOCATOR = (
    "cupy: unavailable, the current allocator is not the default pool: "
    "what it hands out is not counted"
)


class Part:
    """One device's part of a pool."""

    def __init__(self) -> None:
        self.used = 0
        self.total = 0
        self.error: Exception | None = None

    def used_bytes(self) -> int:
        if self.error is not None:
            raise self.error
        return self.used

    def total_bytes(self) -> int:
        return self.total


class MemoryPool:
    """CuPy 14's: a tuple of parts, made at the first question."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: Any = None

    def used_bytes(self) -> int:
        if self.parts is None:
            self.parts = (Part(), Part())
        return 0

    def malloc(self, size: int) -> None:
        raise NotImplementedError


class OlderMemoryPool(MemoryPool):
    """CuPy 13's: a map that makes a part at first use."""

    __slots__ = ()

    def used_bytes(self) -> int:
        if self.parts is None:
            self.parts = defaultdict(Part)
        return 0


class OpaquePool(MemoryPool):
    """One that shows nothing."""

    __slots__ = ()

    def used_bytes(self) -> int:
        return 0


class PinnedPool:
    """CuPy 14's: a set of buffers handed out, lists of buffers kept by size."""

    __slots__ = ("kept", "out")

    def __init__(self, out: Any = None) -> None:
        self.out = set() if out is None else out
        self.kept: dict[int, list[Any]] = defaultdict(list)


class Buffer:
    def __init__(self, size: int) -> None:
        self.size = size


class FakeCupy:
    def __init__(
        self, pool: MemoryPool | None = None, pinned: object | None = None
    ) -> None:
        self.pool = pool or MemoryPool()
        self.pinned = pinned or PinnedPool()
        self.allocator: Any = self.pool.malloc
        self.device = 0
        self.synchronized: list[int] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        runtime = SimpleNamespace(
            getDevice=lambda: self.device,
            deviceSynchronize=lambda: self.synchronized.append(self.device),
        )
        cuda = SimpleNamespace(get_allocator=lambda: self.allocator, runtime=runtime)
        install(
            monkeypatch,
            cupy={
                "cuda": cuda,
                "get_default_memory_pool": lambda: self.pool,
                "get_default_pinned_memory_pool": lambda: self.pinned,
            },
        )


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> FakeCupy:
    cupy = FakeCupy()
    cupy.install(monkeypatch)
    return cupy


@pytest.fixture
def probe(watch: StubWatch) -> CupyPoolProbe:
    return CupyPoolProbe(watch)


class TestCupyPoolProbe(ProbeConformance):
    def make_probe(self) -> Probe:
        self.watch = StubWatch()
        return CupyPoolProbe(self.watch)

    def start_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cupy = FakeCupy()
        self.cupy.install(monkeypatch)
        self.watch.use_device(0)

    def break_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cupy.pool.parts[0].error = RuntimeError("cudaErrorIllegalAddress")


def test_an_imported_cupy_without_a_context_is_left_alone(cupy: FakeCupy) -> None:
    assert CupyPoolProbe(StubWatch()).is_active() is False


def test_used_and_held_bytes_of_each_device_in_use(
    cupy: FakeCupy, probe: CupyPoolProbe, watch: StubWatch
) -> None:
    watch.use_device(1)
    probe.glance()
    cupy.pool.parts[0].used, cupy.pool.parts[0].total = 8192, 16384
    cupy.pool.parts[1].used, cupy.pool.parts[1].total = 512, 1024
    assert figures(probe) == {
        ("pinned", HOST): 0,
        ("used", GPU_0): 8192,
        ("held", GPU_0): 16384,
        ("used", GPU_1): 512,
        ("held", GPU_1): 1024,
    }
    rungs = {counter.name: counter.rung for counter in probe.counters}
    assert rungs["used"] is Rung.LIVE
    assert rungs["held"] is Rung.HELD


def test_an_older_pool_shows_a_device_once_it_has_used_it(
    monkeypatch: pytest.MonkeyPatch, probe: CupyPoolProbe
) -> None:
    cupy = FakeCupy(OlderMemoryPool())
    cupy.install(monkeypatch)
    assert set(figures(probe)) == {("pinned", HOST)}
    assert dict(cupy.pool.parts) == {}
    cupy.pool.parts[0].used = 512
    assert figures(probe)["used", GPU_0] == 512


def test_a_pool_that_shows_no_parts_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, probe: CupyPoolProbe
) -> None:
    FakeCupy(OpaquePool()).install(monkeypatch)
    assert set(figures(probe)) == {("pinned", HOST)}
    assert said(probe) == ["cupy: error, OpaquePool does not show its parts"]


@pytest.mark.parametrize("older", [False, True], ids=["a set", "a map"])
def test_pinned_buffers_are_counted_out_and_kept(
    monkeypatch: pytest.MonkeyPatch, probe: CupyPoolProbe, older: bool
) -> None:
    buffers = [Buffer(4096), Buffer(512)]
    out = dict(enumerate(buffers)) if older else set(buffers)
    pinned = PinnedPool(out)
    pinned.kept[1024].append(Buffer(1024))
    FakeCupy(pinned=pinned).install(monkeypatch)
    assert figures(probe)["pinned", HOST] == 4608
    assert by_name(probe.read())["pinned_held", HOST] == 5632


def test_a_pinned_pool_that_shows_no_buffers_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, probe: CupyPoolProbe
) -> None:
    FakeCupy(pinned=SimpleNamespace()).install(monkeypatch)
    assert ("pinned", HOST) not in figures(probe)
    assert (
        "cupy.pinned: unavailable, SimpleNamespace does not show its buffers"
        in said(probe)
    )


@pytest.mark.parametrize(
    "allocator", [None, MemoryPool().malloc], ids=["none", "another pool's"]
)
def test_another_allocator_is_told_for_as_long_as_it_is_set(
    cupy: FakeCupy, probe: CupyPoolProbe, allocator: object
) -> None:
    own = cupy.allocator
    cupy.allocator = allocator
    probe.glance()
    assert said(probe) == [OTHER_ALLOCATOR]
    cupy.allocator = own
    probe.glance()
    assert said(probe) == []


def test_settling_waits_for_the_current_device(
    cupy: FakeCupy, probe: CupyPoolProbe
) -> None:
    probe.settle()
    assert cupy.synchronized == [0]


def test_settling_makes_no_context(cupy: FakeCupy, probe: CupyPoolProbe) -> None:
    cupy.device = 1
    probe.settle()
    assert cupy.synchronized == []


def test_a_device_that_fails_is_lost_and_the_other_stays(
    cupy: FakeCupy, probe: CupyPoolProbe, watch: StubWatch
) -> None:
    watch.use_device(1)
    probe.glance()
    cupy.pool.parts[0].error = RuntimeError("cudaErrorIllegalAddress")
    assert {device for _name, device in figures(probe)} == {HOST, GPU_1}
    assert said(probe) == [
        f"cupy {GPU_0}: error, RuntimeError: cudaErrorIllegalAddress"
    ]


def test_a_removed_cupy_is_told(
    cupy: FakeCupy, probe: CupyPoolProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe.glance()
    monkeypatch.delitem(sys.modules, "cupy")
    assert probe.is_active() is False
