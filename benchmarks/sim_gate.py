"""Cost of looking around a test, with real frameworks over the simulated driver.

    python benchmarks/sim_gate.py [torch] [cupy] [cupy13]

For each environment (made by `ci/env`): what every probe's `glance`, `settle` and
`read` cost once the framework is initialised, what the probes of absent frameworks
cost, and what a whole session adds to an empty test. The allocators are real, the
driver is not: NVML's figures are a lower bound.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable


ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

USE = {
    "torch": "torch.empty(1 << 20, device='cuda')",
    "cupy": "cupy.empty(1 << 20)",
}
TESTS = 2_000
SUITE = """\
import {framework}
import pytest

KEPT = {use}

@pytest.mark.parametrize("n", range({tests}))
def test_nothing(n):
    pass
"""


def time_us(act: Callable[[], object], calls: int = 2_000, rounds: int = 7) -> float:
    """The best round's mean, in microseconds."""
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter_ns()
        for _ in range(calls):
            act()
        best = min(best, (time.perf_counter_ns() - began) / calls)
    return best / 1_000


def in_child(framework: str) -> None:
    """Measure the probes in this process and print one line of JSON."""
    from pytest_veo.probes.catalogue import CATALOGUE
    from pytest_veo.probes.catalogue import open_probes

    module = importlib.import_module(framework)
    kept = eval(USE[framework], {framework: module})
    rows = {}
    total = 0.0
    for probe in open_probes(CATALOGUE).ready:
        row = {"is_active": time_us(probe.is_active)}
        if probe.is_active():
            probe.glance()
            row["glance"] = time_us(probe.glance)
            row["read"] = time_us(probe.read, calls=100)
            row["settle"] = time_us(probe.settle, calls=100)
        total += row["is_active"] + row.get("glance", 0.0)
        rows[probe.name] = row
    rows["all"] = {"is_active and glance": total}
    del kept
    print(json.dumps(rows))


def in_sessions(python: str, env: dict[str, str], framework: str) -> dict[str, float]:
    """What the plugin adds to an empty test, in microseconds, by level."""
    found: dict[str, list[float]] = {"off": [], "fast": []}
    with tempfile.TemporaryDirectory() as folder:
        suite = SUITE.format(framework=framework, use=USE[framework], tests=TESTS)
        path = pathlib.Path(folder) / "test_suite.py"
        path.write_text(suite)
        for _ in range(3):
            for level, times in found.items():
                command = [python, "-m", "pytest", "-q", "-p", "pytest_veo.plugin"]
                command += [f"--veo-leak-check={level}", "-p", "no:cacheprovider"]
                done = subprocess.run(
                    [*command, str(path)],
                    env=env,
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    check=True,
                )
                seconds = done.stdout.rpartition(" in ")[2].partition("s")[0]
                times.append(float(seconds) / TESTS * 1e6)
    off, fast = (statistics.median(times) for times in found.values())
    return {"empty test": off, "checked": fast, "added": fast - off}


def measure(name: str) -> None:
    """One environment's tables."""
    from tests.simgpu import build
    from tests.simgpu import contract
    from tests.simgpu import environments
    from tests.simgpu.driver import Sim

    environment = environments.find(name)
    framework = name.removesuffix("13")
    libraries = build.build(environments.client(environment, name.removesuffix("13")))
    with tempfile.TemporaryDirectory() as folder:
        sim = Sim.create(pathlib.Path(folder) / "state", libraries, devices=2)
        env = contract.child_environment(sim)
        python = str(environment.python)
        done = subprocess.run(
            [python, __file__, "--child", framework],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        print(f"{name}: microseconds")
        for probe, row in json.loads(done.stdout.splitlines()[-1]).items():
            figures = ", ".join(f"{what} {us:.2f}" for what, us in row.items())
            print(f"  {probe:12} {figures}")
        session = in_sessions(python, env, framework)
        figures = ", ".join(f"{what} {us:.0f}" for what, us in session.items())
        print(f"  {'session':12} {figures}")
        sim.close()


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environments", nargs="*", default=["torch", "cupy"])
    parser.add_argument("--child", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        in_child(chosen.child)
        return
    for name in chosen.environments:
        measure(name)


if __name__ == "__main__":
    main()
