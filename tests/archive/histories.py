"""Archives with a planted history: which commit made which test keep more."""

from __future__ import annotations

import datetime
import json
import random
from pathlib import Path
from typing import NamedTuple

from pytest_veo.archive.record import CounterRecord
from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.store import RunWriter


START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
MIB = 1 << 20


class Plant(NamedTuple):
    """From this run on the test keeps so much more."""

    run: int
    growth_bytes: int


def commit_of(run: int) -> str:
    return f"{run:04x}" * 10


def natural(random_: random.Random, size_bytes: float) -> float:
    """Most runs are alike within two percent, one in thirty is far off."""
    wild = random_.choice((0.0, 0.4, 1.5)) if random_.random() < 1 / 30 else 0.0
    return size_bytes * (1 + random_.gauss(0, 0.02) + wild)


def write_run(
    archive: Path,
    number: int,
    figures: dict[str, float],
    *,
    branch: str = "main",
    environment: tuple[tuple[str, str], ...] = (("python", "3.12.1"),),
    gpu: str = "",
    commit: str | None = None,
) -> str:
    """One finished run with `host.heap` figures, by test."""
    started = START + datetime.timedelta(hours=number)
    header = RunHeader(
        run_id=f"{started:%Y%m%dT%H%M%S}.000000Z-{number:06x}",
        started_at=started.isoformat(timespec="milliseconds"),
        environment=environment,
        commit=commit_of(number) if commit is None else commit,
        branch=branch,
        gpu=gpu,
    )
    writer = RunWriter(archive, header)
    for nodeid, growth in figures.items():
        size = round(growth)
        row = CounterRecord("host.heap", "host", "bytes", MIB, MIB + size, size)
        record = Record(nodeid=nodeid, test_outcome="passed", counters=(row,))
        writer.add(record)
    ended = started + datetime.timedelta(minutes=5)
    writer.finish(header._replace(finished_at=ended.isoformat()))
    return header.run_id


def planted(archive: Path, runs: int, plants: tuple[Plant, ...], seed: int) -> None:
    """A history of one test; a commit for each run."""
    random_ = random.Random(seed)
    for number in range(runs):
        kept = 8 * MIB + sum(p.growth_bytes for p in plants if number >= p.run)
        write_run(archive, number, {"test_a.py::test_one": natural(random_, kept)})


def as_json(text: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(text)
    return found
