"""The plugin on every scenario, in whole sessions: the leak named, the twin left.

Verdict, counter, device and bytes must be those of the table, and the evidence must
name the line that allocated it and who holds it.
"""

from __future__ import annotations

import pathlib

import pytest

from tests.simgpu.fixtures import Nurseries
from tests.simgpu.scenarios import explained
from tests.simgpu.scenarios import judging
from tests.simgpu.scenarios import sessions
from tests.simgpu.scenarios.sessions import Session
from tests.simgpu.scenarios.table import SCENARIOS
from tests.simgpu.scenarios.table import Scenario


pytestmark = pytest.mark.sim


def checked(
    nurseries: Nurseries, scenario: Scenario, twin: str, folder: pathlib.Path
) -> Session:
    nursery = nurseries(scenario.environment, scenario.framework)
    return sessions.check(nursery, scenario, twin, folder)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_the_leaky_file_is_named_to_the_byte(
    nurseries: Nurseries, scenario: Scenario, tmp_path: pathlib.Path
) -> None:
    session = checked(nurseries, scenario, "leaky", tmp_path)
    assert judging.complaint(session, scenario, "leaky") == "", session.output
    if scenario.outcome == "leak":
        told = explained.named(session, scenario)
        assert told.line is not False, "\n".join(told.evidence)
        assert told.holder is not False, "\n".join(told.evidence)


def test_every_leak_has_its_truth_and_nothing_else_has() -> None:
    leaks = {f"{one.framework}-{one.name}" for one in SCENARIOS if one.per_run}
    judged = {
        f"{one.framework}-{one.name}" for one in SCENARIOS if one.outcome == "leak"
    }
    assert set(explained.TRUTHS) == judged <= leaks
    for name, truth in explained.TRUTHS.items():
        assert bool(truth.why) == (not truth.line or not truth.holder), name


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_the_clean_twin_is_left_alone(
    nurseries: Nurseries, scenario: Scenario, tmp_path: pathlib.Path
) -> None:
    session = checked(nurseries, scenario, "clean", tmp_path)
    assert judging.complaint(session, scenario, "clean") == "", session.output
