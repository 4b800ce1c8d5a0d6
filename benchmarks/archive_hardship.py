"""Shards at once, a full disk, a bucket that dies: is every finished record there?

    python benchmarks/archive_hardship.py

Whole pytest sessions each time. Eight shards write one archive at once, half of them
are killed amid their tests while it is gathered. A disk has room for a part of a
session (a tmpfs where this may mount one, else a limit on the size of files). A server
that speaks S3 is ended amid a session and comes back empty. What the session's message
says is then done, and what every session told of is looked for.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.archive_kills import TESTS
from benchmarks.archive_kills import Death
from benchmarks.archive_kills import session
from benchmarks.archive_kills import write_suite
from pytest_veo.archive.compact import compact
from pytest_veo.archive.store import load_run
from pytest_veo.archive.store import run_ids
from pytest_veo.archive.table import load
from tests.archive.server import s3_server


SHARDS = 8
DISK_BYTES = 128 << 10
LIMIT = f"ulimit -f {DISK_BYTES >> 10}"


def report(what: str, told: int, lost: int, broken: int) -> bool:
    print(f"{what}: {told} tests finished, {lost} lost, {broken} lines broken")
    return not lost and not broken


def records_of(archive: str | Path) -> tuple[set[tuple[str, str]], int]:
    """Each run's tests, and the number of lines that could not be read."""
    found, broken = set(), 0
    for run_id in run_ids(archive):
        run = load_run(archive, run_id)
        found |= {(run.header.shard, record.nodeid) for record in run.records}
        broken += len(run.unread)
    return found, broken


def shards(folder: Path) -> bool:
    write_suite(folder)
    usual_s = session(folder, None, archive="first").lasted_s
    chance = random.Random(0)

    def shard(number: int) -> Death:
        # All at once take about four times as long on two cores.
        end = chance.uniform(0, 4 * usual_s) if number % 2 else None
        return session(folder, end, more={"VEO_SHARD": f"{number + 1}/{SHARDS}"})

    done = threading.Event()

    def gather() -> int:
        times = 0
        while not done.wait(0.2):
            if (folder / "kept" / "runs").is_dir():
                now = datetime.datetime.now(tz=datetime.UTC)
                compact(folder / "kept", now=now)
                times += 1
        return times

    with ThreadPoolExecutor(SHARDS + 1) as pool:
        gathering = pool.submit(gather)
        deaths = list(pool.map(shard, range(SHARDS)))
        done.set()
        times = gathering.result()
    killed = sum(death.was_killed for death in deaths)
    told = {
        (f"{number + 1}/{SHARDS}", nodeid)
        for number, death in enumerate(deaths)
        for nodeid in death.told
    }
    found, broken = records_of(folder / "kept")
    rows = load(folder / "kept", "records")
    twice = int(rows.duplicated(["run_id", "nodeid"]).sum())
    what = f"{SHARDS} shards at once, {killed} killed, gathered {times} times"
    # Of each that was killed one line may have been amid its writing.
    return report(what, len(told), len(told - found), max(0, broken - killed) + twice)


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[str]:
    """A disk with little room in it; what the session's shell must do besides."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    try:
        subprocess.run(["mount", *options], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        yield LIMIT
        return
    try:
        yield ""
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def merge(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest_veo", "merge", *words],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return (done.stdout + done.stderr).strip()


def told_command(output: str) -> list[str]:
    """The words of the `veo merge` that a session's message asks for."""
    found = re.search(r"veo merge (\S+ -o \S+)", " ".join(output.split()))
    return shlex.split(found[1]) if found else []


def full_disk(folder: Path) -> bool:
    write_suite(folder)
    with small_disk(folder / "small") as shell:
        death = session(folder, None, archive="small", shell=shell)
        found, broken = records_of(folder / "small")
        spool, *_ = told_command(death.output)
        said = merge(folder, "small", spool, "-o", "large")
    there, broken_there = records_of(folder / "large")
    told = {("", nodeid) for nodeid in death.told}
    what = (
        f"a disk full after {len(found)} of {TESTS} tests, exit {death.code} ({said})"
    )
    return report(what, len(told), len(told - there), broken + broken_there)


def dead_bucket(folder: Path) -> bool:
    write_suite(folder, pause_s=0.02)
    url = "s3://bucket/veo"
    for name, value in {
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        os.environ[name] = value
    with contextlib.ExitStack() as server:
        os.environ["AWS_ENDPOINT_URL"] = server.enter_context(s3_server())
        make_bucket()
        timer = threading.Timer(4.0, server.close)
        timer.start()
        death = session(folder, None, archive=url)
        timer.join()
    with s3_server() as address:
        os.environ["AWS_ENDPOINT_URL"] = address
        make_bucket()
        said = merge(folder, *told_command(death.output))
        found, broken = records_of(url)
    told = {("", nodeid) for nodeid in death.told}
    what = f"a bucket that is gone amid a session, exit {death.code} ({said})"
    return report(what, len(told), len(told - found), broken)


def make_bucket() -> None:
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    s3fs.S3FileSystem().mkdir("bucket")


def main() -> int:
    good = True
    for hardship in (shards, full_disk, dead_bucket):
        with tempfile.TemporaryDirectory() as name:
            os.environ["XDG_CACHE_HOME"] = f"{name}/cache"
            good &= hardship(Path(name))
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
