"""The leak scenarios on a real card: `ci/gpu` runs them.

The same files and the same table as over the simulated driver. Without a GPU every
test skips, for one reason.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import time
from typing import NoReturn

import pytest

from tests.gpu import cards as cards_
from tests.gpu import judging
from tests.gpu import play
from tests.gpu.cards import Cards
from tests.simgpu.scenarios.table import Scenario


pytestmark = pytest.mark.gpu

PLAYED_S = 370
"""No session begins later: with its own bound, all end within eight minutes."""
PLAYS = [
    pytest.param(one, twin, id=f"{one}-{twin}")
    for one in play.selection()
    for twin in ("leaky", "clean")
]


@pytest.fixture(scope="module")
def cards() -> Cards:
    try:
        return cards_.ask()
    except cards_.NoCard as reason:
        pytest.skip(str(reason))
    except cards_.DriverBroken as reason:
        pytest.fail(str(reason), pytrace=False)


class Stage:
    """What the sessions share: what is usable here, and how much time is left."""

    def __init__(self, cards: Cards) -> None:
        self._end = time.monotonic() + PLAYED_S
        self._cards = cards
        self._reasons: dict[str, str] = {}
        unknown = required() - {one.framework for one in play.selection()}
        if unknown:
            told = f"VEO_REQUIRE_GPU: no scenario is of {', '.join(sorted(unknown))}"
            pytest.fail(told, pytrace=False)
        self.environment = play.environment(os.environ)

    def ready_for(self, scenario: Scenario) -> None:
        """Skip what cannot be played, and what there is no time for."""
        self._be_in_time()
        needed = play.devices_needed(scenario)
        if needed > len(self._cards.uuids):
            pytest.skip(f"it needs {needed} GPUs")
        framework = scenario.framework
        if framework not in self._reasons:
            self._reasons[framework] = play.unusable(framework, self.environment)
        if self._reasons[framework]:
            cannot_play(framework, self._reasons[framework])
        if scenario.counter.startswith("nvml.") and self._cards.unlisted:
            pytest.skip(self._cards.unlisted)
        self._be_in_time()

    def _be_in_time(self) -> None:
        if time.monotonic() > self._end:
            pytest.skip(f"{PLAYED_S} s were played: no time left for it")


def required() -> set[str]:
    """Frameworks that must be played, by VEO_REQUIRE_GPU."""
    return set(os.environ.get("VEO_REQUIRE_GPU", "").split(",")) - {""}


def cannot_play(framework: str, reason: str) -> NoReturn:
    """Skip for a person, fail where VEO_REQUIRE_GPU names the framework."""
    if framework in required():
        pytest.fail(f"VEO_REQUIRE_GPU names it, but {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def stage(cards: Cards) -> Stage:
    return Stage(cards)


@pytest.mark.parametrize(("scenario", "twin"), PLAYS)
def test_the_plugin_says_what_the_table_says(
    cards: Cards, stage: Stage, scenario: Scenario, twin: str, tmp_path: pathlib.Path
) -> None:
    stage.ready_for(scenario)
    try:
        session = play.session(scenario, twin, tmp_path, stage.environment)
    except subprocess.TimeoutExpired:
        written = (tmp_path / "output.txt").read_text()
        pytest.fail(f"no end after {play.SESSION_S} s\n{written}", pytrace=False)
    told = judging.complaint(
        scenario, twin, cards.uuids, session.status, session.records()
    )
    assert not told, f"{told}\n{session.output}"
