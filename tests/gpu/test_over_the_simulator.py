"""The way a scenario is played and judged on a card, rehearsed without one."""

from __future__ import annotations

import os
import pathlib

import pytest

from tests.gpu import judging
from tests.gpu import play
from tests.simgpu import fixtures
from tests.simgpu.driver import Sim
from tests.simgpu.scenarios.table import FIRST
from tests.simgpu.scenarios.table import SECOND


pytestmark = pytest.mark.sim

(SCENARIO,) = (one for one in play.selection() if str(one) == "cupy-global_list")


@pytest.mark.parametrize(("twin", "other"), [("leaky", "clean"), ("clean", "leaky")])
def test_a_twin_is_as_the_table_says_and_not_as_its_other(
    twin: str, other: str, tmp_path: pathlib.Path
) -> None:
    where = fixtures.environment("cupy")
    libraries = fixtures.libraries(where, "cupy")
    sim = Sim.create(tmp_path / "veosim.state", libraries, devices=2)
    environment = sim.environment(play.environment(os.environ))
    try:
        session = play.session(
            SCENARIO, twin, tmp_path, environment, python=str(where.python)
        )
    finally:
        sim.close()
    uuids, records = (FIRST, SECOND), session.records()
    told = judging.complaint(SCENARIO, twin, uuids, session.status, records)
    assert not told, session.output
    assert judging.complaint(SCENARIO, other, uuids, session.status, records)
