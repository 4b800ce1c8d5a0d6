"""SIGKILL at a random moment, again and again: is every finished record there?

    python benchmarks/archive_kills.py [--kills 200] [--seed 0]

Each time a pytest session with an archive is started and killed somewhere between its
first test and its end; one that had ended before does not count. All go into one
archive, which is gathered while they die. Every test that a session told of before
it was killed must have its record; nothing that is there may be broken, but for the one
line that was being written.
"""

from __future__ import annotations

import argparse
import datetime
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_veo.archive.compact import compact
from pytest_veo.archive.store import load_run
from pytest_veo.archive.store import run_ids
from pytest_veo.archive.table import load


TESTS = 300
SUITE = """
import time

import pytest

@pytest.mark.parametrize("number", range({tests}))
def test_it(number):
    time.sleep({pause_s})
"""
TELLS = """
import os

def pytest_collection_finish(session):
    os.write(3, b"begun\\n")

def pytest_runtest_logfinish(nodeid):
    os.write(3, nodeid.encode() + b"\\n")
"""
GATHER_EVERY = 25


class Death(NamedTuple):
    """A session and its end."""

    told: frozenset[str]
    """The tests that it said were finished."""
    code: int
    output: str
    lasted_s: float
    """From when its tests were collected."""

    @property
    def was_killed(self) -> bool:
        """Whether it did not end by itself before."""
        return self.code == -signal.SIGKILL


def write_suite(folder: Path, *, pause_s: float = 0.0) -> None:
    """A suite whose sessions tell of every test."""
    (folder / "test_it.py").write_text(SUITE.format(tests=TESTS, pause_s=pause_s))
    (folder / "conftest.py").write_text(TELLS)


def session(
    folder: Path,
    killed_after_s: float | None,
    *,
    archive: str = "kept",
    shell: str = "",
    more: Mapping[str, str] | None = None,
) -> Death:
    """Start a session in the suite's folder, and kill it unless it may live.

    Args:
        folder: the suite's.
        killed_after_s: counted from when its tests were collected.
        archive: where it goes.
        shell: commands that are run before it.
        more: variables of its environment.
    """
    told, tells = os.pipe()
    shell = f'{shell}\nexec 3>&{tells}; exec "$0" "$@"'
    words = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_veo.plugin"]
    words += ["-p", "no:cacheprovider", "--veo-leak-check", f"--veo-archive={archive}"]
    process = subprocess.Popen(
        ["/bin/bash", "-c", shell, *words],
        cwd=folder,
        env={**os.environ, **(more or {}), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        pass_fds=(tells,),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    os.close(tells)
    with os.fdopen(told, "rb") as heard:
        heard.readline()  # importing is the longest part, and the dullest
        began = time.perf_counter()
        if killed_after_s is not None:
            time.sleep(killed_after_s)
            process.send_signal(signal.SIGKILL)
        said = heard.read()
    output = process.communicate()[0]
    lasted_s = time.perf_counter() - began
    told_of = frozenset(said.decode().split())
    return Death(told_of, process.returncode, output, lasted_s)


class Tally:
    """What became of the runs."""

    def __init__(self, archive: Path) -> None:
        self._archive = archive
        self._known: set[str] = set()
        self.lost = self.broken = 0
        self.killed = self.early = self.late = 0

    def take(self, death: Death) -> None:
        """Look at what a session left."""
        there = set(run_ids(self._archive)) if self._archive.is_dir() else set()
        records: set[str] = set()
        for run_id in there - self._known:
            run = load_run(self._archive, run_id)
            records |= {record.nodeid for record in run.records}
            self.broken += max(0, len(run.unread) - 1)
        self._known = there
        self.lost += len(death.told - records)
        if death.was_killed:
            self.killed += 1
            self.early += not death.told
            self.late += len(death.told) == TESTS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    chance = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suite(folder)
        usual_s = session(folder, None).lasted_s
        archive = folder / "kept"
        tally = Tally(archive)
        while tally.killed < args.kills:
            death = session(folder, chance.uniform(0.0, usual_s))
            tally.take(death)
            if not death.was_killed:
                usual_s = 0.9 * usual_s + 0.1 * death.lasted_s
            elif tally.killed % GATHER_EVERY == 0:
                now = datetime.datetime.now(tz=datetime.UTC)
                compact(archive, now=now, takes_all=True)
        records = load(archive, "records")
    amid = tally.killed - tally.early - tally.late
    print(
        f"{tally.killed} sessions killed: {tally.early} before their first test was "
        f"done, {amid} amid their tests, {tally.late} after the last\n"
        f"{len(records)} records, {len(records.attrs['unread'])} lines cut off or "
        f"broken; lost {tally.lost} finished records, {tally.broken} lines broken"
    )
    return int(bool(tally.lost or tally.broken))


if __name__ == "__main__":
    sys.exit(main())
