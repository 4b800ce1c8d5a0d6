"""The leak check of one session: window, gate, settle, confirm, rule.

Hooks at the edge, values through the middle. One item at a time goes through
`Watch.run`, which stands in for pytest's `runtestprotocol`.
"""

from __future__ import annotations

import dataclasses
import datetime
import gc
import time
from typing import TYPE_CHECKING
from typing import Any

import pytest

from pytest_veo.budget import LeakBudget
from pytest_veo.budget import Level
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
from pytest_veo.measure.phases import run_phases
from pytest_veo.measure.release import release_frames
from pytest_veo.measure.ruling import FirstRun
from pytest_veo.measure.ruling import retained
from pytest_veo.measure.ruling import rule
from pytest_veo.measure.settle import settle
from pytest_veo.memory.charge import Ledger
from pytest_veo.rerun import Rerunner
from pytest_veo.rerun import WiderTeardown
from pytest_veo.rerun import forget_last_exception
from pytest_veo.verdict import CLEAN
from pytest_veo.verdict import Outcome
from pytest_veo.verdict import Verdict


if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_veo.settings import Settings


_DEAR_COLLECT_NS = 2_000_000
"""A collection that takes longer makes the survivors be put aside."""


@dataclasses.dataclass(slots=True)
class Tally:
    """What the session did, for its summary."""

    judged: int = 0
    followed: int = 0
    not_followed: int = 0
    confirm_ns: int = 0
    test_ns: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """One item's run: its reports and what was decided."""

    reports: list[pytest.TestReport]
    verdict: Verdict
    first: FirstRun | None
    duration_ns: int


