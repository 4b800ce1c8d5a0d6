"""Confirming with scripted figures: how long it runs and what it concludes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_veo.measure import confirm as confirm_
from pytest_veo.measure.confirm import Confirmation
from pytest_veo.measure.confirm import Confirmed
from pytest_veo.measure.limits import Limits
from pytest_veo.measure.meter import Meter
from pytest_veo.memory.leak import Course
from pytest_veo.probes.host import DESCRIPTORS
from pytest_veo.probes.host import HEAP
from pytest_veo.testing import ScriptedProbe
from pytest_veo.verdict import SMALL


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripted figures do not change with time."""
    monkeypatch.setattr(confirm_, "LONG_WAITS_S", ())
    monkeypatch.setattr(confirm_, "SHORT_WAITS_S", ())


class ScriptedRunner:
    """Runs a test that does what the script says for its n-th run."""

    def __init__(self, script: Callable[[int], str | None]) -> None:
        self.runs = 0
        self._script = script

    def run(self) -> str:
        self.runs += 1
        return self._script(self.runs) or ""


class ScriptedClock:
    """Each look at it is a second later."""

    def __init__(self, step_ns: int = 1_000_000_000) -> None:
        self._now_ns, self._step_ns = 0, step_ns

    def pass_ns(self, nanoseconds: int) -> None:
        """So much time goes by."""
        self._now_ns += nanoseconds

    def __call__(self) -> int:
        self._now_ns += self._step_ns
        return self._now_ns


def confirm(
    probe: ScriptedProbe,
    script: Callable[[int], str | None],
    *,
    clock: Callable[[], int] = lambda: 0,
    most_runs: int = 100,
    patience_ns: int = 0,
    patience_runs: int = 0,
) -> Confirmed:
    limits = Limits(
        most_runs=most_runs,
        time_ns=5_000_000_000,
        patience_ns=patience_ns,
        patience_runs=patience_runs,
    )
    confirmation = Confirmation(
        Meter([probe]), ScriptedRunner(script), limits, clock=clock
    )
    return confirmation.go()


def test_steady_growth_is_decided_in_few_runs() -> None:
    probe = ScriptedProbe("fake", used=0)
    shown = confirm(probe, lambda _: probe.grow("used", 4096))
    assert shown.courses == (Course.GROWING,)
    assert shown.growing() == (0,)
    assert shown.runs == 3
    assert shown.series == ((0, 4096, 8192, 12288),)


def test_growth_that_stops_is_seen_to_stop() -> None:
    probe = ScriptedProbe("fake", used=0)

    def script(run: int) -> None:
        probe.grow("used", 4096 if run < 3 else 0)

    shown = confirm(probe, script)
    assert shown.courses == (Course.FLAT,)
    assert shown.is_decided
    assert shown.runs <= 8


def test_growth_on_every_second_run_is_found() -> None:
    probe = ScriptedProbe("fake", used=0)
    shown = confirm(probe, lambda run: probe.grow("used", 4096 * (run % 2)))
    assert shown.courses == (Course.GROWING,)
    assert shown.runs > 12


def test_what_settling_frees_is_no_growth() -> None:
    probe = ScriptedProbe("fake", used=0)

    def script(_: int) -> None:
        probe.grow("used", 4096)
        probe.free_when_settled("used", 4096)

    assert confirm(probe, script).courses == (Course.FLAT,)


def test_a_run_that_does_not_pass_ends_it() -> None:
    probe = ScriptedProbe("fake", used=0)

    def script(run: int) -> str:
        probe.grow("used", 4096)
        return "it failed" if run == 2 else ""

    shown = confirm(probe, script)
    assert (shown.runs, shown.stopped) == (2, "it failed")
    assert not shown.is_decided


def test_a_counter_that_is_lost_ends_it() -> None:
    probe = ScriptedProbe("fake", used=0, other=0)

    def script(run: int) -> None:
        probe.grow("used", 4096)
        if run == 2:
            probe.lose("other", "gone")

    shown = confirm(probe, script)
    assert shown.stopped == "the set of counters changed while it ran"


def test_the_number_of_runs_is_kept() -> None:
    probe = ScriptedProbe("fake", used=0)
    shown = confirm(probe, lambda _: probe.grow("used", 4096), most_runs=2)
    assert shown.runs == 2
    assert shown.courses == (Course.UNDECIDED,)


def test_time_that_is_up_ends_it_after_three_runs() -> None:
    probe = ScriptedProbe("fake", used=0)
    shown = confirm(
        probe,
        lambda run: probe.grow("used", 4096 * (run % 2)),
        clock=ScriptedClock(9_000_000_000),
    )
    assert (shown.runs, shown.stopped) == (3, "its time was up")


