"""A suspect's inquiry: run it again, look where it grows, explain what leaks."""

from __future__ import annotations

import contextlib
import gc
import time
from typing import TYPE_CHECKING

from pytest_veo.budget import LeakBudget
from pytest_veo.budget import Level
from pytest_veo.evidence import frozen
from pytest_veo.measure import stock
from pytest_veo.measure.bounded import filling_of
from pytest_veo.measure.bounded import goes_on
from pytest_veo.measure.bounded import turning
from pytest_veo.measure.confirm import Confirmation
from pytest_veo.measure.confirm import Confirmed
from pytest_veo.measure.gate import Credit
from pytest_veo.measure.gate import Suspicion
from pytest_veo.measure.gate import any_large
from pytest_veo.measure.lateness import WAITS_S
from pytest_veo.measure.lateness import Rounds
from pytest_veo.measure.lateness import anything_stays
from pytest_veo.measure.lateness import by_run
from pytest_veo.measure.lateness import came_back
from pytest_veo.measure.lateness import ended
from pytest_veo.measure.lateness import flat_on_host
from pytest_veo.measure.lateness import floor_of_round
from pytest_veo.measure.lateness import has_piled_up
from pytest_veo.measure.lateness import outwait_strays
from pytest_veo.measure.lateness import some_have_ended
from pytest_veo.measure.limits import MOST_QUIET_RUNS
from pytest_veo.measure.limits import Limits
from pytest_veo.measure.limits import in_rounds
from pytest_veo.measure.limits import lasting
from pytest_veo.measure.limits import limits_of
from pytest_veo.measure.limits import patient
from pytest_veo.measure.ruling import FirstRun
from pytest_veo.measure.ruling import into_bounded_place
from pytest_veo.measure.ruling import rule
from pytest_veo.measure.ruling import unconfirmed
from pytest_veo.measure.settle import forget_attribute_names
from pytest_veo.measure.settle import settle
from pytest_veo.memory.leak import LONG_RUNS
from pytest_veo.memory.snapshot import HOST
from pytest_veo.rerun import Rerunner
from pytest_veo.verdict import CLEAN
from pytest_veo.verdict import SMALL
from pytest_veo.verdict import Verdict


if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Iterator

    import pytest

    from pytest_veo.measure.bounded import Filling
    from pytest_veo.measure.gate import Gate
    from pytest_veo.measure.meter import Glance
    from pytest_veo.measure.meter import Meter
    from pytest_veo.report.summary import Totals
    from pytest_veo.settings import Settings


CENSUS_RUNS = 8
"""Re-runs between two looks at the heap's containers."""
EVIDENCE_RUNS = 4
"""Re-runs while allocations are traced."""
FEW_RUNS = 3
"""The same for tests that take long."""
SHORT_RUN_NS = 100_000_000
"""A longer run is long."""


ROUND_RUNS = 8
"""Re-runs between two waits for threads and children that end late, at most."""
ROUND_NS = 400_000_000
"""What they may take."""


