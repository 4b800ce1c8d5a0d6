"""The suite itself: each of its tests fails on a probe that breaks that promise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Reading
from pytest_veo.memory.snapshot import Trouble
from pytest_veo.probes.base import Probe
from pytest_veo.units import Unit
from tests.probes.conformance import MOST_IDLE_CALLS
from tests.probes.conformance import ProbeConformance


LEFT = Counter(probe="good", name="left", unit=Unit.COUNT)
RIGHT = Counter(probe="good", name="right", unit=Unit.COUNT)
GONE = Trouble("good", "switched off", counter="right", is_error=True)


class Good:
    """Keeps every promise. The bad ones below break one each."""

    name = "good"

    def __init__(self, source: Source) -> None:
        self.source = source
        self.counters: tuple[Counter, ...] = ()
        self.troubles: tuple[Trouble, ...] = ()

    def open(self) -> None:
        pass

    def is_active(self) -> bool:
        return self.source.is_on

    def look(self) -> None:
        if self.source.is_broken:
            if self.counters != (LEFT,):
                self.counters = (LEFT,)
                self.troubles = (GONE,)
        elif not self.counters:
            self.counters = (LEFT, RIGHT)

    def glance(self) -> tuple[int, ...]:
        self.look()
        return (1, 2) if len(self.counters) == 2 else (1,)

    def settle(self) -> None:
        pass

    def read(self) -> tuple[Reading, ...]:
        values = self.glance()
        return tuple(map(Reading, self.counters, values))

    def close(self) -> None:
        self.counters = ()


class Source:
    is_on = False
    is_broken = False


class TestGood(ProbeConformance):
    kind: type[Any] = Good

    def make_probe(self) -> Probe:
        self.source = Source()
        probe: Probe = self.kind(self.source)
        return probe

    def start_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source.is_on = True

    def break_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source.is_broken = True


class Loud(Good):
    name = "Good Probe"


class Mute(Good):
    settle = None  # type: ignore[assignment]


class Importing(Good):
    def open(self) -> None:
        __import__("torch")


class Eager(Good):
    def is_active(self) -> bool:
        return True


class Slow(Good):
    def is_active(self) -> bool:
        for _call in range(MOST_IDLE_CALLS):
            self.settle()
        return super().is_active()


class Misaligned(Good):
    def glance(self) -> tuple[int, ...]:
        return (*super().glance(), 3)


class Doubled(Good):
    def look(self) -> None:
        self.counters = (LEFT, Counter(probe="good", name="left", unit=Unit.BYTES))


class Borrowed(Good):
    def look(self) -> None:
        self.counters = (LEFT, Counter(probe="other", name="left", unit=Unit.COUNT))


class Unexplained(Good):
    def look(self) -> None:
        super().look()
        self.troubles = (Trouble("good", ""),)


class Fractional(Good):
    def glance(self) -> tuple[int, ...]:
        self.look()
        return (1, 2.5)  # type: ignore[return-value]


class Negative(Good):
    def glance(self) -> tuple[int, ...]:
        self.look()
        return (1, -2)


class Forgetful(Good):
    def read(self) -> tuple[Reading, ...]:
        return super().read()[:1]


class Repeating(Good):
    def read(self) -> tuple[Reading, ...]:
        return super().read() * 2


class Contradicting(Good):
    def look(self) -> None:
        super().look()
        self.troubles = (Trouble("good", "unavailable, and still 0", counter="left"),)


class Restless(Good):
    def look(self) -> None:
        self.counters = (*[LEFT], RIGHT)


class Collecting(Good):
    def glance(self) -> tuple[int, ...]:
        import gc

        gc.collect()
        return super().glance()


class Hoarding(Good):
    hoard: list[object] = []

    def glance(self) -> tuple[int, ...]:
        self.hoard.append(object())
        return super().glance()


class Losing(Good):
    def settle(self) -> None:
        self.look = lambda: setattr(self, "counters", (LEFT,))  # type: ignore[method-assign]


class Raising(Good):
    def look(self) -> None:
        if self.source.is_broken:
            raise OSError("the source is broken")
        super().look()


class Zeroing(Good):
    def glance(self) -> tuple[int, ...]:
        self.counters = (LEFT, RIGHT)
        return (1, 0) if self.source.is_broken else (1, 2)


class Silent(Good):
    def look(self) -> None:
        super().look()
        self.troubles = ()


class Mutating(Good):
    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.list: list[Trouble] = []
        self.troubles = self.list  # type: ignore[assignment]

    def look(self) -> None:
        if self.source.is_broken:
            self.counters = (LEFT,)
            self.list.append(GONE)
        else:
            self.counters = (LEFT, RIGHT)


class Clinging(Good):
    def close(self) -> None:
        pass


class Fragile(Good):
    def close(self) -> None:
        if self.source.is_broken:
            raise OSError("the source is broken")
        super().close()


BAD = [
    (Mute, "it_speaks_the_protocol"),
    (Loud, "its_name_is_one_lower_case_word"),
    (Importing, "to_open_and_to_ask_imports_no_library"),
    (Eager, "it_is_idle_until_its_source_is_used"),
    (Slow, "to_find_out_that_it_is_idle_costs_next_to_nothing"),
    (Misaligned, "a_glance_has_one_figure_for_each_counter"),
    (Doubled, "no_two_counters_share_name_and_device"),
    (Borrowed, "its_counters_and_troubles_carry_its_name"),
    (Unexplained, "every_trouble_has_a_reason"),
    (Fractional, "every_figure_is_a_whole_number"),
    (Negative, "every_figure_is_a_whole_number"),
    (Forgetful, "a_full_reading_contains_what_a_glance_shows"),
    (Repeating, "a_full_reading_names_no_counter_twice"),
    (Contradicting, "a_figure_that_is_missing_is_no_reading_as_well"),
    (Restless, "the_same_counters_stay_the_same_object"),
    (Collecting, "a_glance_collects_nothing"),
    (Hoarding, "a_glance_leaves_nothing_behind"),
    (Losing, "to_settle_changes_no_list"),
    (Raising, "it_survives_a_source_that_fails"),
    (Zeroing, "a_figure_that_failed_is_gone_and_never_0"),
    (Silent, "a_figure_that_failed_is_an_error_with_its_reason"),
    (Mutating, "lists_are_replaced_and_never_changed"),
    (Clinging, "to_close_twice_is_fine"),
    (Fragile, "to_close_after_a_failure_is_fine"),
]


def run(kind: type[Any], test: str) -> None:
    """Run one test of the suite on one kind of probe, fixtures and all."""
    suite = TestGood()
    suite.kind = kind
    monkeypatch = pytest.MonkeyPatch()
    try:
        method: Callable[..., None] = getattr(suite, f"test_{test}")
        wanted = method.__code__.co_varnames[1 : method.__code__.co_argcount]
        method(**arguments(suite, wanted, monkeypatch))
    finally:
        monkeypatch.undo()


def arguments(
    suite: ProbeConformance, wanted: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> dict[str, object]:
    given: dict[str, object] = {"monkeypatch": monkeypatch}
    if set(wanted) & {"idle", "probe", "broken"}:
        probe = suite.make_probe()
        probe.open()
        given |= {"idle": probe, "probe": probe, "broken": probe}
    if set(wanted) & {"probe", "broken"}:
        suite.start_source(monkeypatch)
    if "broken" in wanted:
        probe.glance()
        probe.read()
        suite.break_source(monkeypatch)
    return {name: given[name] for name in wanted}


@pytest.mark.parametrize(
    ("kind", "test"), BAD, ids=[f"{kind.__name__}" for kind, _test in BAD]
)
def test_a_broken_promise_is_noticed(
    kind: type[Any], test: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    run(Good, test)
    with pytest.raises((AssertionError, pytest.fail.Exception, ImportError, OSError)):
        run(kind, test)


def test_every_promise_has_a_probe_that_breaks_it() -> None:
    promises = {name for name in dir(ProbeConformance) if name.startswith("test_")}
    assert promises == {f"test_{test}" for _kind, test in BAD}
