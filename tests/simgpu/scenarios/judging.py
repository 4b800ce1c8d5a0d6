"""What the plugin said of a scenario, held against the table."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.simgpu.scenarios.sessions import Session
from tests.simgpu.scenarios.table import Scenario


FAILS_BY_ITSELF = {"after_a_failure"}
"""Scenarios with a test that fails whatever is made of its memory."""
UNHEARD = "the session archived no test"


@dataclasses.dataclass(frozen=True, slots=True)
class Judgement:
    """What came of the test that a scenario is about."""

    outcome: str
    counter: str
    """The table's, where it was named; else empty."""
    device: str
    amount: float
    """A run's growth of a leak, all of the growth otherwise; in the counter's unit."""
    status: int
    """Pytest's."""

    def __str__(self) -> str:
        where = f" {self.counter} {self.device} {self.amount:,}" if self.counter else ""
        return f"{self.outcome}{where}, status {self.status}"


def judged(session: Session, scenario: Scenario) -> dict[str, Any]:
    """The verdict on the test that the scenario is about."""
    records = session.records()
    assert records, f"{UNHEARD}\n{session.output}"
    verdict: dict[str, Any] = records[scenario.judged]["verdict"]
    return verdict


def judgement(session: Session, scenario: Scenario, twin: str) -> Judgement:
    """What was said, as far as the table has it."""
    verdict = judged(session, scenario)
    found = _finding(verdict, scenario) if twin == "leaky" else None
    if found is None:
        return Judgement(verdict["outcome"], "", "", 0, session.status)
    is_leak = verdict["outcome"] == "leak"
    amount = found["per_run"] if is_leak else found["after"] - found["before"]
    return Judgement(
        verdict["outcome"], found["counter"], found["device"], amount, session.status
    )


def _finding(verdict: dict[str, Any], scenario: Scenario) -> dict[str, Any] | None:
    wanted = scenario.counter, scenario.device
    return next(
        (f for f in verdict["findings"] if (f["counter"], f["device"]) == wanted), None
    )


def expected(scenario: Scenario, twin: str) -> tuple[Judgement, ...]:
    """What may be said, as the table has it."""
    fails = int(scenario.name in FAILS_BY_ITSELF)
    if twin == "clean":
        return tuple(Judgement(one, "", "", 0, fails) for one in scenario.twin)
    status = int(scenario.outcome == "leak") or fails
    if not scenario.counter:
        return (Judgement(scenario.outcome, "", "", 0, status),)
    named = scenario.counter, scenario.device, scenario.per_run
    return (Judgement(scenario.outcome, *named, status),)


def complaint(session: Session, scenario: Scenario, twin: str) -> str:
    """What is not as the table says; empty: all is."""
    said, wanted = judgement(session, scenario, twin), expected(scenario, twin)
    if said in wanted:
        return ""
    return f"{said}; not {' or '.join(map(str, wanted))}"
