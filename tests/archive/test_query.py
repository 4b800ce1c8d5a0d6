"""Questions in SQL, on this machine and on a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import pytest

import pytest_veo
from pytest_veo.archive.compact import compact
from pytest_veo.archive.query import Engine
from pytest_veo.archive.query import EngineName
from pytest_veo.errors import ArchiveError
from pytest_veo.errors import MissingDependency
from tests.archive.history import NOW
from tests.archive.history import header
from tests.archive.history import record
from tests.archive.history import write
from tests.archive.history import write_history


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """A cluster of two processes."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Two gathered months, and two runs of their own."""
    write_history(tmp_path)
    compact(tmp_path, now=NOW)
    for number in (4, 5):
        write(tmp_path, header(number), record("test_x", number))
    return tmp_path


QUESTIONS: dict[str, tuple[str, tuple[Any, ...], str | None]] = {
    "trend of a test": (
        "SELECT started_at, commit, growth FROM counters "
        "WHERE nodeid = ? AND counter = ?",
        ("test_a.py::test_x", "host.heap"),
        "SELECT * FROM mapped ORDER BY started_at",
    ),
    "largest of each test": (
        "SELECT nodeid, max(growth) AS most FROM counters GROUP BY nodeid",
        (),
        "SELECT nodeid, max(most) FROM mapped GROUP BY nodeid ORDER BY nodeid",
    ),
    "sum over a join": (
        "SELECT r.branch, sum(c.growth) AS total, count(*) AS n FROM counters c "
        "JOIN runs r USING (run_id) GROUP BY ALL",
        (),
        "SELECT branch, sum(total), sum(n) FROM mapped GROUP BY ALL",
    ),
    "nothing found": (
        "SELECT nodeid FROM records WHERE duration_ns < 0",
        (),
        None,
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("where", ["threads", "processes"])
def test_a_cluster_gives_the_answer_that_duckdb_gives(
    archive: Path, scheduler: str, question: str, where: str
) -> None:
    text, params, reduce = QUESTIONS[question]
    known = Engine(archive).sql(text, *params, reduce=reduce)
    address = scheduler if where == "processes" else None
    with Engine(archive, engine="dask", scheduler=address) as engine:
        assert engine.sql(text, *params, reduce=reduce) == known
        assert engine.unread == []
    assert bool(known) == (question != "nothing found")


def test_what_a_cluster_cannot_read_is_named_too(archive: Path, scheduler: str) -> None:
    (part,) = archive.glob("tables/counters/month=2026-10/*.parquet")
    part.write_bytes(b"PAR1")
    with (archive / "runs" / header(4).run_id / "records.jsonl").open("a") as lines:
        lines.write("{")
    with Engine(archive, engine="dask", scheduler=scheduler) as engine:
        found = engine.sql(
            "SELECT count(*) AS n FROM counters", reduce="SELECT sum(n) FROM mapped"
        )
        assert found == [(20,)]
        assert sorted("records.jsonl" in line for line in engine.unread) == [
            False,
            True,
        ]


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_tables_that_are_gathered_anew_meanwhile_are_no_trouble(
    archive: Path, engine: EngineName
) -> None:
    write(archive, header(3, days=1), record("test_x", 9))
    with Engine(archive, engine=engine) as opened:
        assert compact(archive, now=NOW).runs == 3  # the files that it knew are gone
        found = opened.sql(
            "SELECT count(*) AS n FROM counters", reduce="SELECT sum(n) FROM mapped"
        )
        assert found == [(22,)]
        assert opened.unread == []


def test_wanted_runs_only(archive: Path) -> None:
    wanted = [header(1).run_id, header(4).run_id]
    engine = Engine(archive, runs=wanted)
    assert engine.sql("SELECT DISTINCT run_id FROM counters ORDER BY 1") == [
        (run_id,) for run_id in wanted
    ]
    assert set(pytest_veo.load(archive, runs=wanted)["run_id"]) == set(wanted)


@pytest.mark.parametrize("limit", ["_RUNS_READ_SINGLY", "_BYTES_READ_SINGLY"])
def test_wanted_runs_are_picked_from_tables_when_they_are_many_or_long(
    archive: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(f"pytest_veo.archive.query.{limit}", 1)
    for path in (archive / "runs" / header(1).run_id).iterdir():
        path.write_bytes(b"")  # what the tables have is not looked at
    test_wanted_runs_only(archive)


def test_a_table_that_breaks_under_a_query_gives_way_to_the_wanted_runs_alone(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_veo.archive.query._RUNS_READ_SINGLY", 1)
    for path in archive.glob("tables/counters/*/*.parquet"):
        content = bytearray(path.read_bytes())
        content[4:200] = bytes(196)
        path.write_bytes(content)
    test_wanted_runs_only(archive)


@pytest.mark.parametrize(
    ("text", "params", "why"),
    [
        ("SELEC 1", (), "Parser Error"),
        ("SELECT nope FROM counters", (), 'column "nope"'),
        ("SELECT * FROM nowhere", (), "nowhere does not exist"),
        ("SELECT * FROM runs WHERE run_id = ?", (), "parameter"),
        ("SELECT * FROM engine", (), "engine does not exist"),
    ],
    ids=["syntax", "column", "table", "parameter", "python variable"],
)
def test_a_query_that_cannot_be_run_is_told_in_duckdbs_words(
    archive: Path, text: str, params: tuple[Any, ...], why: str
) -> None:
    engine = Engine(archive)
    with pytest.raises(ArchiveError, match="the query cannot be run: ") as raised:
        engine.sql(text, *params)
    assert why in str(raised.value)


@pytest.mark.parametrize(
    ("engine", "scheduler", "why"),
    [
        ("spark", None, "there is no engine 'spark', only duckdb and dask"),
        ("duckdb", "tcp://x:1", "a scheduler's address is for the engine 'dask' only"),
    ],
)
def test_an_engine_that_is_not_there_is_refused(
    archive: Path, engine: EngineName, scheduler: str | None, why: str
) -> None:
    with pytest.raises(ArchiveError, match=why):
        Engine(archive, engine=engine, scheduler=scheduler)


@pytest.mark.parametrize(
    ("module", "engine", "why"),
    [
        ("duckdb", "duckdb", r"needs duckdb, .* pip install 'pytest-veo\[archive\]'"),
        ("distributed", "dask", r"needs distributed, .*'pytest-veo\[dask\]'"),
    ],
)
def test_what_is_not_installed_is_named(
    archive: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    engine: EngineName,
    why: str,
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependency, match=why):
        Engine(archive, engine=engine).sql("SELECT 1")


def test_tables_can_be_loaded_with_pandas_alone(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = pytest_veo.load(archive)
    for module in ("pyarrow", "duckdb", "fsspec"):
        monkeypatch.setitem(sys.modules, module, None)
    plain = pytest_veo.load(archive)
    assert list(plain.columns) == list(full.columns)
    assert len(plain) == len(full) == 20
    assert plain["growth"].sum() == full["growth"].sum() == 21
    assert plain.attrs["unread"] == []
