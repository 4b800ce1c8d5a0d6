"""Fixtures of the simulated GPU; load with `pytest_plugins` or import them.

Missing gcc or a missing environment skips with its reason. Where VEO_REQUIRE_SIM=1
is set, as CI does, it fails: a suite that was not run must not look green.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator
from typing import NoReturn

import pytest

from tests.simgpu import build
from tests.simgpu import environments
from tests.simgpu.build import Build
from tests.simgpu.driver import Sim
from tests.simgpu.environments import Environment
from tests.simgpu.scenarios.sessions import Nursery


def cannot_run(reason: str) -> NoReturn:
    """Skip for a person, fail for CI."""
    if os.environ.get("VEO_REQUIRE_SIM") == "1":
        pytest.fail(f"VEO_REQUIRE_SIM=1, but {reason}", pytrace=False)
    pytest.skip(reason)


def environment(name: str) -> Environment:
    """An environment that `ci/env` made, on a machine that can build the simulator."""
    reason = build.unavailable()
    if reason:
        cannot_run(reason)
    try:
        return environments.find(name)
    except environments.EnvironmentMissing as missing:
        cannot_run(str(missing))


def libraries(environment: Environment) -> Build:
    """The simulator, built for what an environment has."""
    return build.build(environments.client(environment))


@pytest.fixture(scope="session")
def sim_build() -> Build:
    """The simulated driver without a client's stubs: NVML and CUDA."""
    reason = build.unavailable()
    if reason:
        cannot_run(reason)
    return build.build()


@pytest.fixture
def sim(sim_build: Build, tmp_path: pathlib.Path) -> Iterator[Sim]:
    """Two idle simulated devices of this test's own."""
    bench = Sim.create(tmp_path / "veosim.state", sim_build, devices=2)
    yield bench
    bench.close()


class Nurseries:
    """Children that have imported a framework, one an environment, made when asked."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._made: dict[str, Nursery] = {}

    def __call__(self, name: str, framework: str) -> Nursery:
        """The child of the environment `name`, with `framework` imported."""
        if name not in self._made:
            where = environment(name)
            folder = self._folders.mktemp(name)
            self._made[name] = Nursery(where, framework, libraries(where), folder)
        return self._made[name]

    def close(self) -> None:
        """Let all of them go."""
        for nursery in self._made.values():
            nursery.close()


@pytest.fixture(scope="session")
def nurseries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nurseries]:
    """Where scenarios are played."""
    made = Nurseries(tmp_path_factory)
    yield made
    made.close()
