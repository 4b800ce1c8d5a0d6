"""SIGKILL at a random moment, again and again: is every finished record there?

    python benchmarks/archive_kills.py [--kills 200] [--seed 0]

Each time a pytest session with an archive is started and killed somewhere between its
start and its end. All go into one archive, which is gathered while they die. Every test
that a session told of before it was killed must have its record; nothing that is there
may be broken, but for the one line that was being written.
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
from pathlib import Path

from pytest_veo.archive.compact import compact
from pytest_veo.archive.store import load_run
from pytest_veo.archive.store import run_ids
from pytest_veo.archive.table import load


SUITE = """
import pytest

@pytest.mark.parametrize("number", range(300))
def test_it(number):
    pass
"""
TELLS = """
import os

os.write(3, b"begun\\n")

def pytest_runtest_logfinish(nodeid):
    os.write(3, nodeid.encode() + b"\\n")
"""
GATHER_EVERY = 25


def kill_one(folder: Path, after_s: float | None) -> set[str]:
    """The tests that a session said were finished before it died.

    Args:
        folder: the suite's.
        after_s: when it is killed; None lets it live.
    """
    told, tells = os.pipe()
    shell = f'exec 3>&{tells}; exec "$0" "$@"'
    words = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_veo.plugin"]
    words += ["-p", "no:cacheprovider", "--veo-leak-check", "--veo-archive=kept"]
    process = subprocess.Popen(
        ["/bin/bash", "-c", shell, *words],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        pass_fds=(tells,),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(tells)
    with os.fdopen(told, "rb") as heard:
        said = heard.readline()  # importing is the longest part, and the dullest
        if after_s is not None:
            time.sleep(after_s)
            process.send_signal(signal.SIGKILL)
        said += heard.read()
    process.wait()
    return set(said.decode().split())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    chance = random.Random(args.seed)
    lost = broken = finished = cut_off = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_it.py").write_text(SUITE)
        (folder / "conftest.py").write_text(TELLS)
        began = time.perf_counter()
        kill_one(folder, None)
        usual_s = time.perf_counter() - began
        known = set(run_ids(folder / "kept")) if (folder / "kept").is_dir() else set()
        for number in range(args.kills):
            told = kill_one(folder, chance.uniform(0.0, 1.1) * usual_s)
            there = (
                set(run_ids(folder / "kept")) if (folder / "kept").is_dir() else set()
            )
            new, known = there - known, there
            records: set[str] = set()
            for run_id in new:
                run = load_run(folder / "kept", run_id)
                records |= {record.nodeid for record in run.records}
                broken += max(0, len(run.unread) - 1)
                cut_off += bool(run.unread)
                finished += bool(run.header.finished_at)
            lost += len(told - records - {"begun"})
            if number % GATHER_EVERY == 0 and known:
                now = datetime.datetime.now(tz=datetime.UTC)
                compact(folder / "kept", now=now, takes_all=True)
        loaded = load(folder / "kept", "records")
        print(
            f"{args.kills} kills: {len(known)} runs, {len(loaded)} records, "
            f"{finished} runs had ended, {cut_off} had a line cut off; "
            f"lost {lost} finished records, {broken} lines broken"
        )
    return int(bool(lost or broken))


if __name__ == "__main__":
    sys.exit(main())
