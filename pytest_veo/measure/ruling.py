"""From what re-runs showed to a verdict. Pure: values in, values out."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import NamedTuple

from pytest_veo.measure.confirm import PILED_UP
from pytest_veo.measure.gate import is_large
from pytest_veo.memory.leak import Course
from pytest_veo.memory.leak import deltas
from pytest_veo.memory.leak import slope
from pytest_veo.memory.snapshot import HOST
from pytest_veo.memory.snapshot import Rung
from pytest_veo.units import Unit
from pytest_veo.units import counted
from pytest_veo.units import format_bytes
from pytest_veo.verdict import CLEAN
from pytest_veo.verdict import Finding
from pytest_veo.verdict import Outcome
from pytest_veo.verdict import Verdict


if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_veo.budget import LeakBudget
    from pytest_veo.measure.bounded import Filling
    from pytest_veo.measure.confirm import Confirmed
    from pytest_veo.measure.meter import Glance
    from pytest_veo.memory.snapshot import Counter


SHOWN_DELTAS = 16


class FirstRun(NamedTuple):
    """A test's own run: figures before and after, settled, charges taken off."""

    before: Glance
    after: Glance
    growth: Sequence[int]
    """Aligned with `after.layout`; what wider fixtures took is not in it."""

    def finding(self, counter: Counter) -> Finding | None:
        """The counter over the first run; None if it was not read."""
        for place, known in enumerate(self.after.layout):
            if known == counter:
                after = self.after.values[place]
                return Finding(
                    counter=counter.key,
                    device=counter.device,
                    unit=counter.unit,
                    before=after - self.growth[place],
                    after=after,
                )
        return None


def rank(counter: Counter) -> tuple[bool, bool, bool, int, bool]:
    """Sorts the most telling counters first: devices, handles, bytes, then blocks."""
    return (
        counter.device == HOST,
        not counter.always,
        counter.key == "host.python_blocks",
        counter.rung,
        counter.unit is not Unit.BYTES,
    )


def _grown(first: FirstRun, counters: Sequence[Counter]) -> tuple[Finding, ...]:
    found = (first.finding(counter) for counter in sorted(counters, key=rank))
    return tuple(f for f in found if f is not None and f.growth > 0)


def repeating(first: FirstRun, shown: Confirmed, budget: LeakBudget) -> list[Finding]:
    """Findings for the counters whose growth repeats beyond what is tolerated."""
    found = []
    places = shown.growing()
    if places or shown.stopped == PILED_UP:
        places += shown.likely()
    for place in sorted(places, key=lambda i: rank(shown.layout[i])):
        counter, series = shown.layout[place], shown.series[place]
        per_run = slope(series)
        if not budget.judges(counter.key) or per_run <= budget.tolerated(counter.key):
            continue
        seen = first.finding(counter)
        found.append(
            Finding(
                counter=counter.key,
                device=counter.device,
                unit=counter.unit,
                before=seen.before if seen else series[0],
                after=seen.after if seen else series[0],
                per_run=per_run,
                deltas=tuple(deltas(series)[-SHOWN_DELTAS:]),
            )
        )
    return found


def rule(first: FirstRun, shown: Confirmed, budget: LeakBudget) -> Verdict:
    """The verdict on a test that was run again."""
    leaks = repeating(first, shown, budget)
    if leaks:
        return _leak(leaks, shown, budget)
    stopped = shown.stopped or _used_up(shown, budget)
    if stopped and not shown.is_decided:
        return Verdict(
            outcome=Outcome.UNCONFIRMED,
            findings=_undecided(first, shown),
            runs=shown.runs,
            reason=f"confirming stopped after {counted(shown.runs, 'run')}: {stopped}",
            spent_ns=shown.spent_ns,
        )
    return retained(first, budget, runs=shown.runs, spent_ns=shown.spent_ns)


def _used_up(shown: Confirmed, budget: LeakBudget) -> str:
    """Why running ended, if the allowed runs all grew and were too few to tell."""
    if budget.reruns is None or shown.runs < budget.reruns:
        return ""
    for counter, series, course in zip(
        shown.layout, shown.series, shown.courses, strict=True
    ):
        least = min(deltas(series), default=0)
        if course is Course.UNDECIDED and least > 0 and is_large(counter, least):
            return f"more are not allowed (reruns={budget.reruns})"
    return ""


