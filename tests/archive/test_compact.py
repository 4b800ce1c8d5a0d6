"""Gathered tables: each run exactly once, whatever becomes of the files."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import pytest_veo
from pytest_veo.archive import compact as compact_module
from pytest_veo.archive.compact import ORDER
from pytest_veo.archive.compact import compact
from pytest_veo.archive.lock import LOCK
from pytest_veo.archive.manifest import MANIFEST
from pytest_veo.archive.merge import merge
from pytest_veo.archive.parquet import write_run_tables
from pytest_veo.archive.place import Place
from pytest_veo.archive.query import Engine
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.retention import Limits
from pytest_veo.archive.retention import prune
from pytest_veo.archive.table import COLUMNS
from pytest_veo.archive.table import Table
from pytest_veo.errors import ArchiveError
from tests.archive.history import NOW
from tests.archive.history import header
from tests.archive.history import record
from tests.archive.history import write
from tests.archive.history import write_history


def rows(url: str | Path, table: Table = "counters") -> list[tuple[object, ...]]:
    found = pytest_veo.load(url, table).astype("object")
    plain = found.where(found.notna(), None)  # a NaN equals nothing
    return sorted(map(tuple, plain.to_numpy().tolist()), key=repr)


@pytest.fixture(params=["folder", "bucket"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path / "archive")
    return f"memory://{uuid.uuid4().hex}"


@pytest.mark.parametrize("table", COLUMNS)
def test_gathered_or_not_a_table_has_the_same_rows(url: str, table: Table) -> None:
    runs = write_history(url)
    before = rows(url, table)
    found = compact(url, now=NOW)
    assert (found.runs, found.months) == (4, ("2026-09", "2026-10"))
    assert found.unread == found.waiting == ()
    assert rows(url, table) == before
    write_run_tables(Place(url), write(url, header(9), record("test_z", 9)))
    later = rows(url, table)
    assert compact(url, now=NOW).runs == 1
    assert rows(url, table) == later
    assert compact(url, now=NOW).runs == 0
    assert len(later) > len(before) or table == "frames"
    assert set(pytest_veo.load(url, "runs")["run_id"]) == {*runs, header(9).run_id}


def test_a_month_is_one_sorted_file_that_others_can_read(tmp_path: Path) -> None:
    write_history(tmp_path, runs=2)
    compact(tmp_path, now=NOW)
    write_history(tmp_path / "more", runs=3)
    merge([tmp_path / "more"], tmp_path)
    compact(tmp_path, now=NOW)
    for table, order in ORDER.items():
        files = sorted((tmp_path / "tables" / table).glob("month=*/*.parquet"))
        assert [path.parent.name for path in files] == [
            "month=2026-09",
            "month=2026-10",
        ]
        for path in files:
            with path.open("rb") as file:
                found = pq.read_table(file)
            assert found.column_names == list(COLUMNS[table])
            keys = list(
                zip(*(found[n].to_pylist() for n in order.split(", ")), strict=True)
            )
            assert keys == sorted(keys)


def test_runs_that_may_go_on_are_left_alone_and_read_all_the_same(url: str) -> None:
    write_history(url, runs=1)
    young = write(url, header(7, finished=False), record("test_x"))
    old = write(url, header(1, finished=False), record("test_x"))
    found = compact(url, now=NOW)
    assert found.waiting == (young,)
    assert set(pytest_veo.load(url)["run_id"]) == {header(0).run_id, young, old}
    assert compact(url, now=NOW, takes_all=True).runs == 1


BREAKERS: dict[str, Callable[[Path], object]] = {
    "cut off": lambda path: os.truncate(path, path.stat().st_size // 2),
    "gone": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "scribbled": lambda path: _scribble(path),
    "foreign": lambda path: path.write_text("PAR1 no table PAR1"),
}


def _scribble(path: Path) -> None:
    """Break the pages and leave the end, which tells what is in them, alone."""
    content = bytearray(path.read_bytes())
    content[4:200] = os.urandom(196)
    path.write_bytes(content)


@pytest.mark.parametrize("breaks", BREAKERS.values(), ids=BREAKERS)
def test_a_gathered_file_that_cannot_be_read_is_named_and_its_runs_are_read_singly(
    tmp_path: Path, breaks: Callable[[Path], object]
) -> None:
    write_history(tmp_path)
    before = rows(tmp_path)
    compact(tmp_path, now=NOW)
    (broken,) = tmp_path.glob("tables/counters/month=2026-10/*.parquet")
    breaks(broken)
    assert rows(tmp_path) == before
    (unread,) = pytest_veo.load(tmp_path).attrs["unread"]
    assert f"cannot read {tmp_path}" in unread
    assert broken.name in unread
    assert unread.endswith("; its runs were read one by one")
    with Engine(tmp_path) as engine:
        assert engine.sql("SELECT count(*) FROM counters") == [(len(before),)]
        assert len(engine.unread) == 1


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"form": 99, "months": []}'], ids=repr
)
def test_a_manifest_that_cannot_be_read_is_named_and_all_runs_are_read_singly(
    tmp_path: Path, text: str
) -> None:
    write_history(tmp_path)
    before = rows(tmp_path)
    compact(tmp_path, now=NOW)
    (tmp_path / MANIFEST).write_text(text)
    assert rows(tmp_path) == before
    (unread,) = pytest_veo.load(tmp_path).attrs["unread"]
    assert unread.endswith("; all runs were read one by one")
    assert compact(tmp_path, now=NOW).runs == 4
    assert pytest_veo.load(tmp_path).attrs["unread"] == []


def test_what_is_broken_in_one_run_is_named_when_it_is_gathered(tmp_path: Path) -> None:
    runs = write_history(tmp_path)
    (tmp_path / "runs" / runs[0] / "run.json").write_text("{")
    with (tmp_path / "runs" / runs[1] / "records.jsonl").open("a") as lines:
        lines.write('{"half": ')
    found = compact(tmp_path, now=NOW)
    assert found.runs == 3
    assert [line.partition(":")[0] for line in found.unread] == [
        runs[0],
        f"{runs[1]}/records.jsonl",
    ]


def test_what_a_gathered_run_lacks_is_told_as_before_until_the_run_goes(
    tmp_path: Path,
) -> None:
    first, second, third = write_history(tmp_path, runs=3)
    with (tmp_path / "runs" / second / "records.jsonl").open("a") as lines:
        lines.write("half a li")
    unread = pytest_veo.load(tmp_path).attrs["unread"]
    assert len(unread) == 1
    for days in (1, 2):
        compact(tmp_path, now=NOW)
        assert pytest_veo.load(tmp_path).attrs["unread"] == unread
        assert pytest_veo.load(tmp_path, runs=[first]).attrs["unread"] == []
        write(tmp_path, header(0, days=days), record("test_x"))
    prune(tmp_path, Limits(keep=2), now=NOW)
    assert pytest_veo.load(tmp_path).attrs["unread"] == unread
    prune(tmp_path, Limits(keep=1), now=NOW)
    assert pytest_veo.load(tmp_path).attrs["unread"] == []
    assert pytest_veo.load(tmp_path)["run_id"].unique().tolist() == [third]


def test_a_run_whose_lines_cannot_be_had_waits_until_they_can(tmp_path: Path) -> None:
    runs = write_history(tmp_path, runs=3)
    lines = tmp_path / "runs" / runs[1] / "records.jsonl"
    content = lines.read_bytes()
    lines.unlink()
    lines.mkdir()
    found = compact(tmp_path, now=NOW)
    assert (found.runs, len(found.unread)) == (2, 1)
    assert "Is a directory" in found.unread[0]
    assert set(pytest_veo.load(tmp_path)["run_id"]) == {runs[0], runs[2]}
    assert compact(tmp_path, now=NOW).runs == 0
    lines.rmdir()
    lines.write_bytes(content)
    assert compact(tmp_path, now=NOW).runs == 1
    assert set(pytest_veo.load(tmp_path)["run_id"]) == set(runs)


def test_a_parquet_file_of_one_run_that_is_broken_gives_way_to_its_lines(
    tmp_path: Path,
) -> None:
    (run_id,) = write_history(tmp_path, runs=1)
    before = rows(tmp_path)
    write_run_tables(Place(tmp_path), run_id)
    assert rows(tmp_path) == before
    (tmp_path / "runs" / run_id / "counters.parquet").write_bytes(b"PAR1")
    assert rows(tmp_path) == before
    (unread,) = pytest_veo.load(tmp_path).attrs["unread"]
    assert unread.endswith("; its lines were read")


def test_gathering_that_is_interrupted_leaves_the_archive_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_history(tmp_path, runs=2)
    compact(tmp_path, now=NOW)
    write(tmp_path, header(1)._replace(run_id="20260930-late"), record("test_x", 5))
    before = rows(tmp_path)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr(compact_module, "write_manifest", killed)
        compact(tmp_path, now=NOW)
    assert rows(tmp_path) == before
    assert compact(tmp_path, now=NOW).runs == 1
    assert rows(tmp_path) == before


def test_only_one_at_a_time_rewrites_tables(tmp_path: Path) -> None:
    write_history(tmp_path, runs=1)
    lock = tmp_path / LOCK
    lock.parent.mkdir()
    held = {"who": "veo prune", "host": os.uname().nodename, "since_s": 9e9}
    lock.write_text(json.dumps({**held, "pid": os.getpid()}))
    with pytest.raises(ArchiveError, match=r"is being rewritten by veo prune on"):
        compact(tmp_path, now=NOW)
    lock.write_text(json.dumps({**held, "pid": 1 << 22}))
    assert compact(tmp_path, now=NOW).runs == 1
    assert not lock.exists()


# ---------------------------------------------------------------------- retention


def test_a_run_goes_if_neither_limit_keeps_it_and_leaves_the_tables_too(
    url: str,
) -> None:
    runs = write_history(url, runs=4)
    compact(url, now=NOW)
    fresh = write(url, header(6), record("test_x"))
    limits = Limits(keep=2)
    trial = prune(url, limits, now=NOW, is_trial=True)
    assert len(pytest_veo.load(url, "runs")) == 5
    found = prune(url, limits, now=NOW)
    assert found == trial
    assert (found.removed, found.kept, found.unread) == (tuple(runs[:3]), 2, ())
    for table in ("runs", "records", "counters"):
        left = set(pytest_veo.load(url, table)["run_id"])
        assert left == {runs[3], fresh}
    assert prune(url, limits, now=NOW).removed == ()


@pytest.mark.parametrize(
    ("keep", "days", "removed"),
    [
        pytest.param(None, None, 0, id="no-limit"),
        pytest.param(0, None, 4, id="none"),
        pytest.param(9, None, 0, id="all"),
        pytest.param(None, 45, 3, id="age"),
        pytest.param(2, 45, 2, id="both-the-number-keeps-more"),
        pytest.param(1, 65, 1, id="both-the-age-keeps-more"),
    ],
)
def test_limits(
    tmp_path: Path, keep: int | None, days: int | None, removed: int
) -> None:
    runs = write_history(tmp_path)
    age = None if days is None else datetime.timedelta(days=days)
    found = prune(tmp_path, Limits(keep=keep, older_than=age), now=NOW)
    assert found.removed == tuple(runs[:removed])


def test_runs_of_unknown_age_and_runs_that_may_go_on_are_kept(tmp_path: Path) -> None:
    write(tmp_path, header(7, finished=False), record("test_x"))
    odd: RunHeader = header(0)._replace(started_at="a while ago")
    write(tmp_path, odd)
    write(tmp_path, header(1))
    (tmp_path / "runs" / header(1).run_id / "run.json").write_text("{")
    found = prune(tmp_path, Limits(keep=0), now=NOW)
    assert (found.removed, found.kept) == ((), 3)
    (unread,) = found.unread
    assert unread.startswith(header(1).run_id)


# -------------------------------------------------------------------------- merging


def test_shards_come_together_each_run_once(url: str, tmp_path: Path) -> None:
    shards = [str(tmp_path / f"shard{number}") for number in range(3)]
    runs = [
        write(shard, header(number), record(f"test_{number}"))
        for number, shard in enumerate(shards)
    ]
    found = merge([*shards, shards[0]], url)
    assert (found.added, found.same) == (tuple(runs), 1)
    assert found.completed == found.refused == ()
    assert rows(url) == sorted(
        (row for shard in shards for row in rows(shard)), key=repr
    )


def test_a_run_that_is_there_gets_what_it_lacks_and_so_do_its_tables(
    url: str, tmp_path: Path
) -> None:
    write(url, header(0, finished=False), record("test_x"))
    compact(url, now=NOW)
    write(tmp_path / "rest", header(0), record("test_x"), record("test_y"))
    found = merge([tmp_path / "rest"], url)
    assert found.completed == (header(0).run_id,)
    loaded = pytest_veo.load(url, "records")
    assert sorted(loaded["nodeid"]) == ["test_a.py::test_x", "test_a.py::test_y"]
    assert pytest_veo.load(url, "runs")["finished_at"].notna().all()
    assert merge([tmp_path / "rest"], url).same == 1


def test_two_runs_of_one_name_are_told_apart_and_the_second_is_named(
    tmp_path: Path,
) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    run_id = write(mine, header(0), record("test_x"))
    write(other, header(1)._replace(run_id=run_id), record("test_y"))
    write(other, header(2), record("test_z"))
    before = rows(mine)
    found = merge([other], mine)
    assert found.added == (header(2).run_id,)
    (refused,) = found.refused
    assert refused.startswith(
        f"{other}/runs/{run_id}: another run of this name began at"
    )
    assert [row for row in rows(mine) if row[0] == run_id] == before


def test_what_a_killed_copy_left_behind_is_copied_again(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    run_id = write(source, header(0), record("test_x"))
    (target / "runs" / run_id).mkdir(parents=True)
    assert merge([source], target).added == (run_id,)
    assert rows(target) == rows(source)
