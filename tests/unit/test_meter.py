"""All probes read as one: who is asked, and what is known when one changes or fails."""

from __future__ import annotations

import gc
import sys

import pytest

from pytest_veo.measure.collector import Collector
from pytest_veo.measure.meter import Meter
from pytest_veo.probes.host import BLOCKS
from pytest_veo.probes.host import HostProbe
from pytest_veo.probes.sleeping import SleepingProbe
from pytest_veo.testing import ScriptedProbe


class Moody(ScriptedProbe):
    """Has something to read, or nothing, or fails."""

    mood = "active"

    def is_active(self) -> bool:
        if self.mood == "broken":
            raise RuntimeError("the device fell off the bus")
        return self.mood == "active"


@pytest.fixture
def host() -> HostProbe:
    probe = HostProbe()
    probe.open()
    if not probe.can_skip_blocks:
        pytest.skip("needs Linux with glibc")
    return probe


@pytest.fixture
def device() -> Moody:
    return Moody("fake", used=5)


def figures(meter: Meter) -> dict[str, int]:
    glance = meter.glance()
    keys = [counter.key for counter in glance.layout]
    return dict(zip(keys, glance.values, strict=True))


def test_what_a_device_s_probe_reads_is_read_each_time(
    host: HostProbe, device: Moody
) -> None:
    meter = Meter([host, device])
    for used in (5, 5, 12):
        device.grow("used", used - figures(meter)["fake.used"])
        assert figures(meter)["fake.used"] == used


@pytest.mark.parametrize("mood", ["idle", "broken"])
def test_a_probe_that_falls_silent_is_left_out(
    host: HostProbe, device: Moody, mood: str
) -> None:
    meter = Meter([host, device])
    assert "fake.used" in figures(meter)
    device.mood = mood
    assert "fake.used" not in figures(meter)
    assert [trouble.reason for trouble in meter.troubles] == (
        ["RuntimeError: the device fell off the bus"] if mood == "broken" else []
    )


def test_a_probe_that_had_nothing_to_read_is_asked_again(
    host: HostProbe, device: Moody
) -> None:
    device.mood = "idle"
    meter = Meter([host, device])
    assert "fake.used" not in figures(meter)
    device.mood = "active"
    assert figures(meter)["fake.used"] == 5


def test_a_counter_that_is_lost_amid_the_session_leaves_the_others(
    host: HostProbe,
) -> None:
    device = ScriptedProbe("fake", used=5, held=8)
    meter = Meter([host, device])
    assert figures(meter)["fake.held"] == 8
    device.lose("held", "gone")
    assert figures(meter)["fake.used"] == 5
    assert "fake.held" not in figures(meter)


def test_a_framework_that_is_imported_wakes_its_probe(
    host: HostProbe, device: Moody, monkeypatch: pytest.MonkeyPatch
) -> None:
    asleep = SleepingProbe("late", lambda: ScriptedProbe("late", n=3), ("late_one",))
    meter = Meter([host, device, asleep])
    assert "late.n" not in figures(meter)
    monkeypatch.setitem(sys.modules, "late_one", sys)
    assert figures(meter)["late.n"] == 3


def test_blocks_may_be_given_beside_a_device(host: HostProbe, device: Moody) -> None:
    meter = Meter([host, device])
    meter.glance()
    assert meter.can_skip_blocks
    glance = meter.glance(lambda: 1234)
    assert glance.layout[0] is BLOCKS
    assert glance.values[0] == 1234
    assert glance.values[-1] == 5


def test_objects_that_were_made_are_told_where_nothing_is_swept() -> None:
    collector = Collector(may_freeze=True)
    gc.collect()
    collector.born()
    kept = [[] for _ in range(50)]  # type: ignore[var-annotated]
    born = collector.born()
    assert born is not None
    assert born >= len(kept)


def test_nobody_knows_what_was_made_once_the_collector_has_run() -> None:
    collector = Collector(may_freeze=True)
    collector.born()
    gc.collect(0)
    assert collector.born() is None