class Watch:
    """Measures and judges every item of a session."""

    def __init__(self, config: pytest.Config, settings: Settings, meter: Meter) -> None:
        self.config = config
        self.settings = settings
        self.meter = meter
        self.gate = Gate()
        self.credit = Credit(settings.confirm_start_ns, settings.confirm_share)
        self.ledger = Ledger()
        self.tally = Tally()
        self._before: Glance | None = None
        self._errors: list[BaseException] = []
        self._is_frozen = False
        self._is_rerunning = False
        self._freeze_soon = False

    # ------------------------------------------------------------------ one item

    def run(
        self, item: pytest.Item, *, log: bool, nextitem: pytest.Item | None
    ) -> Measured:
        """Run the item, judge it, and log it unless `log` is false."""
        budget = self.budget_of(item)
        before = self._start(item)
        wider = WiderTeardown(item)
        began = time.perf_counter_ns()
        with wider.held(lambda: self._looks_guilty(item, budget, before)):
            reports = run_phases(item, log=log, nextitem=nextitem)
        duration_ns = time.perf_counter_ns() - began
        self.tally.test_ns += duration_ns
        self.credit.earn(duration_ns)
        call_passed = len(reports) == 3 and reports[1].passed
        if wider.tore_down and call_passed:
            # It was looked at before the wider scopes went, and looked innocent.
            self.tally.judged += 1
            first, verdict = None, CLEAN
        else:
            first, verdict = self._decide(item, budget, before, reports, duration_ns)
        late = wider.finish()
        if late is not None:
            reports[-1] = late
        if wider.tore_down or self._before is None:
            self._before = self.rest()
        measured = Measured(reports, verdict, first, duration_ns)
        self.report(item, measured)
        if log:
            log_rest(item, reports, call_passed=call_passed)
        return measured

    def report(self, item: pytest.Item, measured: Measured) -> None:
        """Put the verdict on the reports; replaced by the plugin."""

    def budget_of(self, item: pytest.Item) -> LeakBudget:
        """The item's own budget; replaced by the plugin."""
        return self.settings.budget

    def _start(self, item: pytest.Item) -> Glance:
        self.ledger.start_window()
        self._errors.clear()
        if self._before is None:
            self._before = self.rest(freeze=self.settings.freeze)
        return self._before

    def rest(self, *, freeze: bool = False) -> Glance:
        """The figures of a process at rest."""
        if freeze or self._freeze_soon:
            gc.collect()
            if self.settings.freeze:
                gc.freeze()
                self._is_frozen = True
            self._freeze_soon = False
        return self.meter.glance()

    def _looks_guilty(
        self, item: pytest.Item, budget: LeakBudget, before: Glance
    ) -> bool:
        """Whether wider fixtures must stand until the item was looked at."""
        if budget.level is Level.OFF or self._errors:
            return False
        if budget.level is Level.DEEP:
            return True
        after = self.meter.glance()
        return bool(self._suspicions(item, after, self._own_growth(before, after)))

    def _own_growth(self, before: Glance, after: Glance) -> tuple[int, ...]:
        grown = growth(before, after)
        charged = self.ledger.in_window()
        if not charged:
            return tuple(grown)
        return tuple(
            change - charged.get(counter, 0)
            for counter, change in zip(after.layout, grown, strict=True)
        )

    def _suspicions(
        self, item: pytest.Item, after: Glance, grown: tuple[int, ...]
    ) -> list[Suspicion]:
        return self.gate.suspicions(after.layout, grown, _fixtures(item))

    def _decide(
        self,
        item: pytest.Item,
        budget: LeakBudget,
        before: Glance,
        reports: list[pytest.TestReport],
        duration_ns: int,
    ) -> tuple[FirstRun | None, Verdict]:
        if not all(report.passed for report in reports) or len(reports) < 3:
            self._let_go()
            return None, _not_judged(reports)
        if hasattr(reports[1], "wasxfail"):
            self._before = None
            return None, _not_judged(reports)
        after = self.meter.glance()
        grown = self._own_growth(before, after)
        if budget.level is Level.OFF:
            self._before = after
            return None, Verdict(outcome=Outcome.NOT_JUDGED, reason="level is off")
        self.tally.judged += 1
        first = FirstRun(before, after, grown)
        suspicions = self._suspicions(item, after, grown)
        if budget.level is Level.FAST and not suspicions:
            self.gate.saw(after.layout, grown, _fixtures(item))
            self._before = after
            return first, CLEAN
        return self._look_closer(item, budget, before, first, duration_ns)

    def _let_go(self) -> None:
        """Release what failures hold; the next test starts from rest."""
        if not self.config.getoption("usepdb", False):
            for error in self._errors:
                release_frames(error)
            forget_last_exception()
        self._errors.clear()
        gc.collect()
        self._before = None

    # ------------------------------------------------------------------ a suspect

    def _look_closer(
        self,
        item: pytest.Item,
        budget: LeakBudget,
        before: Glance,
        raw: FirstRun,
        duration_ns: int,
    ) -> tuple[FirstRun, Verdict]:
        began = time.perf_counter_ns()
        after = settle(self.meter, before, steps=lambda: self._steps(item))
        spent = time.perf_counter_ns() - began
        self._freeze_soon |= spent > _DEAR_COLLECT_NS
        grown = self._own_growth(before, after)
        first = FirstRun(before, after, grown)
        suspicions = self._suspicions(item, after, grown)
        self._before = after
        if budget.level is Level.FAST and not suspicions:
            self.tally.confirm_ns += spent
            self.credit.spend(spent)
            return first, _collectable(raw, first)
        verdict = self._confirm(item, budget, first, suspicions, duration_ns)
        spent = time.perf_counter_ns() - began
        self.tally.confirm_ns += spent
        self.credit.spend(spent)
        return first, dataclasses.replace(verdict, spent_ns=spent)

    def _steps(self, item: pytest.Item) -> None:
        item.ihook.pytest_veo_settle(config=self.config, item=item)

    def _confirm(
        self,
        item: pytest.Item,
        budget: LeakBudget,
        first: FirstRun,
        suspicions: list[Suspicion],
        duration_ns: int,
    ) -> Verdict:
        if budget.reruns == 0:
            verdict = retained(first, budget)
            return dataclasses.replace(
                verdict,
                outcome=Outcome.UNCONFIRMED if suspicions else Outcome.CLEAN,
                reason="re-runs are not allowed (reruns=0)",
            )
        deep = budget.level is Level.DEEP
        must = deep or any(suspicion.is_large for suspicion in suspicions)
        if not must and not self.credit.affords(4 * duration_ns):
            self.tally.not_followed += 1
            return Verdict(
                outcome=Outcome.UNCONFIRMED,
                reason="small, and the confirming credit was used up",
            )
        self.tally.followed += 1
        shown = self._run_again(item, self._limits(budget, duration_ns))
        verdict = rule(first, shown, budget)
        if verdict.outcome is Outcome.CLEAN:
            self.gate.cleared(suspicions)
        if verdict.outcome is Outcome.CLEAN or verdict is CLEAN:
            return verdict
        judged: Verdict | None = item.ihook.pytest_veo_judged(
            config=self.config, item=item, verdict=verdict
        )
        return judged or verdict

    def _limits(self, budget: LeakBudget, duration_ns: int) -> Limits:
        deep = budget.level is Level.DEEP
        most = 4096 if deep else 256
        patience = 2_000_000_000 if deep else 150_000_000
        return Limits(
            most_runs=most if budget.reruns is None else min(most, budget.reruns),
            time_ns=budget.confirm_time_ns,
            patience_ns=patience,
            patience_runs=1500 if deep else 100,
        )

    def _run_again(self, item: pytest.Item, limits: Limits) -> Confirmed:
        self._is_rerunning = True
        gc.collect()
        gc.freeze()
        try:
            with Rerunner(item) as rerunner:
                confirmation = Confirmation(
                    self.meter, rerunner, limits, steps=lambda: self._steps(item)
                )
                return confirmation.go(settle(self.meter, self.meter.glance()))
        finally:
            self._is_rerunning = False
            if not self.settings.freeze:
                gc.unfreeze()
            self._before = None

    # -------------------------------------------------------------------- hooks

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[None]:
        """Remember what a failure raised, to let go of its frames later."""
        result = yield
        if call.excinfo is not None and not self._is_rerunning:
            self._errors.append(call.excinfo.value)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Book what a wider fixture takes on that fixture."""
        if fixturedef.scope == "function" or self._is_rerunning:
            return (yield)
        booking = self.ledger.begin(f"{fixturedef.argname} ({fixturedef.scope})")
        before = self.meter.glance()
        try:
            return (yield)
        finally:
            after = self.meter.glance()
            taken = zip(after.layout, growth(before, after), strict=True)
            self.ledger.end(fixturedef, booking, dict(taken))


def _fixtures(item: pytest.Item) -> int:
    return len(getattr(item, "fixturenames", ()))


def _not_judged(reports: list[pytest.TestReport]) -> Verdict:
    worst = next((r for r in reports if not r.passed), reports[-1])
    how = "xfailed" if hasattr(worst, "wasxfail") else worst.outcome
    return Verdict(outcome=Outcome.NOT_JUDGED, reason=f"the test {how}")


def _collectable(raw: FirstRun, settled: FirstRun) -> Verdict:
    return CLEAN


def today() -> datetime.date:
    """The date that allowances are held against."""
    return datetime.datetime.now(tz=datetime.UTC).date()
