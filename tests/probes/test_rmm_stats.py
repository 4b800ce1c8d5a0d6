from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_veo.probes.base import Probe
from pytest_veo.probes.rmm_stats import RmmStatsProbe
from tests.probes.conformance import ProbeConformance
from tests.probes.stubs import GPU_0
from tests.probes.stubs import StubWatch
from tests.probes.stubs import figures
from tests.probes.stubs import install
from tests.probes.stubs import said


NO_STATISTICS = (
    f"rmm {GPU_0}: unavailable, the device's resource keeps no statistics: "
    "rmm.statistics.enable_statistics()"
)


class Plain:
    """A resource that counts nothing."""


class Adaptor:
    """A resource on top of another."""

    def __init__(self, upstream: object) -> None:
        self.upstream = upstream

    def get_upstream(self) -> object:
        return self.upstream


class Statistics(Adaptor):
    """Stands for `StatisticsResourceAdaptor`; a dictionary in older versions."""

    def __init__(self, upstream: object, *, is_older: bool = False) -> None:
        super().__init__(upstream)
        self.bytes, self.count = 0, 0
        self.is_older = is_older

    @property
    def allocation_counts(self) -> Any:
        counts = {"current_bytes": self.bytes, "current_count": self.count}
        return counts if self.is_older else SimpleNamespace(**counts)


class Tracking(Adaptor):
    """Stands for `TrackingResourceAdaptor`."""

    def get_allocated_bytes(self) -> int:
        return 4096


class FakeRmm:
    def __init__(self, resource: object) -> None:
        self.resources = {0: resource}

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        mr = SimpleNamespace(get_per_device_resource=self.resources.__getitem__)
        install(monkeypatch, rmm={"mr": mr})


@pytest.fixture
def probe(watch: StubWatch) -> RmmStatsProbe:
    return RmmStatsProbe(watch)


class TestRmmStatsProbe(ProbeConformance):
    def make_probe(self) -> Probe:
        self.watch = StubWatch()
        return RmmStatsProbe(self.watch)

    def start_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rmm = FakeRmm(Statistics(Plain()))
        self.rmm.install(monkeypatch)
        self.watch.use_device(0)

    def break_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rmm.resources.clear()


def test_a_plain_resource_is_unavailable_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, probe: RmmStatsProbe
) -> None:
    FakeRmm(Plain()).install(monkeypatch)
    assert figures(probe) == {}
    assert said(probe) == [NO_STATISTICS]


@pytest.mark.parametrize("is_older", [False, True], ids=["object", "dictionary"])
def test_statistics_are_found_under_other_adaptors(
    monkeypatch: pytest.MonkeyPatch, probe: RmmStatsProbe, is_older: bool
) -> None:
    statistics = Statistics(Plain(), is_older=is_older)
    statistics.bytes, statistics.count = 1000, 2
    FakeRmm(Adaptor(Tracking(statistics))).install(monkeypatch)
    assert figures(probe) == {("allocated", GPU_0): 1000, ("allocations", GPU_0): 2}


def test_a_tracking_adaptor_tells_bytes_only(
    monkeypatch: pytest.MonkeyPatch, probe: RmmStatsProbe
) -> None:
    FakeRmm(Tracking(Plain())).install(monkeypatch)
    assert figures(probe) == {("allocated", GPU_0): 4096}


def test_statistics_that_are_enabled_later_appear_later(
    monkeypatch: pytest.MonkeyPatch, probe: RmmStatsProbe
) -> None:
    rmm = FakeRmm(Plain())
    rmm.install(monkeypatch)
    probe.glance()
    rmm.resources[0] = Statistics(rmm.resources[0])
    assert figures(probe) == {("allocated", GPU_0): 0, ("allocations", GPU_0): 0}
    assert said(probe) == []


def test_figures_of_two_resources_are_never_compared(
    monkeypatch: pytest.MonkeyPatch, probe: RmmStatsProbe
) -> None:
    rmm = FakeRmm(Statistics(Plain()))
    rmm.install(monkeypatch)
    probe.glance()
    rmm.resources[0] = Statistics(rmm.resources[0])
    assert figures(probe) == {}
    assert said(probe) == [f"rmm {GPU_0}: error, the device's resource was replaced"]


def test_more_freed_than_counted_is_no_figure(
    monkeypatch: pytest.MonkeyPatch, probe: RmmStatsProbe
) -> None:
    statistics = Statistics(Plain())
    FakeRmm(statistics).install(monkeypatch)
    probe.glance()
    statistics.bytes = -1000
    assert figures(probe) == {}
    assert said(probe) == [f"rmm {GPU_0}: error, -1000 is no count"]


def test_a_chain_without_end_is_given_up(
    monkeypatch: pytest.MonkeyPatch, probe: RmmStatsProbe
) -> None:
    loop = Adaptor(None)
    loop.upstream = loop
    FakeRmm(loop).install(monkeypatch)
    assert figures(probe) == {}
    assert said(probe) == [NO_STATISTICS]
