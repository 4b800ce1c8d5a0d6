"""The page's numbers: columns for the table, one block a counter, details in chunks.

A browser parses a block when something of it is shown; of a run of ten thousand tests
it reads a list of names and figures when it opens the page, and no more.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

from pytest_veo.report import failure
from pytest_veo.report.html import frame_plots
from pytest_veo.report.html.standing import Standing
from pytest_veo.report.html.standing import standing_of


if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Mapping
    from collections.abc import Sequence

    from pytest_veo.archive.record import Record
    from pytest_veo.report.html.past import Past


CHUNK = 200
"""Tests whose details are in one block."""
Counter = tuple[str, str, str]
"""Name, device, unit."""
MEMORY = (
    "torch.allocated",
    "cupy.used",
    "rmm.allocated",
    "nvml.process_used",
    "host.rss",
    "host.heap",
)
"""Counters worth showing first, best first."""


class Block(NamedTuple):
    """A piece of JSON in the page."""

    name: str
    text: str


def blocks(
    records: Sequence[Record], past: Past, texts: Mapping[int, str]
) -> Iterator[Block]:
    """All of them.

    Args:
        records: in the order in which the tests ran.
        past: earlier runs.
        texts: HTML of the tests that have something to tell, by their place.
    """
    counters = counters_of(records)
    yield _block("veo-tests", _table(records, counters, past))
    for number, column in enumerate(_columns(records, counters)):
        yield _block(f"veo-counter-{number}", column)
    for number, counter in enumerate(counters):
        if rows := _past_rows(records, counter, past):
            yield _block(f"veo-past-{number}", rows)
    for start in range(0, len(records), CHUNK):
        chunk = {
            start + i: found
            for i, record in enumerate(records[start : start + CHUNK])
            if (found := _details(record, texts.get(start + i, "")))
        }
        if chunk:
            yield _block(f"veo-details-{start // CHUNK}", chunk)


def _block(name: str, content: object) -> Block:
    text = json.dumps(content, separators=(",", ":"))
    # Nothing in it may end the script element, or begin a comment inside it.
    return Block(name, text.replace("<", "\\u003c").replace(">", "\\u003e"))


def counters_of(records: Sequence[Record]) -> list[Counter]:
    """Every counter that a test has, those of devices first."""
    found = {
        (row.counter, row.device, row.unit)
        for record in records
        for row in record.counters
    }
    return sorted(found, key=_rank)


def _rank(counter: Counter) -> tuple[bool, int, str, str]:
    name, device, _ = counter
    place = MEMORY.index(name) if name in MEMORY else len(MEMORY)
    return device == "host", place, name, device


def _table(
    records: Sequence[Record], counters: Sequence[Counter], past: Past
) -> dict[str, Any]:
    standings = [standing_of(record) for record in records]
    order = list(Standing)
    numbers = {counter: number for number, counter in enumerate(counters)}
    grown = [_grown(record, numbers) for record in records]
    begin = min((_ms(record) for record in records if record.started_at), default=0)
    return {
        "chunk": CHUNK,
        "counters": counters,
        "standings": [[each.value, each.tone.value, each.meaning] for each in order],
        "id": [record.nodeid for record in records],
        "standing": [order.index(each) for each in standings],
        "start": [
            _ms(record) - begin if record.started_at else -1 for record in records
        ],
        "ms": [round(record.duration_ns / 1e6, 3) for record in records],
        "worker": _workers(records),
        "counter": [counter for counter, _ in grown],
        "growth": [growth for _, growth in grown],
        "headline": {
            number: headline(record)
            for number, record in enumerate(records)
            if standings[number] is not Standing.CLEAN
        },
        "past": len(past.run_ids),
    }


def _workers(records: Sequence[Record]) -> list[str]:
    """Each test's worker; nothing where all ran in one process."""
    workers = [record.worker for record in records]
    return workers if len(set(workers)) > 1 else []


def _ms(record: Record) -> int:
    import datetime

    try:
        started = datetime.datetime.fromisoformat(record.started_at)
    except ValueError:
        return 0
    return round(started.timestamp() * 1000)


def headline(record: Record) -> str:
    """What there is to say of a test, in a line."""
    for series in record.frames:
        if series.get("outcome") == "fail":
            return str(series.get("headline"))
    verdict = record.verdict
    if not verdict.findings:
        return verdict.reason
    return failure.headline(verdict)


def _grown(record: Record, numbers: Mapping[Counter, int]) -> tuple[int, int]:
    """The counter that tells most of a test, and by how much it grew; -1: none."""
    for finding in record.verdict.findings:
        key = finding.counter, finding.device, finding.unit.value
        if key in numbers:
            return numbers[key], finding.growth
    sizes = [row for row in record.counters if row.unit == "bytes"]
    if not sizes:
        return -1, 0
    most = max(sizes, key=lambda row: row.growth)
    return numbers[most.counter, most.device, most.unit], most.growth


def _columns(
    records: Sequence[Record], counters: Sequence[Counter]
) -> list[dict[str, list[int | None]]]:
    """Every counter's values, one for each test; None where it was not read."""
    names = ("before", "after", "growth")
    columns: list[dict[str, list[int | None]]] = [
        {name: [None] * len(records) for name in names} for _ in counters
    ]
    places = {counter: place for place, counter in enumerate(counters)}
    for number, record in enumerate(records):
        for row in record.counters:
            column = columns[places[row.counter, row.device, row.unit]]
            column["before"][number] = row.before
            column["after"][number] = row.after
            column["growth"][number] = row.growth
    return columns


def _past_rows(
    records: Sequence[Record], counter: Counter, past: Past
) -> dict[int, list[int | None]]:
    """By the test's number; tests that were never run before have none."""
    name, device, _ = counter
    found = {}
    for number, record in enumerate(records):
        growth = past.growth.get((record.nodeid, name, device))
        if growth:
            found[number] = [growth.get(run) for run in range(len(past.run_ids))]
    return found


def _details(record: Record, text: str) -> dict[str, Any]:
    frames = [frame_plots.series(each) for each in record.frames if "series" in each]
    found = {"html": text, "frames": frames}
    return {name: value for name, value in found.items() if value}
