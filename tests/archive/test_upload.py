"""Runs in buckets: all that was finished gets there, whatever fails meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pytest_veo.archive.merge import merge
from pytest_veo.archive.place import Place
from pytest_veo.archive.store import load_run
from pytest_veo.archive.store import run_ids
from pytest_veo.archive.upload import Sender
from pytest_veo.archive.upload import UrlWriter
from pytest_veo.archive.upload import finish_sending
from pytest_veo.archive.writer import RunWriter
from pytest_veo.errors import ArchiveError
from pytest_veo.errors import MissingDependency
from tests.archive.history import header
from tests.archive.history import record


class Flaky(MemoryFileSystem):  # type: ignore[misc]
    """A bucket that refuses what it is told to."""

    protocol = "flaky"
    store: dict[str, Any] = {}
    pseudo_dirs = [""]
    refusals = 0
    """So many writes fail from now on."""

    def pipe_file(self, path: str, value: bytes, *args: Any, **given: Any) -> None:
        if Flaky.refusals > 0:
            Flaky.refusals -= 1
            raise RuntimeError("503 slow down")
        super().pipe_file(path, value, *args, **given)


@pytest.fixture
def bucket() -> Iterator[str]:
    fsspec.register_implementation("flaky", Flaky, clobber=True)
    Flaky.refusals = 0
    yield f"flaky://{uuid.uuid4().hex}"
    Flaky.refusals = 0


def names(url: str, run_id: str) -> list[str]:
    return [
        name for name in Place(url).names(f"runs/{run_id}") if "parquet" not in name
    ]


def test_pieces_are_readable_while_the_run_goes_on_and_give_way_to_the_whole(
    bucket: str, spool: Path
) -> None:
    head = header(0, finished=False)
    writer = RunWriter(spool, head)
    sender = Sender(Place(bucket), writer.folder, head.run_id)
    for name in ("test_x", "test_y"):
        writer.add(record(name))
        sender.send()
        sender.send()
    assert names(bucket, head.run_id) == [
        "records-000001.jsonl",
        "records-000002.jsonl",
        "run.json",
    ]
    assert len(load_run(bucket, head.run_id).records) == 2
    writer.finish(header(0))
    assert finish_sending(sender, writer.folder) == ""
    assert names(bucket, head.run_id) == ["records.jsonl", "run.json"]
    run = load_run(bucket, head.run_id)
    assert run.header == header(0)
    assert [each.nodeid for each in run.records] == [
        "test_a.py::test_x",
        "test_a.py::test_y",
    ]
    assert not writer.folder.exists()


@pytest.mark.parametrize("refusals", range(1, 8))
def test_a_bucket_that_fails_for_a_while_gets_every_record_once(
    bucket: str, spool: Path, refusals: int
) -> None:
    head = header(0, finished=False)
    writer = RunWriter(spool, head)
    sender = Sender(Place(bucket), writer.folder, head.run_id)
    Flaky.refusals = refusals
    for number in range(4):
        writer.add(record(f"test_{number}"))
        if Flaky.refusals:
            with pytest.raises(ArchiveError, match="RuntimeError: 503 slow down"):
                sender.send()
        else:
            sender.send()
    writer.finish(header(0))
    assert finish_sending(sender, writer.folder, waits_s=(0.0,) * 8) == ""
    found = [each.nodeid for each in load_run(bucket, head.run_id).records]
    assert found == [f"test_a.py::test_{number}" for number in range(4)]


def test_a_bucket_that_fails_for_good_leaves_the_run_where_the_message_says(
    bucket: str, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_veo.archive.upload._IN_PROCESS", ("flaky",))
    Flaky.refusals = 1000
    head = header(0, finished=False)
    writer = UrlWriter(Place(bucket), head)
    writer.add(record("test_x"))
    with pytest.raises(ArchiveError) as raised:
        writer.finish(header(0))
    assert str(raised.value) == (
        f"cannot write {bucket}/runs/{head.run_id}/run.json: RuntimeError: 503 slow "
        f"down; the run is kept in {spool}/runs/{head.run_id}, send it with: "
        f"veo merge {spool} -o {bucket}"
    )
    Flaky.refusals = 0
    assert merge([spool], bucket).added == (head.run_id,)
    assert len(load_run(bucket, head.run_id).records) == 1


PLUGIN = """
import pathlib, time
from fsspec.implementations.local import LocalFileSystem

