"""What judging says: outcomes, findings, verdicts."""

from __future__ import annotations

import enum
from typing import NamedTuple

from pytest_veo.units import Unit


class Outcome(enum.Enum):
    """The judgement of one test, fixture or window."""

    CLEAN = "clean"
    """Nothing grew beyond what an idle test costs."""
    LEAK = "leak"
    """Growth that repeats with every run. Fails."""
    RETENTION = "retention"
    """Growth once, then flat, or into a bounded place. Listed."""
    COLLECTABLE = "collectable"
    """Grown memory that only the cyclic collector freed. Warned about."""
    UNCONFIRMED = "unconfirmed"
    """Growth that could not be confirmed by running the test again. Listed."""
    ALLOWED = "allowed"
    """A leak that a marker allows, with a reason and a date."""
    OVER_BUDGET = "over budget"
    """A peak, growth or retention above its limit. Fails."""
    NOT_JUDGED = "not judged"
    """Failed, skipped, xfailed, or run where it could not be measured."""

    @property
    def fails(self) -> bool:
        """Whether this outcome makes its test fail."""
        return self in (Outcome.LEAK, Outcome.OVER_BUDGET)


class Finding(NamedTuple):
    """One counter's part in a verdict."""

    counter: str
    """`probe.name`."""
    device: str
    unit: Unit
    before: int
    after: int
    """Around the test's first run."""
    per_run: float = 0.0
    """Mean growth of each confirming run, in `unit`."""
    deltas: tuple[int, ...] = ()
    """Growth of each confirming run in order, at most the last 16."""
    limit: int | None = None
    """What a budget allows, when one was broken."""

    @property
    def growth(self) -> int:
        """Growth over the test's first run."""
        return self.after - self.before


class Verdict(NamedTuple):
    """What was decided about one subject, and on which grounds."""

    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    """Strongest evidence first."""
    runs: int = 0
    """Confirming runs made."""
    reason: str = ""
    """Why this outcome and not another, in one sentence."""
    ruled_out: tuple[str, ...] = ()
    """Innocent explanations that were tried."""
    spent_ns: int = 0
    """Time that settling and confirming took."""
    evidence: tuple[str, ...] = ()
    """Lines on where it was allocated and who holds it."""

    @property
    def is_leak(self) -> bool:
        """Whether growth repeats, allowed or not."""
        return self.outcome in (Outcome.LEAK, Outcome.ALLOWED)


SMALL = "small, and the confirming credit is used up (confirm-share)"
"""Why a small suspicion was not followed up."""

CLEAN = Verdict(outcome=Outcome.CLEAN)
