"""Kills, full disks, crowds and clocks: no finished record is lost, none is broken."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pytest_veo
from pytest_veo.archive.merge import merge
from pytest_veo.archive.record import SCHEMA
from pytest_veo.archive.store import load_run
from pytest_veo.archive.store import run_ids
from pytest_veo.archive.table import COLUMNS
from pytest_veo.archive.table import Table
from tests.archive.history import header
from tests.archive.history import record
from tests.archive.history import write


ROOT = Path(__file__).parent.parent.parent
OLD = ROOT / "tests" / "fixtures" / "archive-schema-1"

WRITES = """
import pathlib, resource, sys
from pytest_veo.archive.run_id import make_run_id
from pytest_veo.archive.writer import open_writer
from pytest_veo.errors import ArchiveError
from pytest_veo.telemetry.ci import Origin
from tests.archive.history import FIRST, header, record

limit, count = int(sys.argv[2]), int(sys.argv[3])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
run_id = make_run_id(FIRST, Origin("abc", "main"))
head = header(0, finished=False)._replace(run_id=run_id)
writer = open_writer(sys.argv[1], pathlib.Path(), head)
failed = 0
print("ready", flush=True)
for number in range(count):
    try:
        writer.add(record(f"test_{number}"))
    except ArchiveError:
        failed += 1
    print(number, flush=True)
try:
    writer.finish(header(0)._replace(run_id=run_id))
except ArchiveError as error:
    print("ERROR", failed, error, flush=True)