class Bucket(LocalFileSystem):
    protocol = "shelf"

    def pipe_file(self, path, value, **given):
        if pathlib.Path({broken!r}).exists():
            raise RuntimeError("503 slow down")
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        super().pipe_file(path, value, **given)
"""
SESSION = """
import pathlib, signal, os, sys, time
from pytest_veo.archive.writer import open_writer
from tests.archive.history import header, record

writer = open_writer({url!r}, pathlib.Path(), header(0, finished=False))
for number in range(50):
    writer.add(record(f"test_{{number}}"))
    print(number, flush=True)
if {dies!r}:
    os.kill(os.getpid(), signal.SIGKILL)
writer.finish(header(0))
"""


class Shelf:
    """A bucket that other processes reach: of a plugin of fsspec's, over a folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "shelf"
        self.url = f"shelf://{self.folder}"
        self.broken = folder / "broken"
        home = folder / "plugin"
        metadata = home / "shelf-1.dist-info"
        metadata.mkdir(parents=True)
        (home / "shelf_bucket.py").write_text(PLUGIN.format(broken=str(self.broken)))
        (metadata / "METADATA").write_text("Name: shelf\nVersion: 1\n")
        (metadata / "entry_points.txt").write_text(
            "[fsspec.specs]\nshelf = shelf_bucket:Bucket\n"
        )
        root = Path(__file__).parent.parent.parent
        monkeypatch.setenv("PYTHONPATH", f"{home}{os.pathsep}{root}")

    def session(self, *, dies: bool) -> subprocess.CompletedProcess[str]:
        script = textwrap.dedent(SESSION).format(url=self.url, dies=dies)
        return subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=100,
        )

    def wait_for_end(self, spool: Path) -> None:
        """Until what sends has emptied the spool."""
        ends_at = time.monotonic() + 60
        while any((spool / "runs").iterdir()) and time.monotonic() < ends_at:
            time.sleep(0.05)


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    return Shelf(tmp_path, monkeypatch)


def test_a_session_that_is_killed_has_all_it_finished_in_the_bucket(
    shelf: Shelf, spool: Path
) -> None:
    ended = shelf.session(dies=True)
    assert ended.returncode == -signal.SIGKILL
    shelf.wait_for_end(spool)
    (run_id,) = run_ids(shelf.folder)
    run = load_run(shelf.folder, run_id)
    assert len(run.records) == 50
    assert run.unread == ()
    assert run.header.finished_at == ""


def test_a_session_waits_until_its_bucket_has_everything(
    shelf: Shelf, spool: Path
) -> None:
    ended = shelf.session(dies=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    run = load_run(shelf.folder, *run_ids(shelf.folder))
    assert len(run.records) == 50
    assert run.header == header(0)
    assert list((spool / "runs").iterdir()) == []


def test_a_url_without_fsspec_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingDependency, match=r"needs fsspec.*pytest-veo\[archive\]"):
        Place("s3://bucket/archive")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("nonsense://bucket", "cannot open the archive nonsense://bucket: Protocol"),
        ("memory://nothing-here", "there is no archive at 'memory://nothing-here'"),
    ],
)
def test_a_place_that_is_no_archive_is_named(url: str, why: str) -> None:
    with pytest.raises(ArchiveError, match=why):
        run_ids(url)


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_a_folder_needs_no_library(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    place = Place(form.format(tmp_path))
    place.write("a/b", b"text")
    assert place.read("a/b") == b"text"
    assert (place.names("a"), place.names("c")) == (["b"], [])
    place.remove("a")
    assert not place.exists("a")
    with pytest.raises(ArchiveError, match=r"cannot read .*a/b: No such file"):
        place.read("a/b")
