"""Runs as tables."""

from __future__ import annotations

from pathlib import Path

import pytest

import pytest_veo
from pytest_veo.archive.query import Engine
from pytest_veo.archive.record import CounterRecord
from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.store import RunWriter
from pytest_veo.archive.table import COLUMNS
from pytest_veo.archive.table import Table
from pytest_veo.errors import ArchiveError
from pytest_veo.units import Unit
from pytest_veo.verdict import Finding
from pytest_veo.verdict import Outcome
from pytest_veo.verdict import Verdict


HEADER = RunHeader(
    "20261130T190000Z-abc",
    "2026-11-30T19:00:00.000+00:00",
    environment=(("python", "3.11.7"),),
    finished_at="2026-11-30T19:01:00.000+00:00",
    commit="c0ffee",
    branch="main",
)
LEAK = Record(
    "test_a.py::test_leaks",
    started_at="2026-11-30T19:00:01.000+00:00",
    duration_ns=5,
    test_outcome="failed",
    verdict=Verdict(
        Outcome.LEAK,
        (Finding("torch.allocated", "GPU-1", Unit.BYTES, 0, 512, per_run=500.0),),
        runs=12,
        reason="it grew again",
    ),
    counters=(
        CounterRecord("torch.allocated", "GPU-1", "bytes", 0, 512, 512),
        CounterRecord("host.heap", "host", "bytes", 10, 12, 2),
    ),
    frames=(
        {
            "series": "frames",
            "stats": {"frames": 400, "spread": {"p99_ns": 17e6}, "source": "x"},
            "findings": [
                {
                    "rule": "p99_ms",
                    "outcome": "fail",
                    "measure": "ms",
                    "estimate": 17.0,
                    "low": 16.9,
                    "high": None,
                    "limit": 16.0,
                }
            ],
        },
        {"sweep": [], "text": "a table"},
    ),
)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    for number in range(2):
        run_id = f"{HEADER.run_id}{number}"
        writer = RunWriter(tmp_path, HEADER._replace(run_id=run_id))
        writer.add(LEAK)
        writer.add(Record("test_a.py::test_clean", counters=LEAK.counters[1:]))
        writer.finish(HEADER._replace(run_id=run_id))
    return tmp_path


@pytest.mark.parametrize("table", COLUMNS)
def test_every_table_has_its_columns_with_and_without_rows(
    archive: Path, table: Table
) -> None:
    full = pytest_veo.load(archive, table)
    none = pytest_veo.load(archive, table, runs=[])
    assert list(full.columns) == list(none.columns) == list(COLUMNS[table])
    assert len(full) > 0
    assert len(none) == 0
    assert list(full.dtypes) == list(none.dtypes)


def test_counters_carry_the_growth_that_was_judged(archive: Path) -> None:
    found = pytest_veo.load(archive, runs=[f"{HEADER.run_id}1"])
    rows = found[["nodeid", "counter", "growth", "verdict"]].to_numpy().tolist()
    assert rows == [
        ["test_a.py::test_leaks", "torch.allocated", 512, "leak"],
        ["test_a.py::test_leaks", "host.heap", 2, "clean"],
        ["test_a.py::test_clean", "host.heap", 2, "clean"],
    ]
    assert found["per_run"].tolist()[0] == 500.0
    assert found["per_run"].isna().tolist() == [False, True, True]
    assert found["started_at"][0].isoformat() == "2026-11-30T19:00:00+00:00"


def test_frames_have_a_row_for_each_statistic_and_each_limit(archive: Path) -> None:
    found = pytest_veo.load(archive, "frames", runs=[f"{HEADER.run_id}0"])
    rows = found[["statistic", "unit", "value", "budget", "verdict"]]
    assert rows.astype("object").fillna("-").to_numpy().tolist() == [
        ["frames", "frames", 400.0, "-", "-"],
        ["p99_ns", "ns", 17e6, "-", "-"],
        ["p99_ms", "ms", 17.0, 16.0, "fail"],
    ]


def test_runs_tell_how_their_tests_ended(archive: Path) -> None:
    found = pytest_veo.load(archive, "runs")
    assert (
        found[["commit", "tests", "clean", "leaks"]].to_numpy().tolist()
        == [["c0ffee", 2, 1, 1]] * 2
    )


def test_a_condition_and_a_query_give_the_same_rows(archive: Path) -> None:
    found = pytest_veo.load(archive, where="growth > 100 AND nodeid LIKE '%leaks'")
    rows = Engine(archive).sql(
        "SELECT run_id, growth FROM counters WHERE growth > ? ORDER BY run_id", 100
    )
    found = found.sort_values("run_id")
    assert found[["run_id", "growth"]].to_numpy().tolist() == [list(r) for r in rows]
    assert len(rows) == 2


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"table": "counter"}, "there is no table 'counter', only runs, records"),
        ({"runs": ["x"]}, "there is no run 'x' in"),
        ({"where": "grwth > 1"}, "the query cannot be run"),
    ],
    ids=["table", "run", "condition"],
)
def test_what_cannot_be_asked_is_an_error(
    archive: Path, asked: dict[str, object], why: str
) -> None:
    with pytest.raises(ArchiveError, match=why):
        pytest_veo.load(archive, **asked)  # type: ignore[arg-type]
