"""The scenarios do what their table says: proved by looping them, without the plugin.

A leaky file whose figures were wrong, or a clean twin that leaks, would make every
verdict on it meaningless.
"""

from __future__ import annotations

import itertools
import pathlib

import pytest

from tests.simgpu.fixtures import Nurseries
from tests.simgpu.scenarios import sessions
from tests.simgpu.scenarios.table import SCENARIOS
from tests.simgpu.scenarios.table import Scenario


pytestmark = pytest.mark.sim

# Nothing can be read of a device that is gone.
READABLE = [one for one in SCENARIOS if one.name != "device_lost"]
Figures = list[dict[str, dict[str, int]]]
WARM_UP = 2
"""Runs after which caches, workspaces and pools have what they need."""


def growth(figures: Figures, when: str, key: str) -> list[int]:
    values = [run[when][key] for run in figures[WARM_UP - 1 :]]
    return [after - before for before, after in itertools.pairwise(values)]


def looped(
    nurseries: Nurseries, scenario: Scenario, twin: str, folder: pathlib.Path
) -> Figures:
    nursery = nurseries(scenario.environment, scenario.framework)
    session, figures = sessions.loop(nursery, scenario, twin, folder)
    assert len(figures) == 6, session.output
    return figures


@pytest.mark.parametrize("scenario", READABLE, ids=str)
def test_the_leaky_file_grows_by_the_stated_bytes_every_run(
    nurseries: Nurseries, scenario: Scenario, tmp_path: pathlib.Path
) -> None:
    figures = looped(nurseries, scenario, "leaky", tmp_path)
    key = f"{scenario.counter} {scenario.device}"
    when = "bare" if scenario.outcome == "collectable" else "collected"
    if scenario.outcome == "collectable":
        # it grows until somebody collects, and the loop does after every run
        assert growth(figures, "collected", key) == [0] * 4
        held = [run["bare"][key] - run["collected"][key] for run in figures]
        assert held == [scenario.per_run] * 6
    else:
        assert growth(figures, when, key) == [scenario.per_run] * 4


@pytest.mark.parametrize("scenario", READABLE, ids=str)
def test_the_clean_twin_grows_nowhere(
    nurseries: Nurseries, scenario: Scenario, tmp_path: pathlib.Path
) -> None:
    figures = looped(nurseries, scenario, "clean", tmp_path)
    grown = {
        key: growth(figures, "bare", key)
        for key in figures[-1]["bare"]
        if any(growth(figures, "bare", key))
    }
    assert not grown
