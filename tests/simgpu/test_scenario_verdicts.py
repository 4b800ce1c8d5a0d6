"""The plugin on every scenario, in whole sessions: the leak named, the twin left.

Verdict, counter, device and bytes must be those of the table.
"""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from tests.simgpu.fixtures import Nurseries
from tests.simgpu.scenarios import sessions
from tests.simgpu.scenarios.sessions import Session
from tests.simgpu.scenarios.table import SCENARIOS
from tests.simgpu.scenarios.table import Scenario


pytestmark = pytest.mark.sim

# What the plugin does not yet say. Each is strict: it falls as soon as it is said.
NOT_YET: dict[str, str] = {}
LEAKY = [
    pytest.param(
        one,
        id=str(one),
        marks=[pytest.mark.xfail(reason=NOT_YET[str(one)])]
        if str(one) in NOT_YET
        else [],
    )
    for one in SCENARIOS
]
FAILS_BY_ITSELF = {"after_a_failure"}
"""Scenarios with a test that fails whatever is made of its memory."""


def checked(
    nurseries: Nurseries, scenario: Scenario, twin: str, folder: pathlib.Path
) -> Session:
    nursery = nurseries(scenario.environment, scenario.framework)
    return sessions.check(nursery, scenario, twin, folder)


def judged(session: Session, scenario: Scenario) -> dict[str, Any]:
    """The verdict on the test that the scenario is about."""
    records = session.records()
    assert records, session.output
    verdict: dict[str, Any] = records[scenario.judged]["verdict"]
    return verdict


@pytest.mark.parametrize("scenario", LEAKY)
def test_the_leaky_file_is_named_to_the_byte(
    nurseries: Nurseries, scenario: Scenario, tmp_path: pathlib.Path
) -> None:
    session = checked(nurseries, scenario, "leaky", tmp_path)
    verdict = judged(session, scenario)
    assert verdict["outcome"] == scenario.outcome, session.output
    findings = {
        (found["counter"], found["device"]): found for found in verdict["findings"]
    }
    if scenario.counter:
        found = findings.get((scenario.counter, scenario.device))
        assert found is not None, (sorted(findings), session.output)
        bytes_a_run = "per_run" if scenario.outcome == "leak" else "growth"
        growth = {**found, "growth": found["after"] - found["before"]}
        assert growth[bytes_a_run] == scenario.per_run, session.output
    fails = scenario.outcome == "leak" or scenario.name in FAILS_BY_ITSELF
    assert session.status == int(fails), session.output


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_the_clean_twin_is_left_alone(
    nurseries: Nurseries, scenario: Scenario, tmp_path: pathlib.Path
) -> None:
    session = checked(nurseries, scenario, "clean", tmp_path)
    assert judged(session, scenario)["outcome"] in scenario.twin, session.output
    assert session.status == int(scenario.name in FAILS_BY_ITSELF), session.output
