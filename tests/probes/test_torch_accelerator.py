from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_veo.probes.base import Probe
from pytest_veo.probes.torch_accelerator import TorchAcceleratorProbe
from tests.probes.conformance import ProbeConformance
from tests.probes.stubs import GPU_0
from tests.probes.stubs import GPU_1
from tests.probes.stubs import UUIDS
from tests.probes.stubs import figures
from tests.probes.stubs import install
from tests.probes.stubs import said


class FakeTorch:
    """A PyTorch built for one accelerator that is not CUDA, unless told otherwise."""

    def __init__(self, kind: str = "xpu", *, is_initialized: object = True) -> None:
        self.kind = kind
        self.is_initialized = is_initialized
        self.allocated = [0, 0]
        self.reserved = [0, 0]
        self.error: Exception | None = None
        self.synchronized = 0
        self.tells_uuid = True

    def stats(self, ordinal: int) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        allocated, reserved = self.allocated[ordinal], self.reserved[ordinal]
        return {
            "allocated_bytes": {"all": {"current": allocated}},
            "allocation": {"all": {"current": int(allocated > 0)}},
            "reserved_bytes": {"all": {"current": reserved, "peak": reserved}},
        }

    def use_device(self, ordinal: int) -> None:
        self.allocated[ordinal] = 512
        self.reserved[ordinal] = 2 << 20

    def metal(self) -> int:
        if self.error is not None:
            raise self.error
        return 4096

    def synchronize(self) -> None:
        self.synchronized += 1

    def properties(self, ordinal: int) -> SimpleNamespace:
        return SimpleNamespace(**({"uuid": UUIDS[ordinal]} if self.tells_uuid else {}))

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        core = SimpleNamespace(
            _accelerator_isAllocatorInitialized=lambda: self.is_initialized,
            _accelerator_getDeviceStats=self.stats,
            _mps_currentAllocatedMemory=self.metal,
            _mps_driverAllocatedMemory=self.metal,
        )
        accelerator = SimpleNamespace(
            current_accelerator=lambda: SimpleNamespace(type=self.kind),
            device_count=lambda: len(self.allocated),
            synchronize=self.synchronize,
        )
        torch = SimpleNamespace(
            _C=core,
            accelerator=accelerator,
            xpu=SimpleNamespace(get_device_properties=self.properties),
        )
        install(
            monkeypatch, torch=torch, torch___C=core, torch__accelerator=accelerator
        )


@pytest.fixture
def probe() -> TorchAcceleratorProbe:
    return TorchAcceleratorProbe()


class TestTorchAcceleratorProbe(ProbeConformance):
    kind = "xpu"

    def make_probe(self) -> Probe:
        return TorchAcceleratorProbe()

    def start_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.torch = FakeTorch(self.kind)
        self.torch.use_device(0)
        self.torch.install(monkeypatch)

    def break_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.torch.error = RuntimeError("UR_RESULT_ERROR_DEVICE_LOST")


class TestOnMetal(TestTorchAcceleratorProbe):
    kind = "mps"


@pytest.mark.parametrize(
    ("kind", "initialised"),
    [
        pytest.param("cuda", True, id="CUDA has a probe of its own"),
        pytest.param("xpu", False, id="not initialised"),
        pytest.param("xpu", object(), id="a mock"),
    ],
)
def test_it_is_idle_where_it_has_no_business(
    monkeypatch: pytest.MonkeyPatch,
    probe: TorchAcceleratorProbe,
    kind: str,
    initialised: object,
) -> None:
    FakeTorch(kind, is_initialized=initialised).install(monkeypatch)
    assert probe.is_active() is False


def test_an_older_torch_without_the_question_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, probe: TorchAcceleratorProbe
) -> None:
    install(monkeypatch, torch={}, torch___C={}, torch__accelerator={})
    assert probe.is_active() is False


def test_devices_that_were_used_are_watched_by_uuid(
    monkeypatch: pytest.MonkeyPatch, probe: TorchAcceleratorProbe
) -> None:
    torch = FakeTorch()
    torch.use_device(0)
    torch.install(monkeypatch)
    assert probe.is_active()
    assert figures(probe) == {
        ("allocated", GPU_0): 512,
        ("allocations", GPU_0): 1,
        ("reserved", GPU_0): 2 << 20,
    }
    torch.use_device(1)
    assert figures(probe)["allocated", GPU_1] == 512


def test_a_device_without_uuid_is_named_by_number(
    monkeypatch: pytest.MonkeyPatch, probe: TorchAcceleratorProbe
) -> None:
    torch = FakeTorch()
    torch.tells_uuid = False
    torch.use_device(1)
    torch.install(monkeypatch)
    assert probe.is_active()
    assert ("allocated", "xpu:1") in figures(probe)


def test_a_plug_in_without_properties_is_named_by_number(
    monkeypatch: pytest.MonkeyPatch, probe: TorchAcceleratorProbe
) -> None:
    torch = FakeTorch("npu")
    torch.use_device(0)
    torch.install(monkeypatch)
    assert probe.is_active()
    assert ("allocated", "npu:0") in figures(probe)


def test_metal_tells_bytes_and_no_count(
    monkeypatch: pytest.MonkeyPatch, probe: TorchAcceleratorProbe
) -> None:
    FakeTorch("mps").install(monkeypatch)
    assert probe.is_active()
    assert figures(probe) == {("allocated", "mps"): 4096, ("reserved", "mps"): 4096}
    assert said(probe) == [
        "accelerator.allocations mps: unavailable, Metal's allocator does not count it"
    ]


def test_settling_waits_only_where_something_is_watched(
    monkeypatch: pytest.MonkeyPatch, probe: TorchAcceleratorProbe
) -> None:
    torch = FakeTorch()
    torch.install(monkeypatch)
    probe.is_active()
    probe.settle()
    assert torch.synchronized == 0
    torch.use_device(0)
    probe.glance()
    probe.settle()
    assert torch.synchronized == 1
