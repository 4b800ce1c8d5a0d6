"""The leak check of one session: window, gate, settle, confirm, rule.

One item at a time goes through `Watch.run`, which stands in for pytest's
`runtestprotocol`. An innocent item pays for one glance and a comparison.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import sys
import time
from typing import TYPE_CHECKING
from typing import Any

import pytest

from pytest_veo.budget import LeakBudget
from pytest_veo.budget import Level
from pytest_veo.measure.bounded import Filling
from pytest_veo.measure.bounded import filling_of
from pytest_veo.measure.collector import Collector
from pytest_veo.measure.confirm import Confirmation
from pytest_veo.measure.confirm import Confirmed
from pytest_veo.measure.confirm import Limits
from pytest_veo.measure.gate import Credit
from pytest_veo.measure.gate import Gate
from pytest_veo.measure.gate import Suspicion
from pytest_veo.measure.meter import Glance
from pytest_veo.measure.meter import Meter
from pytest_veo.measure.meter import growth
from pytest_veo.measure.phases import log_rest
from pytest_veo.measure.phases import passed_first
from pytest_veo.measure.phases import run_phases
from pytest_veo.measure.release import release_frames
from pytest_veo.measure.ruling import FirstRun
from pytest_veo.measure.ruling import collectable
from pytest_veo.measure.ruling import into_bounded_place
from pytest_veo.measure.ruling import rule
from pytest_veo.measure.settle import Spares
from pytest_veo.measure.settle import forget_attribute_names
from pytest_veo.measure.settle import settle
from pytest_veo.memory.charge import Ledger
from pytest_veo.memory.leak import LONG_RUNS
from pytest_veo.probes.host import HEAP
from pytest_veo.rerun import Rerunner
from pytest_veo.rerun import WiderTeardown
from pytest_veo.rerun import forget_last_exception
from pytest_veo.verdict import CLEAN
from pytest_veo.verdict import Outcome
from pytest_veo.verdict import Verdict


if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Generator
    from collections.abc import Iterator

    from pytest_veo.report.summary import Totals
    from pytest_veo.settings import Settings


CENSUS_RUNS = 8
"""Re-runs between two looks at the heap's containers."""
DRIFT_BYTES = 1024
"""Heap that grew between two tests and is not booked as either's idle cost."""
SHORT_RUN_NS = 100_000_000
"""A longer run is repeated only three times for it."""


@dataclasses.dataclass
class Measured:
    """One item's run: its reports and what was decided."""

    reports: list[pytest.TestReport]
    duration_ns: int
    first: FirstRun | None = None
    verdict: Verdict = CLEAN


