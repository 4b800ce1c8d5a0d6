from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies

from pytest_veo.memory.snapshot import Counter
from pytest_veo.probes.base import Probe
from pytest_veo.probes.gauges import Gauge
from pytest_veo.probes.gauges import GaugedProbe
from pytest_veo.probes.gauges import Unreadable
from pytest_veo.probes.gauges import reason_of
from pytest_veo.units import Unit
from tests.probes.conformance import ProbeConformance
from tests.probes.stubs import by_name
from tests.probes.stubs import said


class Lamp:
    """A source whose every reading the test decides."""

    def __init__(self) -> None:
        self.is_lit = False
        self.answers: dict[str, Callable[[], int]] = {}
        self.rests = 0


class LampProbe(GaugedProbe):
    name = "lamp"

    def __init__(self, lamp: Lamp) -> None:
        super().__init__()
        self.lamp = lamp
        self.rest: Callable[[], None] = lambda: None
        self._is_known = False

    def is_active(self) -> bool:
        return self.lamp.is_lit

    def _discover(self) -> None:
        if not self._is_known:
            self._is_known = True
            self._add_quick(self._gauge("left", "GPU-a"))
            self._add_quick(self._gauge("right", "GPU-a"))
            self._add_quick(self._gauge("pair_1", "GPU-b", "pair_2"))
            self._add_slow(self._gauge("slow", "GPU-b"))

    def _gauge(self, name: str, device: str, second: str = "") -> Gauge:
        names = (name, second) if second else (name,)
        counters = [
            Counter(probe=self.name, name=n, unit=Unit.COUNT, device=device)
            for n in names
        ]

        def take() -> tuple[int, ...]:
            return tuple([self.lamp.answers.get(name, lambda: 1)() for name in names])

        return Gauge(counters, take)

    def _bring_to_rest(self) -> None:
        self.rest()


def fail() -> int:
    raise RuntimeError("the bulb is broken\nand a second line")


@pytest.fixture
def lamp() -> Lamp:
    lamp = Lamp()
    lamp.is_lit = True
    return lamp


@pytest.fixture
def probe(lamp: Lamp) -> LampProbe:
    return LampProbe(lamp)


class TestLampProbe(ProbeConformance):
    @pytest.fixture(autouse=True)
    def _lamp(self) -> None:
        self.lamp = Lamp()

    def make_probe(self) -> Probe:
        return LampProbe(self.lamp)

    def start_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lamp.is_lit = True

    def break_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lamp.answers = {"left": fail, "pair_1": fail}


def names(probe: GaugedProbe) -> list[str]:
    return [counter.name for counter in probe.counters]


def test_a_gauge_that_fails_at_first_is_unavailable_by_nature(
    lamp: Lamp, probe: LampProbe
) -> None:
    lamp.answers["left"] = fail
    assert probe.glance() == (1, 1, 1)
    assert said(probe) == [
        "lamp.left GPU-a: unavailable, RuntimeError: the bulb is broken"
    ]


def test_a_gauge_that_fails_after_it_worked_is_an_error(
    lamp: Lamp, probe: LampProbe
) -> None:
    probe.glance()
    lamp.answers["left"] = fail
    assert probe.glance() == (1, 1, 1)
    assert said(probe) == ["lamp.left GPU-a: error, RuntimeError: the bulb is broken"]


def test_a_failed_gauge_does_not_come_back(lamp: Lamp, probe: LampProbe) -> None:
    probe.glance()
    lamp.answers["left"] = fail
    probe.glance()
    lamp.answers["left"] = lambda: 3 << 30
    assert probe.glance() == (1, 1, 1)
    assert "left" not in names(probe)


def test_a_gauge_of_several_counters_takes_its_device_with_it(
    lamp: Lamp, probe: LampProbe
) -> None:
    probe.glance()
    lamp.answers["pair_2"] = fail
    assert probe.glance() == (1, 1)
    assert by_name(probe.read()) == {("left", "GPU-a"): 1, ("right", "GPU-a"): 1}
    assert said(probe) == ["lamp GPU-b: error, RuntimeError: the bulb is broken"]


def test_a_device_lost_late_in_a_glance_leaves_no_figure_of_it(
    lamp: Lamp, probe: LampProbe
) -> None:
    probe.glance()

    def take_the_device() -> int:
        probe._lose_device("GPU-a", "gone")
        return 1

    lamp.answers["pair_1"] = take_the_device
    assert probe.glance() == (1, 1)
    assert names(probe) == ["pair_1", "pair_2"]


def test_a_device_lost_late_in_a_full_reading_leaves_no_figure_of_it(
    lamp: Lamp, probe: LampProbe
) -> None:
    probe.read()
    lamp.answers["pair_1"] = fail
    assert by_name(probe.read()) == {("left", "GPU-a"): 1, ("right", "GPU-a"): 1}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param(-1, "-1 is no count", id="negative"),
        pytest.param(1.5, "1.5 is no count", id="fraction"),
        pytest.param(None, "None is no count", id="nothing"),
        pytest.param(True, "True is no count", id="truth"),
        pytest.param("12", "'12' is no count", id="text"),
    ],
)
def test_what_is_no_count_is_no_figure(
    lamp: Lamp, probe: LampProbe, value: int, reason: str
) -> None:
    lamp.answers["left"] = lambda: value
    assert probe.glance() == (1, 1, 1)
    assert said(probe) == [f"lamp.left GPU-a: unavailable, {reason}"]


def test_a_rest_that_fails_is_told_once_and_loses_no_figure(probe: LampProbe) -> None:
    def stumble() -> None:
        raise OSError("the device does not answer")

    probe.glance()
    probe.rest = stumble
    probe.settle()
    probe.settle()
    assert said(probe) == [
        "lamp: error, settling failed: OSError: the device does not answer"
    ]
    assert probe.glance() == (1, 1, 1, 1)


def test_a_discovery_that_fails_is_told_once_and_not_tried_again(lamp: Lamp) -> None:
    class Stumbling(LampProbe):
        looks = 0

        def _discover(self) -> None:
            self.looks += 1
            raise AttributeError("module 'lamp' has no attribute 'bulbs'")

    probe = Stumbling(lamp)
    assert probe.glance() == ()
    assert probe.read() == ()
    assert probe.looks == 1
    assert said(probe) == [
        "lamp: unavailable, AttributeError: module 'lamp' has no attribute 'bulbs'"
    ]


@given(broken=strategies.sets(strategies.sampled_from(["left", "right", "pair_1"])))
def test_whatever_breaks_the_glance_matches_its_counters(broken: set[str]) -> None:
    lamp = Lamp()
    probe = LampProbe(lamp)
    probe.glance()
    lamp.answers = dict.fromkeys(broken, fail)
    assert len(probe.glance()) == len(probe.counters)
    assert not broken & set(names(probe))
    assert len(probe.troubles) == len(broken)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(ValueError(), "ValueError", id="no message"),
        pytest.param(ValueError("one\ntwo"), "ValueError: one", id="first line only"),
        pytest.param(Unreadable("in our words"), "in our words", id="our own"),
        pytest.param(KeyError("k" * 300), "KeyError: '" + "k" * 199, id="cut"),
    ],
)
def test_a_reason_is_one_line(error: Exception, reason: str) -> None:
    assert reason_of(error) == reason
