"""Fixtures of the simulated GPU; load with `pytest_plugins` or import them.

Missing gcc or a missing environment skips with its reason. Where VEO_REQUIRE_SIM=1
is set, as CI does, it fails: a suite that was not run must not look green. The
environment `extras` is required by VEO_REQUIRE_SIM=all alone.
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


def cannot_run(reason: str, name: str = "core") -> NoReturn:
    """Skip for a person, fail where this environment is required."""
    required = os.environ.get("VEO_REQUIRE_SIM", "")
    if required == "all" or (required == "1" and name != "extras"):
        pytest.fail(f"VEO_REQUIRE_SIM={required}, but {reason}", pytrace=False)
    pytest.skip(reason)


def environment(name: str) -> Environment:
    """An environment that `ci/env` made, on a machine that can build the simulator."""
    reason = build.unavailable()
    if reason:
        cannot_run(reason, name)
    try:
        return environments.find(name)
    except environments.EnvironmentMissing as missing:
        cannot_run(str(missing), name)


def libraries(environment: Environment, framework: str) -> Build:
    """The simulator, built for a framework as an environment has it."""
    return build.build(environments.client(environment, framework))


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
        self._made: dict[tuple[str, str], Nursery] = {}

    def __call__(self, name: str, framework: str) -> Nursery:
        """The child of the environment `name`, with `framework` imported."""
        if (name, framework) not in self._made:
            where = environment(name)
            folder = self._folders.mktemp(f"{name}-{framework}")
            self._made[name, framework] = Nursery(
                where, framework, libraries(where, framework), folder
            )
        return self._made[name, framework]

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
