"""What questions to an archive cost, against its size; Dask beside DuckDB.

    python benchmarks/archive_scale.py [--rows 10000 100000 1000000 10000000] [--dask]

Makes gathered archives of so many counter rows (200 tests, 10 counters, as many runs as
it takes, 500 a month), then asks each in a process of its own: open and load it whole
(up to a million rows), trend of one test, two runs side by side, a sum over all. CPU
time and the largest memory are of that process; wall times are the best of three.
`--lines` makes real runs of a million rows, line by line, and gathers them.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import pytest_veo
from pytest_veo.archive.compact import ORDER
from pytest_veo.archive.compact import compact
from pytest_veo.archive.manifest import Manifest
from pytest_veo.archive.manifest import Month
from pytest_veo.archive.manifest import write_manifest
from pytest_veo.archive.parquet import ROW_GROUP_ROWS
from pytest_veo.archive.place import Place
from pytest_veo.archive.query import Engine
from pytest_veo.archive.query import EngineName
from pytest_veo.archive.record import CounterRecord
from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.table import COLUMNS
from pytest_veo.archive.table import Table
from pytest_veo.archive.writer import HEADER
from pytest_veo.archive.writer import RECORDS
from pytest_veo.archive.writer import RunWriter
from pytest_veo.archive.writer import header_text


TESTS, COUNTERS, RUNS_A_MONTH = 200, 10, 500
BEGAN = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)
ROUNDS = 3
LOADED_AT_MOST = 1_000_000

RUNS = """
CREATE TABLE all_runs AS SELECT
    printf('20250101T%06dZ-x', r) AS run_id,
    TIMESTAMPTZ '2025-01-01 00:00:00+00' + INTERVAL (r) HOUR AS started_at,
    printf('%040x', r) AS commit, 'main' AS branch, r // {per_month} AS month
FROM range({runs}) t(r)
"""
ROWS: dict[Table, str] = {
    "runs": """
SELECT run_id, started_at, started_at AS finished_at, commit, branch, '' AS ci,
    '' AS ci_job, '' AS ci_url, '' AS shard, 'H100' AS gpu, '550' AS driver,
    '3.11' AS python, '' AS environment, 200::BIGINT AS tests, 200::BIGINT AS clean,
    0::BIGINT AS leaks, 0::BIGINT AS retentions, 0::BIGINT AS collectable,
    0::BIGINT AS unconfirmed, 0::BIGINT AS allowed, 0::BIGINT AS over_budget,
    0::BIGINT AS not_judged, 2::BIGINT AS schema
FROM all_runs WHERE month = {month}""",
    "records": """
SELECT run_id, started_at, commit, branch,
    printf('tests/test_m.py::test_%04d', t) AS nodeid, '' AS worker,
    started_at AS test_started_at, 1000000::BIGINT AS duration_ns,
    'passed' AS test_outcome, 'clean' AS verdict, '' AS reason, '' AS environment
FROM all_runs, range({tests}) x(t) WHERE month = {month}""",
    "counters": """
SELECT run_id, started_at, commit, branch,
    printf('tests/test_m.py::test_%04d', t) AS nodeid,
    printf('torch.c%d', c) AS counter, 'GPU-1' AS device, 'bytes' AS unit,
    (hash(run_id, t, c) % 100000)::BIGINT AS before,
    (hash(run_id, t, c) % 100000 + 512)::BIGINT AS after, 512::BIGINT AS growth,
    NULL::DOUBLE AS per_run, 'clean' AS verdict
FROM all_runs, range({tests}) x(t), range({counters}) y(c) WHERE month = {month}""",
    "frames": """
SELECT run_id, started_at, commit, branch, '' AS nodeid, '' AS series,
    '' AS statistic, '' AS unit, 0::DOUBLE AS value, 0::DOUBLE AS low,
    0::DOUBLE AS high, 0::DOUBLE AS budget, '' AS verdict
