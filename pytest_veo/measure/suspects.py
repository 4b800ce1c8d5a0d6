"""The closer look at one suspect: settle, confirm, learn where nothing was wrong."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from typing import NamedTuple

from pytest_veo.budget import Level
from pytest_veo.measure.gate import any_large
from pytest_veo.measure.meter import Glance
from pytest_veo.measure.ruling import FirstRun
from pytest_veo.measure.ruling import collectable
from pytest_veo.measure.ruling import unconfirmed
from pytest_veo.measure.settle import Spares
from pytest_veo.measure.settle import wait
from pytest_veo.probes.host import BLOCKS
from pytest_veo.verdict import CLEAN
from pytest_veo.verdict import SMALL
from pytest_veo.verdict import Outcome
from pytest_veo.verdict import Verdict


if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from pytest_veo.budget import LeakBudget
    from pytest_veo.measure.gate import Gate
    from pytest_veo.measure.gate import Suspicion
    from pytest_veo.measure.inquiry import Inquiry
    from pytest_veo.measure.meter import Meter
    from pytest_veo.measure.thrift import Thrift
    from pytest_veo.report.summary import Totals


DEAR_NS = 20_000_000
"""A look that takes longer is paid by the credit; where the heap is put aside it takes
a millisecond, but to collect all of a large one takes half a second."""


class Suspect(NamedTuple):
    """A test whose figures must be looked at more closely."""

    item: pytest.Item
    budget: LeakBudget
    fixtures: int
    """How many it uses."""
    duration_ns: int
    raw: FirstRun
    """Its run, before anything was settled."""
    is_swept: bool
    """Whether the collector had run before the figures were read."""


class Looked(NamedTuple):
    """What the closer look showed."""

    verdict: Verdict
    first: FirstRun
    """The suspect's run, settled."""
    after: Glance | None
    """The figures now, if they are known."""


class Suspects:
    """Looks closer at tests that look guilty."""

    def __init__(
        self,
        meter: Meter,
        gate: Gate,
        thrift: Thrift,
        inquiry: Inquiry,
        totals: Totals,
        *,
        first_run: Callable[[Glance, Glance], FirstRun],
    ) -> None:
        """Ready to look.

        Args:
            meter: reads the figures.
            gate: tells who is suspect, and learns.
            thrift: knows which tests' blocks were counted together.
            inquiry: runs suspects again.
            totals: where to count.
            first_run: makes a run of two glances, less what is not the test's own.
        """
        self._meter = meter
        self._gate = gate
        self._thrift = thrift
        self._inquiry = inquiry
        self._totals = totals
        self._first_run = first_run
        self._spares = Spares()
        self._settle_ns = 0
        """What settling the last suspect took."""

    def look(self, suspect: Suspect) -> Looked:
        """Settle the suspect's figures; confirm what is still suspicious."""
        began = time.perf_counter_ns()
        item, budget, raw = suspect.item, suspect.budget, suspect.raw
        refused = self._refused(suspect)
        if refused is not None:
            return Looked(refused, raw, raw.after)
        waited = raw
        if self._meter.watches_devices:
            waited = self._first_run(raw.before, wait(self._meter, raw.before))
        first = _no_more(self._first_run(raw.before, self._settled(suspect)), raw)
        seen = self._gate.suspicions(first.after.layout, first.growth, suspect.fixtures)
        suspicions = [s for s in seen if _is_judged(s, budget)]
        after: Glance | None = first.after
        verdict = CLEAN
        if suspicions or budget.level is Level.DEEP:
            verdict = self._confirmed(suspect, first, suspicions)
            after = None if self._inquiry.ran else after
        if verdict is CLEAN:
            verdict = collectable(waited, first, budget)
        is_own = not self._thrift.others
        if not verdict.is_leak and is_own and not any_large(seen):
            fixtures = suspect.fixtures
            self._gate.saw(raw.after.layout, raw.growth, fixtures)
            self._gate.saw(first.after.layout, first.growth, fixtures, settled=True)
        spent_ns = time.perf_counter_ns() - began
        self._totals.confirm_ns += spent_ns
        if not verdict.is_leak:  # time that found something was well spent
            self._inquiry.credit.spend(spent_ns)
        if verdict is not CLEAN:
            verdict = self._reviewed(item, verdict._replace(spent_ns=spent_ns))
        return Looked(verdict, first, after)

    def _refused(self, suspect: Suspect) -> Verdict | None:
        """The verdict on small growth that even to settle is too dear; None: it is not.

        The gate learns from it all the same, or every test would be next.
        """
        budget, raw, cost_ns = suspect.budget, suspect.raw, self._settle_ns
        if cost_ns < DEAR_NS or budget.level is Level.DEEP:
            return None
        if self._inquiry.credit.affords(cost_ns):
            return None
        seen = self._gate.suspicions(raw.after.layout, raw.growth, suspect.fixtures)
        judged = [each.counter for each in seen if _is_judged(each, budget)]
        if not judged or any_large(seen):
            return None
        if not self._thrift.others:
            self._gate.saw(raw.after.layout, raw.growth, suspect.fixtures)
        return unconfirmed(raw, judged, SMALL)

    def _confirmed(
        self, suspect: Suspect, first: FirstRun, suspicions: list[Suspicion]
    ) -> Verdict:
        verdict = self._inquiry.confirm(
            suspect.item, suspect.budget, first, suspect.duration_ns, suspicions
        )
        is_clean = verdict.outcome is Outcome.CLEAN
        others = self._thrift.others
        if not others:
            if self._inquiry.ran and is_clean:
                self._gate.cleared(suspicions)
        elif any(suspicion.counter is BLOCKS for suspicion in suspicions):
            self._thrift.alarm()
            if is_clean or _is_of_blocks_alone(verdict):
                self._totals.unassigned += 1
                if not is_clean or any_large(suspicions):
                    return unconfirmed(first, [BLOCKS], _together(others))
        return verdict

    def _settled(self, suspect: Suspect) -> Glance:
        def settled() -> Glance:
            return self._inquiry.settle(suspect.item, suspect.raw.before)

        if suspect.is_swept:
            return settled()
        began = time.perf_counter_ns()
        after = self._spares.collect(self._meter.glance, settled)
        self._settle_ns = time.perf_counter_ns() - began
        return after

    def _reviewed(self, item: pytest.Item, verdict: Verdict) -> Verdict:
        if verdict.outcome is Outcome.CLEAN:
            return verdict
        other: Verdict | None = item.ihook.pytest_veo_judged(
            config=item.config, item=item, verdict=verdict
        )
        return other or verdict


def _is_of_blocks_alone(verdict: Verdict) -> bool:
    """Whether it is retention of blocks: whose, nobody knows where tests are many."""
    kept = {finding.counter for finding in verdict.findings}
    return verdict.outcome is Outcome.RETENTION and kept == {BLOCKS.key}


def _no_more(settled: FirstRun, raw: FirstRun) -> FirstRun:
    """Settling frees; what is more than before it is the look's own."""
    if settled.after.layout is not raw.after.layout:
        return settled
    growth = list(map(min, settled.growth, raw.growth))
    return settled._replace(growth=growth)


def _together(others: int) -> str:
    return (
        f"by this test or one of the {others} before it: tests this short are counted "
        "together (level deep counts after each)"
    )


def _is_judged(suspicion: Suspicion, budget: LeakBudget) -> bool:
    key = suspicion.counter.key
    return budget.judges(key) and suspicion.growth > budget.tolerated(key)