class Inquiry:
    """Looks into suspects; may run them again while the credit lasts."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        meter: Meter,
        gate: Gate,
        totals: Totals,
    ) -> None:
        self._config = config
        self._settings = settings
        self._meter = meter
        self._gate = gate
        self._totals = totals
        self.credit = Credit(settings.confirm_start_ns, settings.confirm_share)
        self.is_rerunning = False
        self._ends_late = False
        """Whether threads or children of the suspect have to be waited for."""
        self.ran = False
        """Whether the last suspect was run again: the figures have moved."""
        self._census_ns = 0
        """What the last look at all containers of the heap took."""

    def settle(self, item: pytest.Item, before: Glance) -> Glance:
        """The figures at rest, other plugins' settle steps included."""
        return settle(self._meter, before, steps=lambda: self._steps(item))

    def _steps(self, item: pytest.Item) -> None:
        item.ihook.pytest_veo_settle(config=self._config, item=item)

    def confirm(
        self,
        item: pytest.Item,
        budget: LeakBudget,
        first: FirstRun,
        duration_ns: int,
        suspicions: list[Suspicion],
    ) -> Verdict:
        """The verdict on a suspect, or on any test at level deep.

        Args:
            item: the test.
            budget: its budget.
            first: its first run, settled.
            duration_ns: what that took.
            suspicions: counters above their gates.
        """
        self.ran = False
        refused = self._why_not_again(budget, duration_ns, suspicions)
        if refused:
            if not suspicions:
                return CLEAN
            return unconfirmed(first, [s.counter for s in suspicions], refused)
        self.ran = True
        self._totals.followed += 1
        limits = limits_of(
            budget,
            suspicions,
            is_experienced=self._gate.is_experienced,
            credit_ns=self.credit.left_ns,
        )
        count = max(1, min(ROUND_RUNS, ROUND_NS // max(1, duration_ns)))
        self._ends_late = False
        shown = self._run_again(item, limits._replace(patience_ns=0))
        verdict = rule(first, shown, budget)
        if verdict.is_leak and self._is_too_dear(shown, limits):
            growing = [shown.layout[place] for place in shown.growing()]
            verdict = unconfirmed(first, growing, SMALL)._replace(runs=shown.runs)
        elif verdict.is_leak or some_have_ended(shown):
            verdict = self._certain(item, budget, first, shown, limits, count)
        if not verdict.is_leak:
            outwait_strays(self._meter, first.after)
        return verdict

    def _is_too_dear(self, shown: Confirmed, limits: Limits) -> bool:
        """Whether small growth is not worth a look at the whole heap."""
        needed_ns = shown.spent_ns + self._census_ns
        return (
            limits.small_ns is not None
            and needed_ns > limits.small_ns
            and shown.is_small
        )

    def _certain(
        self,
        item: pytest.Item,
        budget: LeakBudget,
        first: FirstRun,
        shown: Confirmed,
        limits: Limits,
        count: int,
    ) -> Verdict:
        """The verdict once innocent reasons for steady growth were looked for."""
        verdict = rule(first, shown, budget)
        ended_ns = time.perf_counter_ns()
        if verdict.is_leak:
            place, shown = self._place_of(item, shown, limits)
            verdict = rule(first, shown, budget)
            if place is not None:
                return into_bounded_place(verdict, place, budget)
        rested = self._from_rest_to_rest(item, shown, limits, count)
        verdict = rule(first, rested, budget)
        if verdict.is_leak and rested is not shown:
            place, rested = self._place_of(item, rested, limits)
            if place is not None:
                return into_bounded_place(verdict, place, budget)
        elif verdict.is_leak:
            rested = self._patiently(item, shown, limits, count, ended_ns)
            verdict = rule(first, rested, budget)
        if verdict.is_leak and self._settings.evidence != "off":
            ended_ns = time.perf_counter_ns()
            verdict = verdict._replace(evidence=self._explain(item, rested))
            if rested.run_ns * LONG_RUNS < limits.patience_ns and not self._ends_late:
                # Time has passed: what is let go after a while has stopped growing.
                last = self._run_on(item, rested, limits, ended_ns)
                if last.has_ended:
                    verdict = rule(first, last, budget)
        return verdict

    def _run_on(
        self, item: pytest.Item, before: Confirmed, limits: Limits, ended_ns: int
    ) -> Confirmed:
        """What re-runs show when time has passed: what expires has stopped growing.

        What has expired meanwhile goes in the first run, and grows anew in the others:
        they have to last for as long as it is since the earlier ones ended.
        """
        limits = patient(limits, before)
        shown = self._run_again(item, limits)
        if not shown.fell_at_first:
            return shown
        return self._run_again(item, lasting(limits, time.perf_counter_ns() - ended_ns))

    def _patiently(
        self,
        item: pytest.Item,
        shown: Confirmed,
        limits: Limits,
        count: int,
        ended_ns: int,
    ) -> Confirmed:
        """What more re-runs show, where they are cheap or chance may play a part."""
        may_be_stock = shown.is_of_heap_alone
        if may_be_stock:
            stock.fill()
            # Whoever takes from a full stock shows only when it is used up.
            limits = limits._replace(quiet_runs=MOST_QUIET_RUNS)
        elif shown.run_ns * LONG_RUNS >= limits.patience_ns:
            return shown
        again = self._run_on(item, shown, limits, ended_ns)
        if has_piled_up(shown):  # those that stay were waited for
            return again
        return self._from_rest_to_rest(item, again, limits, count)

    def _place_of(
        self, item: pytest.Item, shown: Confirmed, limits: Limits
    ) -> tuple[Filling | None, Confirmed]:
        """The bounded place that explains steady growth; what re-runs show then."""
        place, still_grows = self._find_filling(item, shown)
        if place is None and not still_grows:  # a place that was filled meanwhile
            again = self._run_again(item, patient(limits, shown))
            if again.growing():
                place, _ = self._find_filling(item, again)
            return place, again
        if place is None or place.is_weighed:
            return place, shown
        full = self._run_until_full(item, shown, place, limits)
        if full is not None and not full.growing():
            return place._replace(is_weighed=True), shown
        if full is not None:
            place, _ = self._find_filling(item, full)
        is_turning = place is not None and place.is_turning
        return None if is_turning else place, full or shown

    def _from_rest_to_rest(
        self, item: pytest.Item, shown: Confirmed, limits: Limits, count: int
    ) -> Confirmed:
        """What re-runs show once the threads and children that end late have ended.

        Args:
            item: the test.
            shown: what its re-runs have shown.
            limits: for re-runs.
            count: how many are a round.
        """
        late = ended(self._meter, shown)
        if late is None:
            return shown
        is_of_devices = any(shown.layout[i].device != HOST for i in shown.growing())
        if is_of_devices or not anything_stays(shown, late):
            return flat_on_host(shown)
        self._ends_late = True
        rounds = self._run_again(item, in_rounds(limits, count), count)
        return by_run(rounds, count)

    def _why_not_again(
        self, budget: LeakBudget, duration_ns: int, suspicions: list[Suspicion]
    ) -> str:
        if budget.reruns == 0:
            return "re-runs are not allowed (reruns=0)"
        if 3 * duration_ns > budget.confirm_time_ns:
            return "three more runs take longer than confirming may (confirm-time)"
        must = budget.level is Level.DEEP or any_large(suspicions)
        if not must and not self.credit.affords(4 * duration_ns):
            return SMALL
        return ""

    def _run_again(
        self, item: pytest.Item, limits: Limits, count: int = 1
    ) -> Confirmed:
        """What re-runs show, in rounds of so many."""

        def steps() -> None:
            forget_attribute_names()
            self._steps(item)
            stock.refill()

        with self._rerunning(item, count) as runs:
            tolerated = floor_of_round(count)
            confirmation = Confirmation(
                self._meter, runs, limits, steps=steps, tolerated=tolerated
            )
            for _ in range(2):
                # What stands is put aside: collecting after each run is cheap then.
                gc.collect()
                gc.freeze()
                shown = confirmation.go()
                if not shown.growing() or has_piled_up(shown):
                    return shown
                # A cache that is full lets go of objects that were put aside, and
                # cycles among them stay. So do those of earlier tests: ask twice.
                last = self._settled(steps)
                gc.unfreeze()
                if not came_back(shown, last, self._settled(steps)):
                    return shown
            return confirmation.go()

    def _settled(self, steps: Callable[[], None]) -> Glance:
        now = self._meter.glance()
        return settle(self._meter, now, steps=steps, waits_s=(), examine=True)

    def _find_filling(
        self, item: pytest.Item, shown: Confirmed
    ) -> tuple[Filling | None, bool]:
        """The bounded place that the item's growth goes into; whether it goes on."""
        from pytest_veo.evidence.places import Places

        began = time.perf_counter_ns()
        runs = CENSUS_RUNS if shown.run_ns < SHORT_RUN_NS else FEW_RUNS
        with self._rerunning(item, runs) as rounds:
            gc.unfreeze()
            gc.collect()
            census = Places.take()
            before = self._meter.glance()
            if rounds.run():
                return None, True
            after = self.settle(item, before)
            grown = census.grown(runs)
            self._census_ns = time.perf_counter_ns() - began
            place = filling_of(grown, before, after, runs, shown)
            if place is None and goes_on(before, after, runs, shown):
                return turning(census.turned(runs)), True
            return place, place is not None

    def _run_until_full(
        self, item: pytest.Item, shown: Confirmed, place: Filling, limits: Limits
    ) -> Confirmed | None:
        """What re-runs show once the place is full; None if that takes too much.

        What C objects hold cannot be weighed: growth beside them shows when no more
        of them are kept.
        """
        runs = place.runs_left
        if runs > limits.most_runs or runs * shown.run_ns > limits.fill_ns:
            return None
        if shown.would_pile_up(runs):
            return None
        deadline = time.perf_counter_ns() + limits.fill_ns
        with self._rerunning(item) as once:
            for _ in range(runs):
                if once.run() or time.perf_counter_ns() > deadline:
                    return None
        return self._run_again(item, limits._replace(patience_ns=0))

    def _explain(self, item: pytest.Item, shown: Confirmed) -> tuple[str, ...]:
        """Where a confirmed leak is allocated and who holds it, as lines."""
        from pytest_veo.measure.explain import explain

        runs = EVIDENCE_RUNS if shown.run_ns < SHORT_RUN_NS else FEW_RUNS
        return explain(
            self._settings.evidence,
            runs,
            rerunning=lambda: self._rerunning(item, runs),
            rest=lambda: self.settle(item, self._meter.glance()),
        )

    @contextlib.contextmanager
    def _rerunning(self, item: pytest.Item, count: int = 1) -> Iterator[Rounds]:
        """While re-runs of ours go on, so many a round."""
        self.is_rerunning = True
        is_frozen = self._settings.freeze or frozen.count() > 0
        try:
            with Rerunner(item) as rerunner:
                waits_s = WAITS_S if self._ends_late else ()
                yield Rounds(rerunner, self._meter, count=count, waits_s=waits_s)
        finally:
            self.is_rerunning = False
            if not self._settings.freeze:
                gc.unfreeze()
            if is_frozen:
                gc.freeze()
