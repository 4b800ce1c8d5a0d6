"""Archived runs for tests."""

from __future__ import annotations

import datetime
from pathlib import Path

from pytest_veo.archive.record import CounterRecord
from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.writer import open_writer


FIRST = datetime.datetime(2026, 9, 20, 12, tzinfo=datetime.UTC)
NOW = datetime.datetime(2026, 11, 29, 20, tzinfo=datetime.UTC)


def header(number: int, *, finished: bool = True, days: int = 0) -> RunHeader:
    """Run number so and so: ten days after the one before."""
    start = FIRST + datetime.timedelta(days=10 * number + days)
    end = start + datetime.timedelta(minutes=1)
    return RunHeader(
        run_id=f"{start:%Y%m%dT%H%M%S}Z-{number}",
        started_at=start.isoformat(timespec="milliseconds"),
        finished_at=end.isoformat(timespec="milliseconds") if finished else "",
        commit=f"c{number}",
        branch="main",
        environment=(("python", "3.11.7"),),
    )


def record(name: str, growth: int = 0) -> Record:
    """A clean test with two counters."""
    return Record(
        nodeid=f"test_a.py::{name}",
        started_at=FIRST.isoformat(timespec="milliseconds"),
        duration_ns=1_000_000,
        test_outcome="passed",
        counters=(
            CounterRecord("host.heap", "host", "bytes", 100, 100 + growth, growth),
            CounterRecord("torch.allocated", "GPU-1", "bytes", 0, 0, 0),
        ),
    )


def write(url: str | Path, head: RunHeader, *records: Record) -> str:
    """Archive a run; its id."""
    writer = open_writer(str(url), Path(), head._replace(finished_at=""))
    for each in records:
        writer.add(each)
    if head.finished_at:
        writer.finish(head)
    return head.run_id


def write_history(url: str | Path, runs: int = 4) -> list[str]:
    """Archive some runs of two tests; the growth of both is the run's number."""
    return [
        write(url, header(number), record("test_x", number), record("test_y", number))
        for number in range(runs)
    ]
