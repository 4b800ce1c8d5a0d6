from __future__ import annotations

import os

import pytest

from tests.gpu import play
from tests.gpu.cards import ROOT
from tests.simgpu.driver import DOORS
from tests.simgpu.scenarios.table import SCENARIOS


SELECTED = {str(one): one for one in play.selection()}


def test_no_scenario_that_moves_the_simulator_is_selected() -> None:
    assert not [one for one in play.selection() if one.simulator_only]


def test_every_other_scenario_is_selected_once() -> None:
    fit = {(one.framework, one.name) for one in SCENARIOS if not one.simulator_only}
    selected = [(one.framework, one.name) for one in play.selection()]
    assert sorted(selected) == sorted(fit)


@pytest.mark.parametrize("twin", ["leaky", "clean"])
def test_no_selected_file_asks_for_the_simulator(twin: str) -> None:
    moved = [
        name
        for name, one in SELECTED.items()
        if "tests.simgpu.driver" in one.file(twin).read_text()
    ]
    assert not moved


def test_the_most_telling_come_first() -> None:
    names = [one.name for one in play.selection()]
    assert set(play.TELLING) <= set(names)
    assert list(dict.fromkeys(names))[: len(play.TELLING)] == list(play.TELLING)


def test_only_the_second_device_needs_two() -> None:
    two = {name for name, one in SELECTED.items() if play.devices_needed(one) == 2}
    assert two == {"torch-second_device", "cupy-second_device"}


def test_a_session_inherits_nothing_of_the_simulator() -> None:
    base = {
        "HOME": "/home",
        "VEOSIM_BUILD": "/cache/sim",
        "VEOSIM_STATE": "/state",
        "PYTEST_ADDOPTS": "-x",
        "LD_LIBRARY_PATH": os.pathsep.join(["/cache/sim", "/opt/lib"]),
        "PYTHONPATH": os.pathsep.join([str(DOORS), "/own"]),
    }
    assert play.environment(base) == {
        "HOME": "/home",
        "LD_LIBRARY_PATH": "/opt/lib",
        "PYTHONPATH": os.pathsep.join([str(ROOT), "/own"]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


def test_a_framework_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.executable", "python")
    reason = play.unusable("no_such_framework", {})
    assert reason == "no_such_framework is not installed for python"


def test_a_framework_that_fails_tells_its_last_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(play._USABLE, "json", "assert 0, 'json sees no CUDA'")
    reason = play.unusable("json", {})
    assert reason == "json cannot be used: AssertionError: json sees no CUDA"
    monkeypatch.setitem(play._USABLE, "json", "import json")
    assert play.unusable("json", {}) == ""
