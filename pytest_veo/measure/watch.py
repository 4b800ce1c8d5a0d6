"""The leak check of one session: window, gate, settle, confirm, rule.

One item at a time goes through `Watch.run`, which stands in for pytest's
`runtestprotocol`. An innocent item pays for one glance and a comparison.
"""

from __future__ import annotations

import gc
import itertools
import sys
import time
from typing import TYPE_CHECKING
from typing import Any

import pytest

from pytest_veo import timeouts
from pytest_veo.budget import LeakBudget
from pytest_veo.budget import Level
from pytest_veo.measure.collector import Collector
from pytest_veo.measure.debts import Debts
from pytest_veo.measure.debts import unpaid
from pytest_veo.measure.gate import Gate
from pytest_veo.measure.inquiry import Inquiry
from pytest_veo.measure.measured import OFF
from pytest_veo.measure.measured import Measured
from pytest_veo.measure.measured import not_judged
from pytest_veo.measure.meter import Glance
from pytest_veo.measure.meter import Meter
from pytest_veo.measure.meter import growth
from pytest_veo.measure.phases import log_rest
from pytest_veo.measure.phases import passed_first
from pytest_veo.measure.phases import run_phases
from pytest_veo.measure.release import release_frames
from pytest_veo.measure.ruling import FirstRun
from pytest_veo.measure.suspects import Suspect
from pytest_veo.measure.suspects import Suspects
from pytest_veo.measure.thrift import Thrift
from pytest_veo.memory.charge import Ledger
from pytest_veo.probes.host import BLOCKS
from pytest_veo.probes.host import HEAP
from pytest_veo.rerun import WiderTeardown
from pytest_veo.rerun import attempts_left
from pytest_veo.rerun import forget_last_exception
from pytest_veo.verdict import CLEAN


if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Generator
    from collections.abc import Mapping

    from pytest_veo.memory.charge import Amounts
    from pytest_veo.memory.charge import Booking
    from pytest_veo.report.summary import Totals
    from pytest_veo.settings import Settings


DRIFT_BYTES = 1024
"""Heap that grew between two tests and is not booked as either's idle cost."""


