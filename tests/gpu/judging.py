"""What the plugin said of a scenario on a real card, held against the table."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from pytest_veo.memory.snapshot import HOST
from tests.simgpu.scenarios.table import SECOND
from tests.simgpu.scenarios.table import Scenario


FAILS_BY_ITSELF = {"after_a_failure"}
"""Scenarios with a test that fails whatever is made of its memory."""
_DRIVERS = ("nvml.", "host.")
"""Counters that also move when a kernel is loaded at its first use."""

Record = Mapping[str, Any]


def complaint(
    scenario: Scenario,
    twin: str,
    uuids: Sequence[str],
    status: int,
    records: Sequence[Record],
) -> str:
    """What is not as the table says; empty: all is.

    Args:
        scenario: of the table.
        twin: `leaky` or `clean`.
        uuids: of the GPUs, in CUDA's order.
        status: pytest's.
        records: of the session's tests, as archived.
    """
    if not records:
        return "the session archived no test"
    verdict = records[scenario.judged]["verdict"]
    if twin == "clean":
        told, fails = _of_the_twin(scenario, verdict), False
    else:
        told = _of_the_leak(scenario, verdict, uuids)
        fails = scenario.outcome == "leak"
    expected = int(fails or scenario.name in FAILS_BY_ITSELF)
    if not told and status != expected:
        told = f"pytest ended with status {status}, not {expected}"
    return told


def _of_the_twin(scenario: Scenario, verdict: Record) -> str:
    outcome = verdict["outcome"]
    if outcome in scenario.twin:
        return ""
    counters = [found["counter"] for found in verdict["findings"]]
    if outcome == "retention" and all(one.startswith(_DRIVERS) for one in counters):
        return ""
    return f"the clean twin is called {outcome!r}: {counters}"


def _of_the_leak(scenario: Scenario, verdict: Record, uuids: Sequence[str]) -> str:
    if verdict["outcome"] != scenario.outcome:
        return f"the verdict is {verdict['outcome']!r}, not {scenario.outcome!r}"
    device = _device(scenario, uuids)
    found = [
        one
        for one in verdict["findings"]
        if (one["counter"], one["device"]) == (scenario.counter, device)
    ]
    if not found:
        others = [(one["counter"], one["device"]) for one in verdict["findings"]]
        return f"{scenario.counter} on {device} is not named, but {others}"
    return _of_the_growth(scenario, found[0])


def _device(scenario: Scenario, uuids: Sequence[str]) -> str:
    if scenario.device == HOST:
        return HOST
    return uuids[1] if scenario.device == SECOND else uuids[0]


def _of_the_growth(scenario: Scenario, found: Record) -> str:
    if scenario.outcome == "leak":
        grown = found["per_run"]
    else:
        grown = found["after"] - found["before"]
    if scenario.counter.startswith("nvml."):
        # the driver charges pages, and rounds as its version likes
        return "" if grown > 0 else f"{scenario.counter} did not grow: {grown}"
    if grown == scenario.per_run:
        return ""
    return f"{scenario.counter} grew by {grown} a run, not by {scenario.per_run}"
