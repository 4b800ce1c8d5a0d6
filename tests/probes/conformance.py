"""The tests that every probe passes, the ones of other packages too.

Subclass `ProbeConformance` in a test module, under a name that pytest collects, and
say how the probe is made, how its source comes to life, and how it breaks:

    class TestMyProbe(ProbeConformance):
        def make_probe(self) -> Probe: ...
        def start_source(self, monkeypatch) -> None: ...
        def break_source(self, monkeypatch) -> None: ...

The source may be the real one or a stand-in put into `sys.modules`; `monkeypatch`
takes it away again. What a stand-in's figures are is up to it: none of these tests
looks for a certain value, only for what the protocol promises about any.
"""

from __future__ import annotations

import abc
import gc
import importlib.abc
import sys
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import FrameType
from types import ModuleType

import pytest

from pytest_veo.memory.snapshot import Counter
from pytest_veo.probes.base import Probe


HEAVY = (
    "cuda",
    "cupy",
    "jax",
    "numba",
    "numpy",
    "onnxruntime",
    "pandas",
    "psutil",
    "pynvml",
    "rmm",
    "scipy",
    "torch",
)
MOST_IDLE_CALLS = 16
"""Python calls an idle probe may make to find out that it is idle."""


class ProbeConformance(abc.ABC):
    """What the protocol in `pytest_veo.probes.base` promises, as tests."""

    is_always_active = False
    """True for a source that is part of every process, such as the host."""
    can_break = True
    """False for a source that cannot fail; no probe of a library may say so."""

    @abc.abstractmethod
    def make_probe(self) -> Probe:
        """A new probe that was not opened yet."""

    @abc.abstractmethod
    def start_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Import and initialise the source, with something in it to read."""

    @abc.abstractmethod
    def break_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make every later reading of the source fail."""

    @pytest.fixture
    def idle(self) -> Iterator[Probe]:
        """A probe that was opened before its source came to life."""
        probe = self.make_probe()
        probe.open()
        yield probe
        probe.close()

    @pytest.fixture
    def probe(self, idle: Probe, monkeypatch: pytest.MonkeyPatch) -> Probe:
        """A probe that has seen its source come to life."""
        idle.is_active()
        self.start_source(monkeypatch)
        assert idle.is_active(), "the source is started, yet the probe is not active"
        return idle

    @pytest.fixture
    def broken(self, probe: Probe, monkeypatch: pytest.MonkeyPatch) -> Probe:
        """A probe that worked, and whose source now fails."""
        if not self.can_break:
            pytest.skip("this source cannot fail")
        probe.glance()
        probe.read()
        self.break_source(monkeypatch)
        return probe

    def test_it_speaks_the_protocol(self) -> None:
        assert isinstance(self.make_probe(), Probe)

    def test_its_name_is_one_lower_case_word(self) -> None:
        name = self.make_probe().name
        assert name.isidentifier()
        assert name == name.lower()

    def test_to_open_and_to_ask_imports_no_library(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with imports_watched(monkeypatch) as imported:
            probe = self.make_probe()
            probe.open()
            probe.is_active()
            probe.close()
        assert imported == []

    def test_it_is_idle_until_its_source_is_used(self, idle: Probe) -> None:
        if self.is_always_active:
            pytest.skip("this source is part of every process")
        assert idle.is_active() is False
        assert idle.counters == ()
        assert idle.troubles == ()

    def test_to_find_out_that_it_is_idle_costs_next_to_nothing(
        self, idle: Probe
    ) -> None:
        idle.is_active()
        assert calls_of(idle.is_active) <= MOST_IDLE_CALLS

    def test_a_glance_has_one_figure_for_each_counter(self, probe: Probe) -> None:
        figures = probe.glance()
        assert len(figures) == len(probe.counters)

    def test_no_two_counters_share_name_and_device(self, probe: Probe) -> None:
        probe.glance()
        counters = [*probe.counters, *counters_of(probe)]
        names = {(counter.key, counter.device): counter for counter in counters}
        assert len(names) == len(set(counters))

    def test_its_counters_and_troubles_carry_its_name(self, probe: Probe) -> None:
        probe.glance()
        owners = {counter.probe for counter in counters_of(probe)}
        owners |= {trouble.probe for trouble in probe.troubles}
        assert owners == {probe.name}

    def test_every_trouble_has_a_reason(self, probe: Probe) -> None:
        probe.glance()
        probe.read()
        assert all(trouble.reason for trouble in probe.troubles)

    def test_every_figure_is_a_whole_number(self, probe: Probe) -> None:
        figures = [*probe.glance(), *(reading.value for reading in probe.read())]
        assert figures
        assert {type(figure) for figure in figures} == {int}
        assert min(figures) >= 0

    def test_a_full_reading_contains_what_a_glance_shows(self, probe: Probe) -> None:
        probe.glance()
        assert set(probe.counters) <= set(counters_of(probe))

    def test_a_full_reading_names_no_counter_twice(self, probe: Probe) -> None:
        counters = counters_of(probe)
        assert len(counters) == len(set(counters))

    def test_a_figure_that_is_missing_is_no_reading_as_well(self, probe: Probe) -> None:
        read = {(counter.name, counter.device) for counter in counters_of(probe)}
        missing = {(trouble.counter, trouble.device) for trouble in probe.troubles}
        assert not read & missing

    def test_the_same_counters_stay_the_same_object(self, probe: Probe) -> None:
        probe.glance()
        counters, troubles = probe.counters, probe.troubles
        probe.glance()
        assert probe.counters is counters
        assert probe.troubles is troubles

    def test_a_glance_collects_nothing(
        self, probe: Probe, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def collect(_generation: int = 2) -> int:
            pytest.fail("a glance has collected garbage")

        monkeypatch.setattr(gc, "collect", collect)
        probe.glance()

    def test_a_glance_leaves_nothing_behind(self, probe: Probe) -> None:
        probe.glance()
        assert blocks_left_by(probe.glance) == 0

    def test_to_settle_changes_no_list(self, probe: Probe) -> None:
        probe.glance()
        counters = probe.counters
        probe.settle()
        probe.glance()
        assert probe.counters == counters

    def test_it_survives_a_source_that_fails(self, broken: Probe) -> None:
        assert len(broken.glance()) == len(broken.counters)
        broken.settle()
        broken.read()
        assert len(broken.glance()) == len(broken.counters)

    def test_a_figure_that_failed_is_gone_and_never_0(
        self, probe: Probe, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not self.can_break:
            pytest.skip("this source cannot fail")
        before = counters_of(probe)
        self.break_source(monkeypatch)
        lost = set(before) - set(counters_of(probe))
        assert lost, "nothing failed: `break_source` did not break it"
        probe.glance()
        assert not lost & set(probe.counters)

    def test_a_figure_that_failed_is_an_error_with_its_reason(
        self, probe: Probe, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not self.can_break:
            pytest.skip("this source cannot fail")
        probe.glance()
        before = counters_of(probe)
        self.break_source(monkeypatch)
        after = counters_of(probe)
        errors = [trouble for trouble in probe.troubles if trouble.is_error]
        for counter in set(before) - set(after):
            assert any(
                error.device == counter.device and error.counter in ("", counter.name)
                for error in errors
            ), f"{counter} is gone without an error"

    def test_lists_are_replaced_and_never_changed(self, broken: Probe) -> None:
        counters, troubles = broken.counters, broken.troubles
        kept = tuple(counters), tuple(troubles)
        broken.glance()
        broken.read()
        assert (counters, troubles) == kept
        assert broken.troubles is not troubles

    def test_to_close_twice_is_fine(self, probe: Probe) -> None:
        probe.glance()
        probe.close()
        probe.close()
        assert probe.counters == ()

    def test_to_close_after_a_failure_is_fine(self, broken: Probe) -> None:
        broken.glance()
        broken.close()


def counters_of(probe: Probe) -> Sequence[Counter]:
    """The counters of a full reading."""
    return [reading.counter for reading in probe.read()]


def calls_of(question: Callable[[], object]) -> int:
    """How many Python functions a call enters, itself included."""
    entered = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal entered
        entered += event == "call"

    sys.setprofile(count)
    try:
        question()
    finally:
        sys.setprofile(None)
    return entered


def blocks_left_by(action: Callable[[], object], rounds: int = 300) -> int:
    """Blocks that a call leaves behind, at its best of many calls.

    A free list that fills, or a dictionary that grows, shows in one call or another;
    what is left behind by every call is kept on purpose.
    """
    least = sys.maxsize
    for _round in range(rounds):
        before = sys.getallocatedblocks()
        action()
        least = min(least, sys.getallocatedblocks() - before)
    return max(least, 0)


class _ImportWatch(importlib.abc.MetaPathFinder):
    """Notes every import of a heavy library, and lets it fail."""

    def __init__(self) -> None:
        self.imported: list[str] = []

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in HEAVY:
            self.imported.append(fullname)
            raise ImportError(f"{fullname}: imported while its import is watched")
        return None


@contextmanager
def imports_watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Within it, heavy libraries are not imported yet, and an attempt is noted."""
    for name in list(sys.modules):
        if name.partition(".")[0] in HEAVY:
            monkeypatch.delitem(sys.modules, name)
    watch = _ImportWatch()
    monkeypatch.setattr(sys, "meta_path", [watch, *sys.meta_path])
    yield watch.imported