class Watch:
    """Measures and judges every item of a session."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        meter: Meter,
        totals: Totals,
        *,
        own_budgets: Mapping[pytest.Item, LeakBudget],
        judged: Callable[[pytest.Item, Measured], None],
        tells_all: bool,
    ) -> None:
        """Ready to run items.

        Args:
            config: the session's.
            settings: the session's.
            meter: reads the figures.
            totals: where to count.
            own_budgets: of the items that have one.
            judged: told of each item before it is logged; may change its reports.
            tells_all: of those, too, that were clean.
        """
        self.config = config
        self.settings = settings
        self.meter = meter
        self.totals = totals
        self.gate = Gate()
        self.ledger = Ledger()
        self.debts = Debts()
        self._closed: list[tuple[Booking, Glance]] = []
        self._looked: FirstRun | None = None
        self._standing: Glance | None = None
        """The figures just before wider scopes went."""
        self.collector = Collector(may_freeze=settings.freeze)
        self.thrift = Thrift()
        self._own_budgets = own_budgets
        self._judged = judged
        self._tells_all = tells_all
        self.inquiry = Inquiry(config, settings, meter, self.gate, totals)
        self.suspects = Suspects(
            meter,
            self.gate,
            self.thrift,
            self.inquiry,
            totals,
            first_run=self._first_run,
        )
        self._before: Glance | None = None
        self._wider: WiderTeardown | None = None
        self._stops = timeouts.stops(config)
        self._errors: list[BaseException] = []

    # ------------------------------------------------------------------ one item

    def run(
        self, item: pytest.Item, *, log: bool, nextitem: pytest.Item | None
    ) -> list[pytest.TestReport]:
        """Run the item, judge it, and log it if `log` is true."""
        wider = self._wider
        if wider is None:
            wider = WiderTeardown(item.session, self._looks_guilty)
            self._wider = wider
        if wider.left_by is not None:
            wider.catch_up(item)
        before = self._start()
        self._standing = self._looked = None
        wider.watch(item)
        try:
            return self._run(item, wider, before, log=log, nextitem=nextitem)
        finally:  # when interrupted, the session's end tears all down
            wider.leave()

    def _run(
        self,
        item: pytest.Item,
        wider: WiderTeardown,
        before: Glance,
        *,
        log: bool,
        nextitem: pytest.Item | None,
    ) -> list[pytest.TestReport]:
        began = time.perf_counter_ns()
        reports = run_phases(item, log=log, nextitem=nextitem)
        for stop in self._stops:
            stop(item)
        measured = Measured(reports, time.perf_counter_ns() - began)
        self.totals.test_ns += measured.duration_ns
        passed = passed_first(reports)
        fell = passed < 2 or reports[2].outcome != "passed"
        # A failed subtest leaves its test's report passed.
        if fell or self._errors or hasattr(reports[1], "wasxfail"):
            self._let_go(measured)
        elif wider.tore_down:
            # Looked at before the wider scopes went, and looked innocent.
            self.totals.judged += 1
            self._before = None
            measured.first = self._looked
        else:
            self._judge(item, before, measured)
        fails = measured.verdict is not CLEAN and measured.verdict.outcome.fails
        if wider.pending or fails:
            self._finish(item, wider, measured, log=log)
        if wider.tore_down:
            self._before = None
            self._close_fixtures(self._standing)
        is_told = self._tells_all or measured.verdict is not CLEAN
        if self.debts.proved:
            measured.leaking_fixtures = self.debts.newly_proved()
            is_told = True
        if is_told:
            self._judged(item, measured)
        if log:
            log_rest(item, reports, passed)
        return reports

    def _finish(
        self, item: pytest.Item, wider: WiderTeardown, measured: Measured, *, log: bool
    ) -> None:
        """Tear down what was held back, or all where the session ends here."""
        if wider.pending:
            self._standing = self.meter.glance()  # re-runs may have moved it
        fails = measured.verdict.outcome.fails
        if fails and not log and attempts_left(item):
            wider.leave_standing(item)
        late = wider.finish(is_last=fails and log and _stops_here(item))
        if late is not None:
            measured.reports[-1] = late

    def _close_fixtures(self, standing: Glance | None) -> None:
        """Wider fixtures have gone: see what they gave back.

        Args:
            standing: the figures before the first of them went.
        """
        closed, self._closed = self._closed, []
        if not closed or standing is None:
            return
        bookings = [booking for booking, _ in closed]
        gc.collect()
        stages = [standing, *(glance for _, glance in closed), self.meter.glance()]
        if any(stage.layout is not standing.layout for stage in stages):
            return  # a device came or went: nothing can be compared
        freed = _freed(stages)
        debtors = self.debts.debtors()
        if any(unpaid(bookings, freed, debtors)):
            self.collector.thaw()  # cycles of what was put aside go only now
            freed = _freed([*stages[:-1], self.meter.glance()])
        self.debts.close(bookings, unpaid(bookings, freed, debtors))

    def _start(self) -> Glance:
        if self.ledger.in_window:
            self.ledger.start_window()
        if self._errors:
            self._errors.clear()
        before = self._before
        if before is None:
            before = self._before = self._at_rest()
            self.thrift.rest()
        else:
            # Since then pytest has logged the last test; its lists grow in leaps.
            drift = self.meter.heap_since(before)
            if drift > DRIFT_BYTES:
                self.ledger.charge(HEAP, drift)
        return before

    def _at_rest(self) -> Glance:
        """The figures of a process at rest, before a test."""
        self.collector.rest(self.totals.test_ns)
        # While the figures after a test are read, those before it are held; so here.
        held = self.meter.glance()
        before = self._collected()
        del held
        return before

    def _collected(self) -> Glance:
        """The figures once what the last test left to the collector is gone."""
        if self.settings.freeze and not self.meter.watches_devices:
            self.collector.sweep()
        return self.meter.glance()

    def _looks_guilty(self, item: pytest.Item) -> bool:
        """Whether wider fixtures must stand until the item was looked at."""
        level = self._own_budgets.get(item, self.settings.budget).level
        if level is Level.OFF or self._errors or self.inquiry.is_rerunning:
            self._standing = self.meter.glance()
            return False
        after = self._standing = self._collected()
        if level is Level.DEEP or self._before is None:
            return True
        self._looked = self._first_run(self._before, after)
        fixtures = len(getattr(item, "fixturenames", ()))
        if self.gate.is_quiet(after.layout, self._looked.growth, fixtures):
            return False
        self.thrift.must_count()
        return True

    def _judge(self, item: pytest.Item, before: Glance, measured: Measured) -> None:
        """Look at a test that has passed; nearly all end here, so calls are few."""
        budget = self.settings.budget
        if self._own_budgets:
            budget = self._own_budgets.get(item, budget)
        fixtures = len(getattr(item, "fixturenames", ()))
        duration_ns = measured.duration_ns
        is_swept = self.settings.freeze and not self.meter.watches_devices
        newborn = self.collector.sweep() if is_swept else self.collector.born()
        thrift = self.thrift
        if thrift.may_skip(newborn, fixtures, duration_ns) and self._may_skip(budget):
            self.totals.together += 1
            after = self.meter.glance(thrift.idle(before.values[0], fixtures))
        else:
            began = time.perf_counter_ns()
            after = self.meter.glance()
            thrift.counted(time.perf_counter_ns() - began)
        self._before = after
        if budget.level is Level.OFF:
            measured.verdict = OFF
            self.totals.not_judged += 1
            return
        self.inquiry.credit.earn(duration_ns)
        grown = self._own_growth(before, after)
        if self._tells_all:
            measured.first = FirstRun(before, after, grown)
        doubted = thrift.beyond_doubt(grown) if thrift.others else grown
        is_quiet = self.gate.is_quiet(after.layout, doubted, fixtures)
        if not is_quiet or budget.level is Level.DEEP:
            first = FirstRun(before, after, grown)
            suspect = Suspect(item, budget, fixtures, duration_ns, first, is_swept)
            looked = self.suspects.look(suspect)
            measured.verdict, measured.first, self._before = looked
        elif thrift.is_counted:
            thrift.saw(grown[0], fixtures)
            if not thrift.others:
                self.gate.saw(after.layout, grown, fixtures)
        self.totals.judged += 1

    def _may_skip(self, budget: LeakBudget) -> bool:
        """Whether anybody else wants to know a test's own blocks."""
        return (
            budget.level is Level.FAST
            and self.settings.archive is None
            and self.meter.can_skip_blocks
            and BLOCKS not in self.ledger.in_window
        )

    def _own_growth(self, before: Glance, after: Glance) -> list[int]:
        grown = growth(before, after)
        charged = self.ledger.in_window
        if charged:
            for place, counter in enumerate(after.layout):
                grown[place] -= charged.get(counter, 0)
        return grown

    def _first_run(self, before: Glance, after: Glance) -> FirstRun:
        return FirstRun(before, after, self._own_growth(before, after))

    def _let_go(self, measured: Measured) -> None:
        """Release what failures hold; the next test starts from rest."""
        self.totals.not_judged += 1
        measured.verdict = not_judged(measured.reports)
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

    # -------------------------------------------------------------------- hooks

    def pytest_exception_interact(self, call: pytest.CallInfo[None]) -> None:
        """Remember what a failure raised, to let go of its frames later."""
        if call.excinfo is not None and not self.inquiry.is_rerunning:
            self._errors.append(call.excinfo.value)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: Any, request: Any
    ) -> Generator[None, Any, Any]:
        """Book what a wider fixture takes on that fixture.

        One of class scope lives no longer than the test where there is no class.
        """
        is_narrow = isinstance(request.node, pytest.Item)
        if is_narrow or self.inquiry.is_rerunning:
            return (yield)
        if self._closed:  # one that another parameter takes the place of
            self._close_fixtures(self._before)
        booking = self.ledger.begin(f"{fixturedef.argname} ({fixturedef.scope})")
        before = self.meter.glance()
        try:
            return (yield)
        finally:
            after = self.meter.glance()
            taken = zip(after.layout, growth(before, after), strict=True)
            self.ledger.end(fixturedef, booking, dict(taken))

    def pytest_fixture_post_finalizer(self, fixturedef: Any) -> None:
        """Note that a wider fixture is torn down."""
        if fixturedef.scope != "function":
            booking = self.ledger.close(fixturedef)
            if booking is not None:
                self._closed.append((booking, self.meter.glance()))


def _freed(stages: list[Glance]) -> list[Amounts]:
    """What came back between each glance and the next."""
    return [
        dict(zip(after.layout, growth(after, before), strict=True))
        for before, after in itertools.pairwise(stages)
    ]


def _stops_here(item: pytest.Item) -> bool:
    """Whether this failure is the one that `-x` or `--maxfail` stops at."""
    most = item.config.getoption("maxfail", 0) or 0
    return 0 < most <= item.session.testsfailed + 1