class Watch:
    """Measures and judges every item of a session."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        meter: Meter,
        totals: Totals,
        *,
        budget_of: Callable[[pytest.Item], LeakBudget],
        judged: Callable[[pytest.Item, Measured], None],
    ) -> None:
        """Ready to run items.

        Args:
            config: the session's.
            settings: the session's.
            meter: reads the figures.
            totals: where to count.
            budget_of: an item's own budget.
            judged: told of each item before it is logged; may change its reports.
        """
        self.config = config
        self.settings = settings
        self.meter = meter
        self.totals = totals
        self.gate = Gate()
        self.ledger = Ledger()
        self.spares = Spares()
        self.collector = Collector(may_freeze=settings.freeze)
        self.is_rerunning = False
        self._budget_of = budget_of
        self._judged = judged
        self._credit = Credit(settings.confirm_start_ns, settings.confirm_share)
        self._before: Glance | None = None
        self._wider: WiderTeardown | None = None
        self._errors: list[BaseException] = []

    # ------------------------------------------------------------------ one item

    def run(
        self, item: pytest.Item, *, log: bool, nextitem: pytest.Item | None
    ) -> list[pytest.TestReport]:
        """Run the item, judge it, and log it if `log` is true."""
        wider = self._wider
        if wider is None:
            wider = self._wider = WiderTeardown(item.session)
        before = self._start()
        wider.watch(item, self._looks_guilty)
        began = time.perf_counter_ns()
        reports = run_phases(item, log=log, nextitem=nextitem)
        measured = Measured(reports, time.perf_counter_ns() - began)
        self.totals.test_ns += measured.duration_ns
        passed = passed_first(reports)
        if passed < 2 or not reports[2].passed or hasattr(reports[1], "wasxfail"):
            self._let_go(measured)
        elif wider.tore_down:
            # Looked at before the wider scopes went, and looked innocent.
            self.totals.judged += 1
            self._before = None
        else:
            self._credit.earn(measured.duration_ns)
            self._judge(item, before, measured)
        late = wider.finish()
        if late is not None:
            reports[-1] = late
        if wider.tore_down:
            self._before = None
        self._judged(item, measured)
        if log:
            log_rest(item, reports, passed)
        return reports

    def _start(self) -> Glance:
        self.ledger.start_window()
        if self._errors:
            self._errors.clear()
        before = self._before
        if before is None:
            before = self._before = self._at_rest()
        else:
            # Since then pytest has logged the last test; its lists grow in leaps.
            drift = self.meter.heap_since(before)
            if drift > DRIFT_BYTES:
                self.ledger.charge(HEAP, drift)
        return before

    def _at_rest(self) -> Glance:
        """The figures of a process at rest, before a test."""
        self.collector.rest(self.totals.test_ns)
        return self._collected()

    def _collected(self) -> Glance:
        """The figures once what the last test left to the collector is gone."""
        if self.settings.freeze and not self.meter.watches_devices:
            self.collector.sweep()
        return self.meter.glance()

    def _own_growth(self, before: Glance, after: Glance) -> list[int]:
        grown = growth(before, after)
        charged = self.ledger.in_window()
        if charged:
            for place, counter in enumerate(after.layout):
                grown[place] -= charged.get(counter, 0)
        return grown

    def _looks_guilty(self, item: pytest.Item) -> bool:
        """Whether wider fixtures must stand until the item was looked at."""
        level = self._budget_of(item).level
        if level is Level.OFF or self._errors or self.is_rerunning:
            return False
        if level is Level.DEEP or self._before is None:
            return True
        after = self.meter.glance()
        grown = self._own_growth(self._before, after)
        return not self.gate.is_quiet(after.layout, grown, _fixtures(item))

    def _judge(self, item: pytest.Item, before: Glance, measured: Measured) -> None:
        level = self._budget_of(item).level
        after = self._collected()
        self._before = after
        if level is Level.OFF:
            measured.verdict = _OFF
            return
        self.totals.judged += 1
        grown = self._own_growth(before, after)
        fixtures = _fixtures(item)
        measured.first = FirstRun(before, after, grown)
        if level is Level.DEEP or not self.gate.is_quiet(after.layout, grown, fixtures):
            self._look_closer(item, before, measured)
        else:
            self.gate.saw(after.layout, grown, fixtures)

    def _let_go(self, measured: Measured) -> None:
        """Release what failures hold; the next test starts from rest."""
        self.totals.not_judged += 1
        measured.verdict = _not_judged(measured.reports)
        self._before = None
        if self.config.getoption("usepdb", False):
            return
        last = getattr(sys, "last_value", None)  # an xfailed call's, too
        for error in (*self._errors, last):
            if error is not None:
                release_frames(error)
        del last
        forget_last_exception()
        self._errors.clear()
        gc.collect()

    # ------------------------------------------------------------------ a suspect

    def _look_closer(
        self, item: pytest.Item, before: Glance, measured: Measured
    ) -> None:
        raw = measured.first
        assert raw is not None
        budget = self._budget_of(item)
        began = time.perf_counter_ns()
        first = self._first_run(before, self._settled(item, before))
        suspicions = self.gate.suspicions(
            first.after.layout, first.growth, _fixtures(item)
        )
        measured.first = first
        self._before = first.after
        if suspicions or budget.level is Level.DEEP:
            verdict = self._confirm(item, budget, measured, suspicions)
        else:
            verdict = collectable(raw, first, budget)
        if not verdict.is_leak and not _is_large(suspicions):
            fixtures = _fixtures(item)
            self.gate.saw(raw.after.layout, raw.growth, fixtures)
            self.gate.saw(first.after.layout, first.growth, fixtures, settled=True)
        spent_ns = time.perf_counter_ns() - began
        self.totals.confirm_ns += spent_ns
        self._credit.spend(spent_ns)
        if verdict is not CLEAN:
            verdict = self._reviewed(item, verdict._replace(spent_ns=spent_ns))
        measured.verdict = verdict

    def _first_run(self, before: Glance, after: Glance) -> FirstRun:
        return FirstRun(before, after, self._own_growth(before, after))

    def _settled(self, item: pytest.Item, before: Glance) -> Glance:
        def settled() -> Glance:
            return settle(self.meter, before, steps=lambda: self._steps(item))

        if self.settings.freeze and not self.meter.watches_devices:
            return settled()
        return self.spares.collect(self.meter.glance, settled)

    def _reviewed(self, item: pytest.Item, verdict: Verdict) -> Verdict:
        if verdict.outcome is Outcome.CLEAN:
            return verdict
        other: Verdict | None = item.ihook.pytest_veo_judged(
            config=self.config, item=item, verdict=verdict
        )
        return other or verdict

    def _steps(self, item: pytest.Item) -> None:
        item.ihook.pytest_veo_settle(config=self.config, item=item)

    def _confirm(
        self,
        item: pytest.Item,
        budget: LeakBudget,
        measured: Measured,
        suspicions: list[Suspicion],
    ) -> Verdict:
        first = measured.first
        assert first is not None
        refused = self._why_not_again(budget, measured.duration_ns, suspicions)
        if refused:
            if not suspicions:
                return CLEAN
            self.totals.not_followed += 1
            return unconfirmed(first, suspicions, refused)
        self.totals.followed += 1
        limits = _limits(budget, suspicions, is_experienced=self.gate.is_experienced)
        shown = self._run_again(item, limits._replace(patience_ns=0))
        verdict = rule(first, shown, budget)
        if not verdict.is_leak:
            if verdict.outcome is Outcome.CLEAN:
                self.gate.cleared(suspicions)
            return verdict
        found = self._find_filling(item, shown)
        if found is not None:
            return into_bounded_place(verdict, found, budget)
        if shown.run_ns * LONG_RUNS < limits.patience_ns:
            # Cheap to be patient: growth that ends after all was no leak.
            return rule(first, self._run_again(item, limits), budget)
        return verdict

    def _why_not_again(
        self, budget: LeakBudget, duration_ns: int, suspicions: list[Suspicion]
    ) -> str:
        if budget.reruns == 0:
            return "re-runs are not allowed (reruns=0)"
        if 3 * duration_ns > budget.confirm_time_ns:
            return "three more runs take longer than confirming may (confirm-time)"
        must = budget.level is Level.DEEP or _is_large(suspicions)
        if not must and not self._credit.affords(4 * duration_ns):
            return "small, and the confirming credit is used up (confirm-share)"
        return ""

    def _run_again(self, item: pytest.Item, limits: Limits) -> Confirmed:
        with self._rerunning():
            # What stands now is put aside: collecting after each run is cheap then.
            gc.collect()
            gc.freeze()
            with Rerunner(item) as rerunner:

                def steps() -> None:
                    forget_attribute_names()
                    self._steps(item)

                confirmation = Confirmation(self.meter, rerunner, limits, steps=steps)
                return confirmation.go()

    def _find_filling(self, item: pytest.Item, shown: Confirmed) -> Filling | None:
        """The bounded place that the item's growth goes into, if it does."""
        from pytest_veo.evidence.places import Places

        with self._rerunning(), Rerunner(item) as rerunner:
            gc.unfreeze()
            gc.collect()
            census = Places.take()
            before = self.meter.glance()
            runs = CENSUS_RUNS if shown.run_ns < SHORT_RUN_NS else 3
            for _ in range(runs):
                if rerunner.run():
                    return None
            after = settle(self.meter, before, steps=lambda: self._steps(item))
            return filling_of(census.grown(runs), before, after, runs)

    @contextlib.contextmanager
    def _rerunning(self) -> Iterator[None]:
        """While re-runs of ours go on; the next test starts from new figures."""
        self.is_rerunning = True
        try:
            yield
        finally:
            self.is_rerunning = False
            self._before = None
            if self.settings.freeze:
                gc.freeze()
            else:
                gc.unfreeze()

    # -------------------------------------------------------------------- hooks

    def pytest_exception_interact(self, call: pytest.CallInfo[None]) -> None:
        """Remember what a failure raised, to let go of its frames later."""
        if call.excinfo is not None and not self.is_rerunning:
            self._errors.append(call.excinfo.value)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """Book what a wider fixture takes on that fixture."""
        if fixturedef.scope == "function" or self.is_rerunning:
            return (yield)
        booking = self.ledger.begin(f"{fixturedef.argname} ({fixturedef.scope})")
        before = self.meter.glance()
        try:
            return (yield)
        finally:
            after = self.meter.glance()
            taken = zip(after.layout, growth(before, after), strict=True)
            self.ledger.end(fixturedef, booking, dict(taken))


