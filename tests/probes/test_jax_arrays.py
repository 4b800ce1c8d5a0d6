from __future__ import annotations

import sys
import types
from collections import deque
from types import SimpleNamespace

import pytest

from pytest_veo.memory.snapshot import HOST
from pytest_veo.probes.base import Probe
from pytest_veo.probes.jax_arrays import JaxArraysProbe
from tests.probes.conformance import ProbeConformance
from tests.probes.stubs import GPU_0
from tests.probes.stubs import StubWatch
from tests.probes.stubs import by_name
from tests.probes.stubs import figures
from tests.probes.stubs import install
from tests.probes.stubs import said


class Array:
    def __init__(self, nbytes: int, error: Exception | None = None) -> None:
        self.nbytes = nbytes
        self.error = error
        self.waits: deque[None] = deque(maxlen=4)

    def block_until_ready(self) -> None:
        self.waits.append(None)
        if self.error is not None:
            raise self.error


class Device:
    def __init__(self, stats: dict[str, int] | None, ordinal: int = 0) -> None:
        self.stats = stats
        self.id = self.local_hardware_id = ordinal
        self.error: Exception | None = None

    def memory_stats(self) -> dict[str, int] | None:
        if self.error is not None:
            raise self.error
        return self.stats


class Backend:
    def __init__(self, *devices: Device) -> None:
        self.devices = devices
        self.arrays: list[Array] = []

    def local_devices(self) -> tuple[Device, ...]:
        return self.devices

    def live_arrays(self) -> list[Array]:
        return list(self.arrays)


def install_jax(monkeypatch: pytest.MonkeyPatch, **backends: Backend) -> None:
    def initialise() -> None:
        pytest.fail("a backend would have been initialised")

    bridge = SimpleNamespace(_backends=backends, backends=initialise)
    install(monkeypatch, jax={"devices": initialise}, jax___src__xla_bridge=bridge)


@pytest.fixture
def probe(watch: StubWatch) -> JaxArraysProbe:
    return JaxArraysProbe(watch)


class TestJaxArraysProbe(ProbeConformance):
    def make_probe(self) -> Probe:
        return JaxArraysProbe(StubWatch())

    def start_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.device = Device({"bytes_in_use": 1024, "pool_bytes": 6 << 30})
        install_jax(monkeypatch, rocm=Backend(self.device))

    def break_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.device.error = RuntimeError("INTERNAL: the device is gone")


def test_jax_without_an_initialised_backend_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, probe: JaxArraysProbe
) -> None:
    install_jax(monkeypatch)
    assert probe.is_active() is False


def test_another_jax_without_the_table_of_backends_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, probe: JaxArraysProbe
) -> None:
    install(monkeypatch, jax={}, jax___src__xla_bridge={})
    assert probe.is_active() is False


def test_arrays_are_counted_over_all_backends(
    monkeypatch: pytest.MonkeyPatch, probe: JaxArraysProbe
) -> None:
    cpu = Backend(Device(None))
    gpu = Backend(Device({"bytes_in_use": 2048, "pool_bytes": 6 << 30}))
    cpu.arrays, gpu.arrays = [Array(100)], [Array(800), Array(800)]
    install_jax(monkeypatch, cpu=cpu, cuda=gpu)
    assert figures(probe) == {("arrays", HOST): 3, ("allocated", GPU_0): 2048}
    more = by_name(probe.read())
    assert more["array_bytes", HOST] == 1700
    assert more["held", GPU_0] == 6 << 30
    assert said(probe) == []


def test_an_allocator_without_statistics_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, probe: JaxArraysProbe
) -> None:
    install_jax(monkeypatch, cuda=Backend(Device(None)))
    assert figures(probe) == {("arrays", HOST): 0}
    assert said(probe) == [
        f"jax {GPU_0}: unavailable, memory_stats() is None under this allocator"
    ]


@pytest.mark.parametrize("platform", ["rocm", "tpu"])
def test_a_device_of_another_maker_is_named_by_platform(
    monkeypatch: pytest.MonkeyPatch, probe: JaxArraysProbe, platform: str
) -> None:
    device = Device({"bytes_in_use": 7}, ordinal=3)
    install_jax(monkeypatch, **{platform: Backend(device)})
    assert figures(probe)["allocated", f"{platform}:3"] == 7


def test_settling_waits_for_every_array(
    monkeypatch: pytest.MonkeyPatch, probe: JaxArraysProbe
) -> None:
    backend = Backend(Device(None))
    backend.arrays = [Array(1, RuntimeError("its computation failed")), Array(1)]
    install_jax(monkeypatch, cpu=backend)
    probe.settle()
    assert [len(array.waits) for array in backend.arrays] == [1, 1]
    assert said(probe) == []


def test_what_jax_is_done_with_is_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    extension = types.ModuleType("jaxlib._jax")
    calls: list[str] = []
    vars(extension)["collect_garbage"] = lambda: calls.append("collected")
    monkeypatch.setitem(sys.modules, "jaxlib._jax", extension)
    JaxArraysProbe().settle()
    assert calls == ["collected"]
