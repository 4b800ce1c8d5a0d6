"""What the leak check costs: `python benchmarks/overhead.py [--rounds N]`.

Three suites of clean tests run without the plugin, with the plugin inactive, and with
the check. Runs are interleaved: each figure is compared with the run without the
plugin of the same round, and the median of these ratios is told. Beside it stands the
ratio of the least CPU times of all rounds, which a busy machine disturbs less.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


EMPTY = "\n".join(f"def test_{n}(): pass" for n in range(100))
ALLOCATING = """
import pytest

class Node:
    def __init__(self):
        self.me = self

@pytest.mark.parametrize("n", range(200))
def test_allocates(n):
    nodes = [Node() for _ in range(10_000)]
    block = bytearray(1 << 20)
    assert len(nodes) == 10_000 and not block[n]
"""
CHURN = """
import json
import random
import threading

import pytest

def buffers(rng, folder):
    return [bytearray(rng.randrange(1, 4 << 20)) for _ in range(5)]

def documents(rng, folder):
    rows = {str(n): list(range(20)) for n in range(rng.randrange(100, 5000))}
    return json.loads(json.dumps(rows))

def threads(rng, folder):
    def work():
        return [bytes(50_000) for _ in range(100)]
    started = [threading.Thread(target=work) for _ in range(3)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()

def errors(rng, folder):
    with pytest.raises(ValueError):
        int("x" * rng.randrange(1, 100))

def files(rng, folder):
    (folder / "blob").write_bytes(bytes(rng.randrange(1, 1 << 20)))

def tables(rng, folder):
    return {n: str(n) for n in range(rng.randrange(1000, 50_000))}

KINDS = (buffers, documents, threads, errors, files, tables)

@pytest.mark.parametrize("n", range(300))
def test_churns(n, tmp_path):
    KINDS[n % len(KINDS)](random.Random(n), tmp_path)
"""
IMPORT = """
import time
import pytest
began = time.perf_counter()
import pytest_veo.plugin, pytest_veo.frames_plugin
print((time.perf_counter() - began) * 1000)
"""


class Suite(NamedTuple):
    """Test files of one kind."""

    title: str
    tests: int
    files: Mapping[str, str]


SUITES = (
    Suite(
        "2,000 empty tests", 2000, {f"test_empty_{n:02}.py": EMPTY for n in range(20)}
    ),
    Suite("200 allocating tests", 200, {"test_allocating.py": ALLOCATING}),
    Suite("300 churning tests", 300, {"test_churning.py": CHURN}),
)
ABSENT = "without the plugin"
CONFIGURATIONS: Mapping[str, tuple[str, ...]] = {
    ABSENT: (),
    "inactive": ("-p", "pytest_veo.plugin"),
    "`fast`": ("-p", "pytest_veo.plugin", "--veo-leak-check"),
    "`fast`, `--veo-gc=plain`": (
        *("-p", "pytest_veo.plugin", "--veo-leak-check", "--veo-gc=plain"),
    ),
}


class Cost(NamedTuple):
    """One run of one suite."""

    cpu_s: float
    """User and system time of the process and its children."""
    wall_s: float


def run(folder: Path, options: tuple[str, ...]) -> Cost:
    """Run the suite in `folder` once.

    Raises:
        SystemExit: a test failed; the suites are clean.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    # Compiled modules are kept, as everywhere but in a few containers: else the
    # plugin is compiled at each run, and an installed pytest is not.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(folder / ".pycache")
    with tempfile.TemporaryFile() as said:
        began = time.perf_counter()
        child = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=said, stderr=said
        )
        _, status, used = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            raise SystemExit(said.read().decode(errors="replace"))
    return Cost(used.ru_utime + used.ru_stime, wall_s)


def measure(suite: Suite, rounds: int) -> list[dict[str, Cost]]:
    """Every configuration once a round, each round beginning with another one."""
    names = list(CONFIGURATIONS)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in suite.files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        for options in CONFIGURATIONS.values():
            run(Path(folder), options)  # compiles
        found = []
        for turn in range(rounds):
            shift = turn % len(names)
            order = names[shift:] + names[:shift]
            found.append(
                {name: run(Path(folder), CONFIGURATIONS[name]) for name in order}
            )
    return found


def rows(suite: Suite, found: list[dict[str, Cost]]) -> list[str]:
    """The suite's lines of the table."""
    lines = []
    for name in CONFIGURATIONS:
        if name == ABSENT:
            continue
        pairs = [(costs[name], costs[ABSENT]) for costs in found]
        cpu = statistics.median(with_.cpu_s / bare.cpu_s for with_, bare in pairs)
        wall = statistics.median(with_.wall_s / bare.wall_s for with_, bare in pairs)
        least = min(with_.cpu_s for with_, _ in pairs)
        bare_least = min(bare.cpu_s for _, bare in pairs)
        added_us = (least - bare_least) / suite.tests * 1e6
        lines.append(
            f"| {suite.title} | {name} | {cpu:.2f} | {wall:.2f} "
            f"| {least / bare_least:.2f} | {added_us:+,.0f} |"
        )
    return lines


def import_ms(times: int) -> float:
    """What importing the plugin takes beyond pytest, in milliseconds; the median."""
    seen = []
    for _ in range(times):
        said = subprocess.run(
            [sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True
        )
        seen.append(float(said.stdout))
    return statistics.median(seen)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description="What the leak check costs, as ratios."
    )
    parser.add_argument("--rounds", type=int, default=7, metavar="N")
    rounds = parser.parse_args().rounds
    machine = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}"
    print(f"{machine}, Python {platform.python_version()}, {rounds} rounds.\n")
    print(
        "| suite | plugin | CPU time | wall time | least CPU time | added us a test |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for suite in SUITES:
        for line in rows(suite, measure(suite, rounds)):
            print(line, flush=True)
    print(f"\nImporting the plugin: {import_ms(max(11, rounds)):.1f} ms beyond pytest.")


if __name__ == "__main__":
    main()