def test_patience_waits_for_growth_to_end() -> None:
    probe = ScriptedProbe("fake", used=0)

    def script(run: int) -> None:
        probe.grow("used", 4096 if run <= 20 else 0)

    shown = confirm(probe, script, patience_ns=10, patience_runs=60)
    assert shown.courses == (Course.FLAT,)
    assert 20 < shown.runs < 60


def test_what_piles_up_ends_it() -> None:
    probe = ScriptedProbe("fake", used=0)
    shown = confirm(
        probe,
        lambda _: probe.grow("used", 100 << 20),
        patience_ns=10,
        patience_runs=60,
    )
    assert shown.courses == (Course.GROWING,)
    assert shown.runs == 5


@pytest.mark.parametrize("change", [0, -4096])
def test_no_growth_is_decided_at_once(change: int) -> None:
    probe = ScriptedProbe("fake", used=1 << 30)
    shown = confirm(probe, lambda _: probe.grow("used", change))
    assert shown.courses == (Course.FLAT,)
    assert shown.runs <= 4


@pytest.mark.parametrize(
    ("run_ns", "quiet_runs"), [(1, 12), (2, 6), (5, 3), (100, 3), (0, 12)]
)
def test_so_many_quiet_runs_as_there_is_time_for_clear_a_counter(
    run_ns: int, quiet_runs: int
) -> None:
    limits = Limits(most_runs=9, time_ns=9, quiet_ns=12)
    assert limits.quiet_runs_of(run_ns) == quiet_runs


def test_the_longest_pause_is_that_of_what_goes_on_growing() -> None:
    probe = ScriptedProbe("fake", used=0, once=0)

    def script(run: int) -> None:
        probe.grow("used", 4096 * (run % 3 == 0))
        probe.grow("once", 4096 * (run in (1, 2, 30)))

    shown = confirm(probe, script, most_runs=60)
    assert shown.courses == (Course.GROWING, Course.FLAT)
    assert shown.longest_pause == 3


@pytest.mark.parametrize(
    ("grows_until", "has_ended"), [(0, True), (1, True), (100, False)]
)
def test_growth_has_ended_once_nothing_grows_any_more(
    grows_until: int, has_ended: bool
) -> None:
    probe = ScriptedProbe("fake", used=0)
    shown = confirm(probe, lambda run: probe.grow("used", 512 * (run <= grows_until)))
    assert shown.has_ended is has_ended


def test_cheap_runs_are_many_enough_for_growth_on_every_seventh() -> None:
    limits = Limits(most_runs=90, time_ns=9, quiet_ns=12)
    probe = ScriptedProbe("fake", used=0)

    def script(run: int) -> None:
        probe.grow("used", 4096 * (run % 7 == 0))

    runner = ScriptedRunner(script)
    shown = Confirmation(Meter([probe]), runner, limits, clock=lambda: 0).go()
    assert shown.courses == (Course.GROWING,)
    assert shown.runs > 40


@pytest.mark.parametrize(
    ("period", "ends_as"), [(4, Course.GROWING), (20, Course.FLAT)]
)
def test_a_handle_on_every_fourth_run_is_found_though_waits_make_runs_long(
    period: int, ends_as: Course
) -> None:
    probe = ScriptedProbe("host", descriptors=0)
    probe.counters = (DESCRIPTORS,)
    clock = ScriptedClock(0)

    def script(run: int) -> None:
        grew = int(run % period == 0)
        probe.grow("descriptors", grew)
        clock.pass_ns(1_000_000 + grew * 400_000_000)

    limits = Limits(most_runs=400, time_ns=10**12, quiet_runs=2, quiet_ns=20_000_000)
    shown = Confirmation(
        Meter([probe]), ScriptedRunner(script), limits, clock=clock
    ).go()
    assert shown.courses == (ends_as,)


@pytest.mark.parametrize(
    ("growth", "stopped", "course", "runs"),
    [
        pytest.param(200, SMALL, Course.UNDECIDED, 16, id="small"),
        pytest.param(70_000, "", Course.GROWING, 12, id="large"),
    ],
)
def test_small_growth_is_not_confirmed_at_any_price(
    growth: int, stopped: str, course: Course, runs: int
) -> None:
    probe = ScriptedProbe("host", heap=0)
    probe.counters = (HEAP,)
    shown = Confirmation(
        Meter([probe]),
        ScriptedRunner(lambda run: probe.grow("heap", growth * (1 + run % 2))),
        Limits(most_runs=600, time_ns=10**12, small_ns=15 * 10**9),
        clock=ScriptedClock(),
    ).go()
    assert (shown.stopped, shown.courses) == (stopped, (course,))
    assert shown.runs == runs
