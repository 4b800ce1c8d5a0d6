"""Plays a scripted life in an environment and brings back what was said of it."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
from collections.abc import Mapping
from typing import Any

from tests.simgpu import build
from tests.simgpu.driver import Sim
from tests.simgpu.environments import ROOT
from tests.simgpu.environments import Environment


LIVES = pathlib.Path(__file__).parent / "lives"
TIMEOUT_S = 300


class LifeFailed(AssertionError):
    """A script ended early; the message has what it wrote to stderr."""


@dataclasses.dataclass(frozen=True, slots=True)
class Moment:
    """One step of a life: the same instant, seen from every side."""

    step: str
    framework: list[dict[str, int]]
    """The framework's own counters, device by device; empty where it has none."""
    driver: list[dict[str, int]]
    """The driver's books of the process, device by device."""
    nvml: list[int | None]
    """The process's bytes as NVML lists them; None where it is not listed."""
    probes: dict[str, Any] | None
    """The package's own readings; None where it is not importable."""
    notes: dict[str, Any]

    def charged(self, device: int = 0) -> int:
        """Bytes that the driver charges, the context apart."""
        books = self.driver[device]
        return books["used_bytes"] - books["context_bytes"]


class Lives:
    """What came of the lives of a script, group by group."""

    def __init__(self) -> None:
        self._errors = ""
        self._moments: dict[str, dict[str, Moment]] = {}
        self._ends: dict[str, int] = {}

    def add(self, output: str, errors: str) -> None:
        """Take in what a child wrote."""
        self._errors += errors
        moments: dict[str, Moment] = {}
        for line in output.splitlines():
            if not line.startswith("{"):
                continue  # a library that prints
            said = json.loads(line)
            if "life" in said:
                self._moments[said["life"]] = moments
                self._ends[said["life"]] = said["exit"]
                moments = {}
            else:
                moments[said["step"]] = Moment(**said)

    def __call__(self, life: str) -> dict[str, Moment]:
        """The moments of a life by step, in order.

        Raises:
            LifeFailed: it did not come to its end, or was not begun.
        """
        end = self._ends.get(life)
        if end != 0:
            state = "was not lived" if end is None else f"ended with status {end}"
            raise LifeFailed(f"{life} {state}\n{self._errors}")
        return self._moments[life]


def play(
    script: str,
    group: str,
    environment: Environment,
    libraries: build.Build,
    folder: pathlib.Path,
    settings: Mapping[str, str] | None = None,
) -> tuple[str, str]:
    """Live a group of lives on two devices of 8 GiB; what the child wrote.

    Args:
        script: a file of `lives/`.
        group: a name in its `GROUPS`.
        environment: whose Python plays.
        libraries: the simulator, built for what the script imports.
        folder: where the state file may lie.
        settings: further environment variables.
    """
    sim = Sim.create(folder / f"{group}.state", libraries, devices=2)
    try:
        done = subprocess.run(
            [str(environment.python), str(LIVES / script), group],
            env={**child_environment(sim), **(settings or {})},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    finally:
        sim.close()
    return done.stdout, done.stderr


def child_environment(sim: Sim) -> dict[str, str]:
    """The bench's environment, with this repository importable."""
    env = sim.environment()
    env["PYTHONPATH"] = os.pathsep.join([env["PYTHONPATH"], str(ROOT)])
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    return env


def disagreements(
    moment: Moment,
    expected: Mapping[str, int | None],
    ways: tuple[str, ...] = ("glanced", "read"),
) -> list[str]:
    """Where the probes differ from what they should read.

    Args:
        moment: a step.
        expected: `probe.counter device` to value; None: must not be read.
        ways: a slow counter is read only.
    """
    if moment.probes is None:
        return []
    found = []
    for key, value in expected.items():
        for how in ways:
            seen = moment.probes[how].get(key)
            if seen != value:
                found.append(f"{moment.step}: {key} {how} {seen}, should be {value}")
    return found
