"""Runs on disk: whole, readable, and what cannot be read is named."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from pytest_veo.archive.record import SCHEMA
from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.store import RunWriter
from pytest_veo.archive.store import load_run
from pytest_veo.archive.store import run_ids
from pytest_veo.errors import ArchiveError


HEADER = RunHeader("20261130T190000Z-abc", "2026-11-30T19:00:00+00:00")


def write(archive: Path, *nodeids: str, run_id: str = HEADER.run_id) -> Path:
    writer = RunWriter(archive, HEADER._replace(run_id=run_id))
    for nodeid in nodeids:
        writer.add(Record(nodeid))
    writer.finish(writer.header)
    return writer.folder


def test_every_record_can_be_read_before_the_run_ends(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, HEADER)
    writer.add(Record("first"))
    writer.add(Record("second"))
    run = load_run(tmp_path, HEADER.run_id)
    writer.finish(HEADER)
    assert [record.nodeid for record in run.records] == ["first", "second"]
    assert run.header == HEADER


def test_the_end_is_written_into_the_header(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, HEADER)
    done = HEADER._replace(finished_at="later", totals=(("clean", 3),))
    writer.finish(done)
    assert load_run(tmp_path, HEADER.run_id).header == done
    writer.add(Record("late"))
    assert load_run(tmp_path, HEADER.run_id).records == ()


def test_runs_are_listed_oldest_first_and_drafts_are_not(tmp_path: Path) -> None:
    for run_id in ("20261130-b", "20250101-c", "20261130-a"):
        write(tmp_path, run_id=run_id)
    (tmp_path / "runs" / ".draft-x").mkdir()
    (tmp_path / "runs" / "note.txt").touch()
    assert run_ids(tmp_path) == ["20250101-c", "20261130-a", "20261130-b"]


def test_a_run_that_is_there_already_is_not_overwritten(tmp_path: Path) -> None:
    write(tmp_path, "first")
    with pytest.raises(ArchiveError, match="cannot write the archive"):
        write(tmp_path, "other")
    assert [r.nodeid for r in load_run(tmp_path, HEADER.run_id).records] == ["first"]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [HEADER.run_id]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"schema": 1, "node', "Unterminated string"),
        ("[]", "no JSON object"),
        ('{"schema": 99}', "a record of schema 99, this reads"),
        (f'{{"schema": {SCHEMA}}}', "no record: KeyError 'nodeid'"),
        ("\x00", "Expecting value"),
    ],
    ids=["cut off", "list", "schema", "empty", "zeros"],
)
def test_a_line_that_cannot_be_read_is_named_and_the_rest_is_there(
    tmp_path: Path, line: str, why: str
) -> None:
    folder = write(tmp_path, "first", "second")
    with (folder / "records.jsonl").open("a") as records:
        records.write(line)
    run = load_run(tmp_path, HEADER.run_id)
    assert len(run.records) == 2
    (unread,) = run.unread
    assert unread.startswith("records.jsonl:3: ")
    assert why in unread


@pytest.mark.parametrize("run_id", ["20200101-x", "..", "", "../..", "a/b"])
def test_a_run_that_is_not_there_is_an_error(tmp_path: Path, run_id: str) -> None:
    write(tmp_path)
    with pytest.raises(ArchiveError, match=r"there is no run|cannot read"):
        load_run(tmp_path, run_id)


def test_no_archive_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"there is no archive at .*: no folder"):
        run_ids(tmp_path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "cannot read"),
        ("[1]", "no JSON object"),
        (json.dumps({"schema": 99}), "a run of schema 99, this reads"),
        (json.dumps({"schema": SCHEMA}), "no run: KeyError"),
    ],
)
def test_a_broken_header_is_an_error(tmp_path: Path, text: str, why: str) -> None:
    folder = write(tmp_path)
    (folder / "run.json").write_text(text)
    with pytest.raises(ArchiveError, match=why):
        load_run(tmp_path, HEADER.run_id)


def test_a_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(ArchiveError, match=r"cannot write the archive .*taken"):
        RunWriter(tmp_path / "taken", HEADER)


def test_what_a_full_disk_refuses_is_told_and_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = RunWriter(tmp_path, HEADER)
    writer.add(Record("first"))
    write_really = os.write

    def half(file: int, line: bytes) -> int:
        if len(line) < 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_really(file, line[: len(line) // 2])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        with pytest.raises(ArchiveError, match="No space left on device"):
            writer.add(Record("second"))
    assert [r.nodeid for r in load_run(tmp_path, HEADER.run_id).records] == ["first"]
    writer.add(Record("third"))
    run = load_run(tmp_path, HEADER.run_id)
    assert [r.nodeid for r in run.records] == ["first", "second", "third"]
    assert run.unread == ()
    writer.finish(HEADER)