_OFF = Verdict(outcome=Outcome.NOT_JUDGED, reason="its level is off")


def _is_large(suspicions: list[Suspicion]) -> bool:
    return any(suspicion.is_large for suspicion in suspicions)


def _fixtures(item: pytest.Item) -> int:
    return len(getattr(item, "fixturenames", ()))


def _not_judged(reports: list[pytest.TestReport]) -> Verdict:
    worst = next((r for r in reports if not r.passed), reports[1])
    how = "xfailed" if hasattr(worst, "wasxfail") else worst.outcome
    return Verdict(outcome=Outcome.NOT_JUDGED, reason=f"the test {how}")


def unconfirmed(first: FirstRun, suspicions: list[Suspicion], reason: str) -> Verdict:
    """The verdict on growth that was not followed up."""
    found = (first.finding(suspicion.counter) for suspicion in suspicions)
    return Verdict(
        outcome=Outcome.UNCONFIRMED,
        findings=tuple(finding for finding in found if finding is not None),
        reason=reason,
    )


def _limits(
    budget: LeakBudget, suspicions: list[Suspicion], *, is_experienced: bool
) -> Limits:
    deep = budget.level is Level.DEEP
    most = 4096 if deep else 256
    hasty_runs = 1 if is_experienced and not _is_large(suspicions) else 2
    return Limits(
        most_runs=most if budget.reruns is None else min(most, budget.reruns),
        time_ns=budget.confirm_time_ns,
        patience_ns=2_000_000_000 if deep else 150_000_000,
        patience_runs=1500 if deep else 100,
        suspects=None if deep else frozenset(s.counter for s in suspicions),
        quiet_runs=3 if deep else hasty_runs,
    )