def unconfirmed(first: FirstRun, counters: Sequence[Counter], reason: str) -> Verdict:
    """The verdict on growth that was not followed up."""
    return Verdict(
        outcome=Outcome.UNCONFIRMED, findings=_grown(first, counters), reason=reason
    )


def _leak(leaks: list[Finding], shown: Confirmed, budget: LeakBudget) -> Verdict:
    allowed = budget.allowance
    return Verdict(
        outcome=Outcome.LEAK if allowed is None else Outcome.ALLOWED,
        findings=tuple(leaks),
        runs=shown.runs,
        reason=f"it grew again in {counted(shown.runs, 'run')} with fresh fixtures"
        if allowed is None
        else f"allowed: {allowed.reason}",
        ruled_out=("a first use (growth went on after the warm-up runs)",),
        spent_ns=shown.spent_ns,
    )


def _undecided(first: FirstRun, shown: Confirmed) -> tuple[Finding, ...]:
    return _grown(
        first,
        [
            counter
            for counter, course in zip(shown.layout, shown.courses, strict=True)
            if course is Course.UNDECIDED
        ],
    )


def retained(
    first: FirstRun, budget: LeakBudget, *, runs: int = 0, spent_ns: int = 0
) -> Verdict:
    """The verdict on growth that did not repeat: retention if it was large."""
    kept = [
        counter
        for counter, change in zip(first.after.layout, first.growth, strict=True)
        if change > budget.tolerated(counter.key)
        and not _is_reserve(counter)
        and budget.judges(counter.key)
        and is_large(counter, change)
    ]
    if not kept:
        return CLEAN
    findings = _grown(first, kept)
    limit = budget.retention_limit_bytes
    over = [
        finding._replace(limit=limit)
        for finding in findings
        if limit is not None and finding.unit is Unit.BYTES and finding.growth > limit
    ]
    if over and limit is not None:
        return Verdict(
            outcome=Outcome.OVER_BUDGET,
            findings=tuple(over),
            runs=runs,
            reason=f"it kept more than the retention limit of {format_bytes(limit)}",
            spent_ns=spent_ns,
        )
    return Verdict(
        outcome=Outcome.RETENTION,
        findings=findings,
        runs=runs,
        reason="it grew once and not again",
        spent_ns=spent_ns,
    )


def _is_reserve(counter: Counter) -> bool:
    """Whether it counts address space, which costs nothing until it is used.

    One thread reserves 64 MiB of it for an allocator of its own, and keeps that.
    """
    is_space = counter.device == HOST and counter.rung is Rung.DRIVER
    return is_space or counter.rung is Rung.DEVICE


def into_bounded_place(leak: Verdict, place: Filling, budget: LeakBudget) -> Verdict:
    """The verdict when steady growth goes into a place that has a limit."""
    limit = budget.retention_limit_bytes
    projected = place.projected_bytes
    if limit is not None and projected > limit:
        return leak._replace(
            outcome=Outcome.OVER_BUDGET,
            findings=tuple(f._replace(limit=limit) for f in leak.findings),
            reason=f"{place} may still take {format_bytes(projected)}, the retention "
            f"limit is {format_bytes(limit)}",
        )
    return leak._replace(
        outcome=Outcome.RETENTION,
        reason=f"it fills a bounded place: {place}",
        ruled_out=(),
    )


COLLECTED_BYTES = 1 << 20
"""Host memory that has to wait for the collector before it is worth a word."""


def collectable(raw: FirstRun, settled: FirstRun, budget: LeakBudget) -> Verdict:
    """The verdict on growth that was gone once the collector had run.

    Args:
        raw: before anything was collected.
        settled: after.
        budget: the test's.
    """
    freed = []
    left = dict(zip(settled.after.layout, settled.growth, strict=True))
    for counter, change in zip(raw.after.layout, raw.growth, strict=True):
        gone = change - left.get(counter, change)
        least = 1 if counter.device != HOST else COLLECTED_BYTES
        if counter.unit is Unit.BYTES and counter.rung <= Rung.LIVE and gone >= least:
            freed.append(counter)
    freed = [counter for counter in freed if budget.judges(counter.key)]
    if not freed:
        return CLEAN
    return Verdict(
        outcome=Outcome.COLLECTABLE,
        findings=_grown(raw, freed),
        reason=(
            "a reference cycle held it until the cyclic collector ran: break the cycle "
            "(weakref.ref to the owner, or clear the attribute when done)"
        ),
    )
