"""Lines that Arrow reads at once give the rows that reading them singly gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_veo.archive.parquet import arrow_of
from pytest_veo.archive.plain_lines import tables_of
from pytest_veo.archive.record import CounterRecord
from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.rows import add_run
from pytest_veo.archive.rows import no_rows
from pytest_veo.archive.store import Contents
from pytest_veo.archive.writer import line_of
from pytest_veo.units import Unit
from pytest_veo.verdict import Finding
from pytest_veo.verdict import Outcome
from pytest_veo.verdict import Verdict


START = "2026-11-30T19:00:00.123+00:00"
HEADER = RunHeader("run", START, commit="c1", branch="main")


def data(outcome: Outcome = Outcome.LEAK, nodeid: str = "test_a.py::test") -> Any:
    """A record with a finding, as it is written."""
    finding = Finding("host.heap", "host", Unit.BYTES, 1, 9, 4.5, (4, 5), None)
    verdict = Verdict(outcome, (finding,), 2, "why", ("cache",), 7, ("a line",))
    counters = (
        CounterRecord("host.fds", "host", "count", 1, 1, 0),
        CounterRecord("host.heap", "host", "bytes", 1, 9, 8),
    )
    return Record(nodeid, "gw0", START, 10, "passed", verdict, counters).to_dict()


def content(*records: Any) -> bytes:
    return b"".join(map(line_of, records))


def singly(lines: bytes) -> tuple[dict[Any, Any], list[str]]:
    raw = Contents(HEADER, (("records.jsonl", lines),), ()).parsed()
    rows = no_rows()
    add_run(rows, "run", raw)
    tables = {table: arrow_of(table, columns) for table, columns in rows.items()}
    return tables, raw.unread


def same(lines: bytes) -> bool:
    """Whether Arrow read them; what it read is what reading them singly gives."""
    found = tables_of("run", HEADER, lines)
    expected, unread = singly(lines)
    if found:
        assert unread == []
        assert all(expected[table].equals(rows) for table, rows in found.items())
        assert all(table in found or not rows for table, rows in expected.items())
    return bool(found)


def old_form(record: Any) -> Any:
    later = ("frames", "environment", "environment_rows")
    return {**{k: v for k, v in record.items() if k not in later}, "schema": 1}


def not_run_again(record: Any) -> Any:
    return {**record, "verdict": {**record["verdict"], "runs": 0}}


@pytest.mark.parametrize(
    "lines",
    [
        content(*(data(outcome, outcome.value) for outcome in Outcome)),
        content(data(), {**data(), "counters": []}, data()),
        content({**data(), "counters": []}),
        content(old_form(data()), old_form(data())),
        content(not_run_again(data())),
        content({**data(), "environment_rows": {"a": "b"}}, data()),
        content({**data(), "environment_rows": {'"{}\\n': "\n}}", "c": "\u00e9"}}),
        content(data(nodeid='test_"environment_rows":{"a":"b"}[\u00e9\\n]')),
        content(dict(reversed(data().items()))),
    ],
)
def test_plain_lines_are_read_at_once(lines: bytes) -> None:
    assert same(lines)


def put(path: str, value: Any) -> Callable[[], bytes]:
    def lines() -> bytes:
        bad = data()
        *way, last = path.split(".")
        where = bad
        for step in way:
            where = where[int(step)] if step.isdigit() else where[step]
        where[last] = value
        return content(data(), bad, data())

    return lines


@pytest.mark.parametrize(
    "lines",
    [
        put("nodeid", 3),
        put("nodeid", None),
        put("nodeid", "\udc80"),
        put("started_at", "yesterday"),
        put("started_at", ""),
        put("duration_ns", "5"),
        put("duration_ns", 5.0),
        put("duration_ns", True),
        put("duration_ns", 1 << 63),
        put("schema", 3),
        put("schema", None),
        put("counters.1.growth", "8"),
        put("counters.1.growth", None),
        put("counters.1.more", 8),
        put("counters", None),
        put("counters", [1]),
        put("environment", 3),
        put("environment_rows", {"a": 1}),
        put("environment_rows", {"a": "b", "c": {}}),
        put("environment_rows", [["a", "b"]]),
        put("environment_rows", None),
        put("frames", [{"series": "s", "stats": {"p99_ns": 1}}]),
        put("frames", None),
        put("verdict.outcome", "great"),
        put("verdict.runs", None),
        put("verdict.findings.0.unit", "miles"),
        put("verdict.findings.0.per_run", "4"),
        put("verdict.findings.0.per_run", None),
        put("later", 1),
        lambda: content(data())[:-1],
        lambda: content(data()) + content(data())[:-40],
        lambda: content(data()) + b"\n" + content(data()),
        lambda: content(data()) + b"\xff" + content(data()),
        lambda: content(data())[:-1] + content(data()) + b"\n",
        lambda: content(data()) + b"[]\n",
        lambda: b"",
    ],
)
def test_other_lines_are_read_singly(lines: Callable[[], bytes]) -> None:
    assert not same(lines())


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 64), 1 << 64)
    | st.floats()
    | st.text(st.characters(codec=None), max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner)
    ),
    max_leaves=4,
)
PLACES = [
    *(name for name in data() if name not in ("verdict", "counters")),
    *(f"verdict.{name}" for name in Verdict._fields),
    *(f"verdict.findings.0.{name}" for name in Finding._fields),
    *(f"counters.0.{name}" for name in CounterRecord._fields),
    "counters",
    "verdict",
]


@settings(deadline=None, max_examples=100)
@given(path=st.sampled_from(PLACES), value=JSON)
def test_whatever_a_field_holds_both_ways_agree(path: str, value: Any) -> None:
    same(put(path, value)())