"""


def start(archive: Path, *, limit: int = 0, count: int = 50) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITES, str(archive), str(limit), str(count)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_session_killed_at_any_moment_keeps_every_record_it_finished(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    with start(tmp_path, count=1_000_000) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.random() / 20)  # any moment will do
        process.send_signal(signal.SIGKILL)
        told = process.stdout.read().split()
    run = load_run(tmp_path, *run_ids(tmp_path))
    assert len(run.records) >= len(told)
    names = [each.nodeid for each in run.records]
    assert names == [f"test_a.py::test_{number}" for number in range(len(names))]
    assert len(run.unread) <= 1  # a line that was being written
    assert run.header.finished_at == ""


def test_eight_shards_at_once_have_a_run_each_with_all_of_their_records(
    tmp_path: Path,
) -> None:
    shards = [start(tmp_path) for _ in range(8)]
    for shard in shards:
        assert "ERROR" not in shard.communicate(timeout=100)[0]
    loaded = pytest_veo.load(tmp_path, "records")
    assert len(run_ids(tmp_path)) == 8
    assert loaded.groupby("run_id").size().tolist() == [50] * 8
    assert loaded.attrs["unread"] == []


def test_a_full_disk_takes_what_it_can_and_the_rest_is_put_aside(
    tmp_path: Path, spool: Path
) -> None:
    process = start(tmp_path, limit=20_000)
    said = process.communicate(timeout=100)[0]
    (error,) = (line for line in said.splitlines() if line.startswith("ERROR"))
    assert "File too large; what is missing is kept in" in error
    assert error.endswith(f"add it with: veo merge {spool} -o {tmp_path}")
    (run_id,) = run_ids(tmp_path)
    run = load_run(tmp_path, run_id)
    assert 0 < len(run.records) < 50
    assert run.unread == ()
    assert merge([spool], tmp_path).completed == (run_id,)
    names = {each.nodeid for each in load_run(tmp_path, run_id).records}
    assert names == {f"test_a.py::test_{number}" for number in range(50)}


@pytest.mark.parametrize("table", COLUMNS)
def test_an_archive_of_the_first_schema_is_read_as_any_other(table: Table) -> None:
    loaded = pytest_veo.load(OLD, table)
    assert list(loaded.columns) == list(COLUMNS[table])
    assert loaded.attrs["unread"] == []
    sizes = {"runs": 1, "records": 3, "counters": 14, "frames": 0}
    assert len(loaded) == sizes[table]


def test_a_run_of_the_first_schema_and_one_of_the_last_share_an_archive(
    tmp_path: Path,
) -> None:
    write(tmp_path, header(0), record("test_x"))
    assert len(merge([OLD], tmp_path).added) == 1
    runs = pytest_veo.load(tmp_path, "runs").sort_values("started_at")
    assert runs["schema"].tolist() == [SCHEMA, SCHEMA]
    assert runs["leaks"].tolist() == [0, 1]
    old = load_run(OLD, *run_ids(OLD))
    new = load_run(tmp_path, old.header.run_id)
    assert new.records == old.records
    assert old.header.schema == 1
    assert dict(new.header.environment)["python"] == "3.11.7"


FOREIGN = {
    "half a line": '{"schema": 2, "nodeid": "te',
    "another schema": '{"schema": 3, "nodeid": "test_a.py::test_x"}',
    "no schema": '{"level": "info", "message": "started"}',
    "zeros": "\0" * 100,
    "no text": "\udcff\udcfe",
    "text for a number": None,
    "a number too large": None,
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_line_that_is_none_of_ours_is_counted_and_named_and_the_rest_is_read(
    tmp_path: Path, what: str
) -> None:
    run_id = write(tmp_path, header(0), record("test_x"), record("test_y"))
    line = FOREIGN[what]
    data = record("test_z").to_dict()
    if what == "text for a number":
        data["counters"][0]["growth"] = "much"
    elif what == "a number too large":
        data["counters"][0]["growth"] = 1 << 70
    path = tmp_path / "runs" / run_id / "records.jsonl"
    with path.open("ab") as lines:
        lines.write((line or json.dumps(data)).encode(errors="surrogateescape"))
    for table in COLUMNS:
        loaded = pytest_veo.load(tmp_path, table)
        (unread,) = loaded.attrs["unread"]
        assert unread.startswith(f"{run_id}/records.jsonl:3: ")
    assert len(pytest_veo.load(tmp_path, "records")) == 2
    assert len(pytest_veo.load(tmp_path, "counters")) == 4


def test_a_clock_that_goes_backwards_changes_no_row(tmp_path: Path) -> None:
    head = header(1)._replace(finished_at=header(0).started_at)
    write(tmp_path, head, record("test_x"))
    write(tmp_path, header(0), record("test_x"))
    loaded = pytest_veo.load(tmp_path, "runs").set_index("run_id").loc[head.run_id]
    assert loaded["finished_at"] < loaded["started_at"]
    assert len(pytest_veo.load(tmp_path, "records")) == 2


def test_a_path_that_is_no_text_is_shown_by_its_numbers(tmp_path: Path) -> None:
    head = header(0)._replace(branch="b\udcfe")
    run_id = write(tmp_path, head, record("test_\udcff[\U0001f600]"))
    run = load_run(tmp_path, run_id)
    assert run.header.branch == r"b\udcfe"
    assert run.records[0].nodeid == "test_a.py::test_\\udcff[\U0001f600]"
    loaded = pytest_veo.load(tmp_path, "records")
    assert loaded["nodeid"].tolist() == [run.records[0].nodeid]
    assert loaded["branch"].tolist() == [run.header.branch]


def test_a_folder_that_was_copied_is_a_run_of_its_own_and_is_named(
    tmp_path: Path,
) -> None:
    run_id = write(tmp_path, header(0), record("test_x"))
    copy = tmp_path / "runs" / f"{run_id}-copy"
    copy.mkdir()
    for path in (tmp_path / "runs" / run_id).iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    loaded = pytest_veo.load(tmp_path, "records")
    assert sorted(loaded["run_id"]) == [run_id, copy.name]
    (unread,) = loaded.attrs["unread"]
    assert unread == f"{copy.name}/run.json: it is of the run {run_id!r}"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_run_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    runs = [write(tmp_path, header(n), record("test_x")) for n in range(2)]
    (tmp_path / "runs" / runs[0] / "records.jsonl").chmod(0)
    loaded = pytest_veo.load(tmp_path, "records")
    assert list(loaded["run_id"]) == runs[1:]
    assert re.search("Permission denied", loaded.attrs["unread"][0])
