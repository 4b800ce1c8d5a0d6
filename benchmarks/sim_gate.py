"""Cost of looking around a test, with real frameworks over the simulated driver.

    python benchmarks/sim_gate.py [torch] [cupy] [cupy13] [both]

Mark: at most 60 us a test with PyTorch and CuPy initialised in one process (`both`).

For each environment (made by `ci/env`; `both` is torch's, with CuPy's packages behind
its own): what every probe's `glance`, `settle` and `read` cost once the framework is
initialised, what the probes of absent frameworks cost, what the meter's glance makes
of them (after short tests Python's blocks are mostly not counted), and what a whole
session adds to an empty test. The allocators are real, the driver is not: NVML's
figures are a lower bound.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pathlib
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
FEW, MANY = 500, 3_000
CONFTEST = """\
import sys

sys.path += {folders}
"""
SUITE = """\
import pytest
{imports}

KEPT = [{uses}]

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


def cpu_us(act: Callable[[], object], calls: int = 2_000, rounds: int = 15) -> float:
    """The same in time of this thread on a processor: what others do counts less."""
    best = float("inf")
    for _ in range(rounds):
        began = time.thread_time_ns()
        for _ in range(calls):
            act()
        best = min(best, (time.thread_time_ns() - began) / calls)
    return best / 1_000


def in_child(frameworks: list[str]) -> None:
    """Measure the probes in this process and print one line of JSON."""
    from pytest_veo.measure.meter import Meter
    from pytest_veo.probes.catalogue import CATALOGUE
    from pytest_veo.probes.catalogue import open_probes

    modules = {name: importlib.import_module(name) for name in frameworks}
    kept = [eval(USE[name], modules) for name in frameworks]
    rows = {}
    total = 0.0
    probes = open_probes(CATALOGUE)
    meter = Meter(probes.ready)
    for _ in range(10):
        meter.glance()
    for probe in probes.ready:
        row = {"is_active": time_us(probe.is_active)}
        if probe.is_active():
            probe.glance()
            row["glance"] = time_us(probe.glance)
            row["read"] = time_us(probe.read, calls=100)
            row["settle"] = time_us(probe.settle, calls=100)
        total += row["is_active"] + row.get("glance", 0.0)
        rows[probe.name] = row
    rows["all"] = {
        "is_active and glance": total,
        "glance of the meter": time_us(meter.glance),
        "on a processor": cpu_us(meter.glance),
        "blocks not counted": cpu_us(lambda: meter.glance(lambda: 0)),
    }
    del kept
    print(json.dumps(rows))


def in_sessions(
    python: str, env: dict[str, str], frameworks: list[str], folders: list[str]
) -> dict[str, float]:
    """What the plugin adds to an empty test, in microseconds of processor time.

    The slope between a short and a long session, so that what a session costs once is
    left out; the least of three rounds.
    """
    found: dict[str, dict[int, float]] = {"off": {}, "fast": {}}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "test_suite.py"
        path.with_name("conftest.py").write_text(CONFTEST.format(folders=folders))
        for _ in range(3):
            for tests in (FEW, MANY):
                suite = SUITE.format(
                    imports="\n".join(f"import {name}" for name in frameworks),
                    uses=", ".join(USE[name] for name in frameworks),
                    tests=tests,
                )
                path.write_text(suite)
                for level, times in found.items():
                    command = [python, "-m", "pytest", "-q", "-p", "pytest_veo.plugin"]
                    command += [f"--veo-leak-check={level}", "-p", "no:cacheprovider"]
                    seconds = processor_s([*command, str(path)], env, folder)
                    times[tests] = min(times.get(tests, seconds), seconds)
    off, fast = (
        (times[MANY] - times[FEW]) / (MANY - FEW) * 1e6 for times in found.values()
    )
    return {"empty test": off, "checked": fast, "added": fast - off}


def processor_s(command: list[str], env: dict[str, str], folder: str) -> float:
    """User and system time of a command that must succeed."""
    null = subprocess.DEVNULL
    child = subprocess.Popen(command, env=env, cwd=folder, stdout=null, stderr=null)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)}: status {child.returncode}")
    return used.ru_utime + used.ru_stime


def measure(name: str) -> None:
    """One environment's tables."""
    from tests.simgpu import build
    from tests.simgpu import contract
    from tests.simgpu import environments
    from tests.simgpu.driver import Sim

    frameworks = ["torch", "cupy"] if name == "both" else [name.removesuffix("13")]
    environment = environments.find("torch" if name == "both" else name)
    folders = [str(environments.find("cupy").packages)] if name == "both" else []
    libraries = build.build(environments.client(environment, frameworks[0]))
    with tempfile.TemporaryDirectory() as folder:
        sim = Sim.create(pathlib.Path(folder) / "state", libraries, devices=2)
        env = contract.child_environment(sim)
        python = str(environment.python)
        done = subprocess.run(
            [python, __file__, "--child", *frameworks, "--behind", *folders],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        print(f"{name}: microseconds")
        for probe, row in json.loads(done.stdout.splitlines()[-1]).items():
            figures = ", ".join(f"{what} {us:.2f}" for what, us in row.items())
            print(f"  {probe:12} {figures}")
        session = in_sessions(python, env, frameworks, folders)
        figures = ", ".join(f"{what} {us:.0f}" for what, us in session.items())
        print(f"  {'session':12} {figures}")
        sim.close()


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environments", nargs="*", default=["torch", "cupy", "both"])
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--behind", nargs="*", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        sys.path += chosen.behind
        in_child(chosen.child)
        return
    for name in chosen.environments:
        measure(name)


if __name__ == "__main__":
    main()
