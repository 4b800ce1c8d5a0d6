from __future__ import annotations

import os

import pytest

from pytest_veo.memory.snapshot import Rung
from pytest_veo.probes.base import Probe
from pytest_veo.probes.nvml import NvmlProbe
from tests.probes.conformance import ProbeConformance
from tests.probes.fake_nvml import MIB
from tests.probes.fake_nvml import FakeNvml
from tests.probes.stubs import GPU_0
from tests.probes.stubs import GPU_1
from tests.probes.stubs import StubWatch
from tests.probes.stubs import by_name
from tests.probes.stubs import figures
from tests.probes.stubs import said


UNLISTED = (
    "the driver does not list this process; in a container, share the host's process "
    "ids (--pid=host)"
)
UNBOOKED = "the driver does not book bytes per process here (WDDM, WSL or vGPU)"


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    nvml = FakeNvml()
    nvml.install(monkeypatch)
    return nvml


@pytest.fixture
def probe(watch: StubWatch) -> NvmlProbe:
    return NvmlProbe(watch)


class TestNvmlProbe(ProbeConformance):
    def make_probe(self) -> Probe:
        self.watch = StubWatch()
        return NvmlProbe(self.watch)

    def start_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nvml = FakeNvml()
        self.nvml.install(monkeypatch)
        self.watch.use_device(0)

    def break_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for function in ("nvmlDeviceGetMemoryInfo_v2", "compute_v3"):
            self.nvml.fail(function, "GpuIsLost")


def test_nvml_is_neither_imported_nor_initialised_without_a_context(
    nvml: FakeNvml,
) -> None:
    probe = NvmlProbe(StubWatch())
    probe.open()
    assert probe.is_active() is False
    assert list(nvml.calls) == []


def test_this_process_and_the_device_are_told_apart(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    assert figures(probe) == {
        ("device_used", GPU_0): 400 * MIB,
        ("process", GPU_0): 300 * MIB,
    }
    rungs = {counter.name: counter.rung for counter in probe.counters}
    assert rungs == {"device_used": Rung.DEVICE, "process": Rung.DRIVER}


def test_a_device_without_a_context_of_ours_is_not_asked(
    nvml: FakeNvml, probe: NvmlProbe, watch: StubWatch
) -> None:
    probe.glance()
    assert {counter.device for counter in probe.counters} == {GPU_0}
    watch.use_device(1)
    assert figures(probe)["process", GPU_1] == 320 * MIB


def test_a_glance_at_an_unchanged_device_is_one_call(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    probe.glance()
    nvml.calls.clear()
    probe.glance()
    assert list(nvml.calls) == ["nvmlDeviceGetMemoryInfo_v2"]


def test_when_the_device_moves_only_the_lists_that_name_us_are_asked(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    probe.glance()
    nvml.cards[GPU_0].used += 2 * MIB
    nvml.cards[GPU_0].compute[0] = (os.getpid(), 302 * MIB)
    nvml.calls.clear()
    assert figures(probe)["process", GPU_0] == 302 * MIB
    assert list(nvml.calls) == ["nvmlDeviceGetMemoryInfo_v2", "compute_v3"]


def test_a_full_reading_asks_every_list_afresh(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    probe.glance()
    nvml.cards[GPU_0].compute[0] = (os.getpid(), 302 * MIB)
    assert figures(probe)["process", GPU_0] == 300 * MIB
    assert by_name(probe.read())["process", GPU_0] == 302 * MIB


def test_a_glance_after_settling_asks_afresh(nvml: FakeNvml, probe: NvmlProbe) -> None:
    probe.glance()
    nvml.cards[GPU_0].compute[0] = (os.getpid(), 302 * MIB)
    probe.settle()
    assert figures(probe)["process", GPU_0] == 302 * MIB


def test_a_process_in_two_lists_counts_once(nvml: FakeNvml, probe: NvmlProbe) -> None:
    nvml.cards[GPU_0].graphics = [(os.getpid(), 310 * MIB)]
    assert figures(probe)["process", GPU_0] == 310 * MIB


def test_a_drawing_process_is_found_in_the_graphics_list(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    nvml.cards[GPU_0].compute = []
    nvml.cards[GPU_0].graphics = [(os.getpid(), 310 * MIB)]
    assert figures(probe)["process", GPU_0] == 310 * MIB


def test_an_unlisted_process_is_unavailable_and_never_0(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    nvml.cards[GPU_0].compute = [(1, 100 * MIB)]
    assert figures(probe) == {("device_used", GPU_0): 400 * MIB}
    assert said(probe) == [f"nvml.process {GPU_0}: unavailable, {UNLISTED}"]


def test_a_process_that_is_listed_late_is_trusted_from_then_on(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    nvml.cards[GPU_0].compute = []
    probe.glance()
    nvml.cards[GPU_0].compute = [(os.getpid(), 300 * MIB)]
    assert figures(probe)["process", GPU_0] == 300 * MIB
    assert said(probe) == []


def test_the_search_for_an_unlisted_process_ends(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    nvml.cards[GPU_0].compute = []
    for _glance in range(20):
        probe.glance()
    nvml.calls.clear()
    probe.glance()
    assert list(nvml.calls) == ["nvmlDeviceGetMemoryInfo_v2"]
    assert said(probe) == [f"nvml.process {GPU_0}: unavailable, {UNLISTED}"]


@pytest.mark.parametrize("used", [None, (1 << 64) - 1], ids=["None", "all ones"])
def test_a_process_without_bytes_is_unavailable(
    nvml: FakeNvml, probe: NvmlProbe, used: int | None
) -> None:
    nvml.cards[GPU_0].compute = [(os.getpid(), used)]
    assert figures(probe) == {("device_used", GPU_0): 400 * MIB}
    assert said(probe) == [f"nvml.process {GPU_0}: unavailable, {UNBOOKED}"]


def test_a_process_that_vanishes_from_the_list_is_an_error(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    probe.glance()
    nvml.cards[GPU_0].compute = []
    nvml.cards[GPU_0].used = 0
    assert figures(probe) == {("device_used", GPU_0): 0}
    assert said(probe) == [
        f"nvml.process {GPU_0}: error, this process is not in the driver's list"
    ]


def test_a_context_that_was_destroyed_really_has_0_bytes(
    nvml: FakeNvml, probe: NvmlProbe, watch: StubWatch
) -> None:
    watch.use_device(1)
    probe.glance()
    assert watch.loaded is not None
    watch.loaded.contexts.remove(0)
    nvml.cards[GPU_0].compute = []
    nvml.cards[GPU_0].used = 0
    assert figures(probe)["process", GPU_0] == 0
    assert said(probe) == []