FROM all_runs WHERE false""",
}


def make(folder: Path, rows: int) -> None:
    """An archive as `veo compact` leaves it."""
    runs = max(2, rows // (TESTS * COUNTERS))
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(RUNS.format(runs=runs, per_month=RUNS_A_MONTH))
    months = []
    for number in range(-(-runs // RUNS_A_MONTH)):
        month = f"{2025 + number // 12}-{number % 12 + 1:02}"
        files: list[tuple[Table, str]] = []
        for table in COLUMNS:
            name = f"tables/{table}/month={month}/part-made.parquet"
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            query = ROWS[table].format(month=number, tests=TESTS, counters=COUNTERS)
            connection.execute(
                f"COPY ({query} ORDER BY {ORDER[table]}) TO '{folder / name}' "
                f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP_ROWS})"
            )
            files.append((table, name))
        ids = connection.execute(
            "SELECT run_id, started_at FROM all_runs WHERE month = ?", [number]
        ).fetchall()
        months.append(Month(month, tuple(row[0] for row in ids), tuple(files)))
        for run_id, started_at in ids:
            _make_run(folder, run_id, started_at.isoformat())
    write_manifest(Place(folder), Manifest(tuple(months)))


def _make_run(folder: Path, run_id: str, started_at: str) -> None:
    run = folder / "runs" / run_id
    run.mkdir(parents=True)
    head = RunHeader(run_id, started_at, finished_at=started_at)
    (run / HEADER).write_bytes(header_text(head))
    (run / RECORDS).touch()


def make_lines(folder: Path, rows: int) -> None:
    """Real runs, as sessions leave them."""
    counters = tuple(
        CounterRecord(f"torch.c{c}", "GPU-1", "bytes", c, c + 512, 512)
        for c in range(COUNTERS)
    )
    for number in range(rows // (TESTS * COUNTERS)):
        start = (BEGAN + datetime.timedelta(hours=number)).isoformat()
        head = RunHeader(f"20250101T{number:06}Z-x", start, finished_at=start)
        writer = RunWriter(folder, head)
        for test in range(TESTS):
            named = (("python", "3.11.7"), ("system", "Linux"))
            record = Record(
                nodeid=f"tests/test_m.py::test_{test:04}",
                started_at=start,
                counters=counters,
                environment="0123456789ab",
                environment_rows=() if test else named,
            )
            writer.add(record)
        writer.finish(head)


QUESTIONS: dict[str, tuple[str, tuple[Any, ...], str]] = {
    "trend of one test": (
        "SELECT started_at, commit, growth FROM counters WHERE nodeid = ? AND "
        "counter = ?",
        ("tests/test_m.py::test_0100", "torch.c5"),
        "FROM mapped ORDER BY started_at",
    ),
    "two runs": (
        "SELECT run_id, nodeid, counter, growth FROM counters WHERE run_id IN (?, ?)",
        ("20250101T000000Z-x", "20250101T000001Z-x"),
        "FROM mapped ORDER BY ALL",
    ),
    "sum over all": (
        "SELECT counter, sum(growth) AS growth FROM counters GROUP BY counter",
        (),
        "SELECT counter, sum(growth) FROM mapped GROUP BY counter ORDER BY 1",
    ),
}


def ask(folder: str, engine: EngineName, question: str) -> int:
    """The number of rows that a question gives."""
    text, params, reduce = QUESTIONS[question]
    with Engine(folder, engine=engine) as opened:
        return len(opened.sql(text, *params, reduce=reduce))


def load(folder: str) -> int:
    """The number of rows that are loaded."""
    return len(pytest_veo.load(folder))


def _timed(work: Callable[..., int], args: tuple[Any, ...], told: Any) -> None:
    walls = []
    began_cpu = time.process_time()
    rows = 0
    for _ in range(ROUNDS):
        began = time.perf_counter()
        rows = work(*args)
        walls.append(time.perf_counter() - began)
    cpu = (time.process_time() - began_cpu) / ROUNDS
    told.send((rows, walls, cpu, _peak_mib()))


def _peak_mib() -> int:
    # Not `ru_maxrss`, which a process inherits from the one that starts it.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) >> 10
    return 0


def show(name: str, work: Callable[..., int], *args: Any) -> None:
    """Do it in a process of its own, and print what it cost."""
    context = multiprocessing.get_context("spawn")
    heard, told = context.Pipe(duplex=False)
    process = context.Process(target=_timed, args=(work, args, told))
    process.start()
    rows, walls, cpu, peak = heard.recv()
    process.join()
    print(
        f"  {name:<32} {rows:>9,} rows  first {walls[0]:6.2f} s  "
        f"best {min(walls):6.2f} s  CPU {cpu:6.2f} s  peak {peak:>5,} MiB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    sizes = [10_000, 100_000, 1_000_000, 10_000_000]
    parser.add_argument("--rows", type=int, nargs="+", default=sizes)
    parser.add_argument("--dask", action="store_true")
    parser.add_argument("--lines", action="store_true")
    args = parser.parse_args()
    for rows in args.rows:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            make(folder, rows)
            size = sum(
                path.stat().st_size for path in folder.glob("tables/**/*.parquet")
            )
            print(f"{rows:,} counter rows, {size / (1 << 20):.1f} MiB of Parquet")
            if rows <= LOADED_AT_MOST:
                show("load", load, name)
            for question in QUESTIONS:
                show(f"{question}, duckdb", ask, name, "duckdb", question)
                if args.dask:
                    show(f"{question}, dask", ask, name, "dask", question)
    if args.lines:
        with tempfile.TemporaryDirectory() as name:
            make_lines(Path(name), LOADED_AT_MOST)
            print(f"{LOADED_AT_MOST:,} counter rows in lines")
            show("load", load, name)
            began = time.process_time()
            now = datetime.datetime.now(tz=datetime.UTC)
            found = compact(name, now=now)
            cpu = time.process_time() - began
            print(json.dumps({"compacted_runs": found.runs, "cpu_s": round(cpu, 1)}))
            show("load", load, name)


if __name__ == "__main__":
    main()
