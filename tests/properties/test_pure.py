"""What holds for every value of the pure parts."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_veo.archive.record import SCHEMA
from pytest_veo.archive.record import CounterRecord
from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.budget import LeakBudget
from pytest_veo.budget import Tolerance
from pytest_veo.measure.confirm import Confirmed
from pytest_veo.measure.meter import Glance
from pytest_veo.measure.meter import Layout
from pytest_veo.measure.ruling import FirstRun
from pytest_veo.measure.ruling import rule
from pytest_veo.memory.leak import Course
from pytest_veo.memory.leak import Rule
from pytest_veo.memory.leak import course
from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Reading
from pytest_veo.memory.snapshot import Snapshot
from pytest_veo.report import failure
from pytest_veo.units import Unit
from pytest_veo.units import format_bytes
from pytest_veo.units import format_ns
from pytest_veo.units import parse_bytes
from pytest_veo.units import parse_ns
from pytest_veo.verdict import Finding
from pytest_veo.verdict import Outcome
from pytest_veo.verdict import Verdict


HEAP = Counter("host", "heap", Unit.BYTES)
BYTES = Rule(floor=24.0, large=64 << 10, tiny=512.0, small=16 << 10)
BLOCKS = Rule(floor=0.9, large=500.0, tiny=8.0)
sizes = st.integers(0, 1 << 46)


@given(sizes)
def test_a_printed_size_is_read_back_to_the_printed_digit(size: int) -> None:
    text = format_bytes(size)
    assert format_bytes(parse_bytes(text)) == text
    assert abs(parse_bytes(text) - size) <= max(0.5, size * 0.05)


@given(st.integers(0, 1 << 60))
def test_a_printed_duration_is_read_back_to_the_printed_digit(ns: int) -> None:
    text = format_ns(ns)
    assert format_ns(parse_ns(text)) == text


@given(sizes)
def test_a_negative_size_is_the_positive_one_with_a_sign(size: int) -> None:
    assert format_bytes(-size) == ("-" if size else "") + format_bytes(size)


def snapshot(values: dict[tuple[str, str], int]) -> Snapshot:
    readings = (
        Reading(Counter("torch", name, Unit.BYTES, device=device), value)
        for (name, device), value in values.items()
    )
    return Snapshot(tuple(readings))


readings = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["GPU-0", "GPU-1"])),
    sizes,
    min_size=1,
)


@given(readings, st.data())
def test_swapping_snapshots_negates_every_change(
    before: dict[tuple[str, str], int], data: st.DataObject
) -> None:
    after = {key: data.draw(sizes) for key in before}
    one, other = snapshot(before), snapshot(after)
    for name, device in before:
        there = other.change(one, f"torch.{name}", device)
        assert there == after[name, device] - before[name, device]
        assert there == -one.change(other, f"torch.{name}", device)


@given(st.integers(1, 1 << 30), st.integers(40, 80), st.integers(0, 1 << 40))
def test_a_steady_series_grows(step: int, runs: int, start: int) -> None:
    steady = [start + step * run for run in range(runs + 1)]
    assert course(steady, Rule(floor=0.3)) is Course.GROWING
    if step >= 24:
        assert course(steady, BYTES) is Course.GROWING
    assert course(steady, BLOCKS) is Course.GROWING


@given(
    st.lists(st.integers(0, 1 << 30), min_size=1, max_size=60),
    st.integers(4, 20),
    st.integers(0, 1 << 40),
)
def test_a_series_that_has_stopped_is_flat(
    warm_up: list[int], quiet: int, start: int
) -> None:
    values = [start]
    for change in (*warm_up, *[0] * quiet):
        values.append(values[-1] + change)
    for judge in (BYTES, BLOCKS, Rule(floor=0.3)):
        assert course(values, judge) is Course.FLAT


@given(
    st.lists(st.integers(0, 1 << 20), min_size=2, max_size=60),
    st.integers(0, 1 << 40),
)
def test_where_a_series_starts_does_not_matter(growth: list[int], start: int) -> None:
    values = [0]
    for change in growth:
        values.append(values[-1] + change)
    moved = [value + start for value in values]
    assert course(values, BYTES) is course(moved, BYTES)


def confirmed(growth: list[int]) -> Confirmed:
    values = [1_000_000]
    for change in growth:
        values.append(values[-1] + change)
    return Confirmed(
        layout=(HEAP,),
        series=(tuple(values),),
        courses=(course(values, BYTES),),
        runs=len(growth),
        spent_ns=1,
    )


@given(
    st.lists(st.integers(0, 1 << 20), min_size=3, max_size=40),
    st.integers(0, 1 << 21),
    st.integers(0, 1 << 21),
)
def test_a_wider_tolerance_never_turns_clean_into_leak(
    growth: list[int], narrow: int, more: int
) -> None:
    layout = Layout((HEAP,))
    glance = Glance(layout, (1_000_000,))
    first = FirstRun(glance, Glance(layout, (1_000_000 + growth[0],)), [growth[0]])

    def outcome(tolerance: int) -> Outcome:
        budget = LeakBudget(tolerances=(Tolerance("host.*", tolerance),))
        return rule(first, confirmed(growth), budget).outcome

    if outcome(narrow) is not Outcome.LEAK:
        assert outcome(narrow + more) is not Outcome.LEAK


texts = st.text(max_size=20)
counts = st.integers(-(1 << 60), 1 << 60)
findings = st.builds(
    Finding,
    counter=texts,
    device=texts,
    unit=st.sampled_from(Unit),
    before=counts,
    after=counts,
    per_run=st.floats(allow_nan=False, allow_infinity=False),
    deltas=st.lists(counts, max_size=16).map(tuple),
    limit=st.none() | counts,
)
verdicts = st.builds(
    Verdict,
    outcome=st.sampled_from(Outcome),
    findings=st.lists(findings, max_size=3).map(tuple),
    runs=st.integers(0, 4096),
    reason=texts,
    ruled_out=st.lists(texts, max_size=3).map(tuple),
    spent_ns=st.integers(0, 1 << 60),
    evidence=st.lists(texts, max_size=3).map(tuple),
)
counters = st.builds(
    CounterRecord, texts, texts, texts, before=counts, after=counts, growth=counts
)
rows = st.dictionaries(texts, texts, max_size=3).map(lambda found: tuple(found.items()))
records = st.builds(
    Record,
    nodeid=texts,
    worker=texts,
    started_at=texts,
    duration_ns=counts,
    test_outcome=texts,
    verdict=verdicts,
    counters=st.lists(counters, max_size=3).map(tuple),
    frames=st.lists(st.dictionaries(texts, texts | counts), max_size=2).map(tuple),
    environment=texts,
    environment_rows=rows,
)


@settings(max_examples=50)
@given(records)
def test_a_record_survives_json_in_one_line(record: Record) -> None:
    line = record.to_json()
    assert line.splitlines() == [line]
    assert Record.from_dict(json.loads(line)) == record


@given(
    st.builds(
        RunHeader,
        run_id=texts,
        started_at=texts,
        environment=rows,
        watched=st.lists(texts, max_size=3).map(tuple),
        not_watched=st.lists(texts, max_size=3).map(tuple),
        finished_at=texts,
        totals=st.dictionaries(texts, st.integers(0, 99), max_size=3).map(
            lambda found: tuple(found.items())
        ),
        commit=texts,
        branch=texts,
        ci_job=texts,
        shard=texts,
        gpu=texts,
        fixtures=st.lists(st.tuples(texts, verdicts), max_size=2).map(tuple),
        schema=st.just(SCHEMA),
    )
)
def test_a_header_survives_json(header: RunHeader) -> None:
    assert RunHeader.from_dict(json.loads(json.dumps(header.to_dict()))) == header


@given(verdicts)
def test_every_verdict_can_be_told(verdict: Verdict) -> None:
    assert failure.headline(verdict)
    assert failure.text(verdict).startswith(failure.headline(verdict))
