"""Runs to show: a few tests of every kind, hostile names, ten thousand tests."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from pytest_veo.archive.record import CounterRecord
from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.store import Run
from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.jitter import judge
from pytest_veo.frames.record import record_of
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries
from pytest_veo.units import Unit
from pytest_veo.verdict import CLEAN
from pytest_veo.verdict import Finding
from pytest_veo.verdict import Outcome
from pytest_veo.verdict import Verdict


BEGIN = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
HOSTILE = (
    "tests/test_x.py::test_it[</script><script>document.title='owned'</script>]",
    'tests/test_x.py::test_it["><img src=x onerror="document.title=1">]',
    "tests/test_x.py::test_it[{{ 7 * 7 }}{% raw %}]",
    "tests/test_x.py::test_it[<!--<script>]",
    "tests/test_x.py::test_it[\u202etset_drow]",
    "tests/test_x.py::test_it[\ud800 half a pair]",
    "tests/test_x.py::test_it[a\nb\x1b[31m\x00\u2028c]",
    "tests/test_x.py::test_it[&amp;&lt;%3Cb%3E#test=1&q=2]",
    "tests/test_x.py::test_it[" + "long-" * 4000 + "]",
    "javascript:alert(1)::test_it",
)


def leak(
    growth: int = 147_456,
    *,
    counter: str = "host.heap",
    device: str = "host",
    evidence: tuple[str, ...] = (),
    outcome: Outcome = Outcome.LEAK,
    reason: str = "it grew again in 12 runs with fresh fixtures",
) -> Verdict:
    finding = Finding(
        counter=counter,
        device=device,
        unit=Unit.BYTES,
        before=1 << 20,
        after=(1 << 20) + growth,
        per_run=float(growth),
        deltas=(growth,) * 6,
    )
    return Verdict(
        outcome=outcome, findings=(finding,), runs=6, reason=reason, evidence=evidence
    )


EVIDENCE = (
    "allocated  thumbnails.py:16  return bytearray(packed)  [128.1 KiB a run]",
    "           thumbnails.py:40  return bytes(pixels)  [16 KiB a run]",
    "held by    thumbnails.CACHE (dict)[0] -> thumbnails.Thumbnailer",
    "hint       give the cache a limit",
)


def record(
    nodeid: str,
    verdict: Verdict = CLEAN,
    *,
    at_ms: int = 0,
    took_ms: float = 5.0,
    heap: int = 0,
    allocated: int | None = None,
    test_outcome: str = "",
    worker: str = "",
    frames: tuple[dict[str, Any], ...] = (),
) -> Record:
    """A test that began `at_ms` into the session and whose heap grew by `heap`."""
    rows = [
        CounterRecord("host.heap", "host", "bytes", 1 << 20, (1 << 20) + heap, heap)
    ]
    rows.append(CounterRecord("host.descriptors", "host", "count", 9, 9, 0))
    if allocated is not None:
        rows.append(
            CounterRecord(
                "torch.allocated", "GPU-1a2b", "bytes", 0, allocated, allocated
            )
        )
    failed = verdict.outcome.fails
    started = BEGIN + datetime.timedelta(milliseconds=at_ms)
    return Record(
        nodeid=nodeid,
        worker=worker,
        started_at=started.isoformat(timespec="milliseconds"),
        duration_ns=round(took_ms * 1e6),
        test_outcome=test_outcome or ("failed" if failed else "passed"),
        verdict=verdict,
        counters=tuple(rows),
        frames=frames,
    )


def frames(*, freeze_ms: float = 0.0, name: str = "decode") -> dict[str, Any]:
    """1,000 frames of about 16.7 ms held to budgets, the first 30 for warm-up."""
    times_ms = np.random.default_rng(3).normal(16.667, 0.2, 1000)
    times_ms[:30] += 10
    if freeze_ms:
        times_ms[700] = freeze_ms
    series = FrameSeries.from_intervals(
        np.rint(times_ms * 1e6).astype(np.int64),
        name=name,
        event=Event.PRESENT,
        clock=Clock.INJECTED,
        resolution_ns=1,
    )
    budget = JitterBudget(p99_ms=18.0, max_ms=33.4, warmup=30)
    return record_of(series, judge(series, budget))


def header(**changes: Any) -> RunHeader:
    known = RunHeader(
        run_id="20260301T120000.000000Z-1a2b3c",
        started_at=BEGIN.isoformat(timespec="milliseconds"),
        finished_at=BEGIN.isoformat(timespec="milliseconds"),
        environment=(("machine", "x86_64"), ("python", "3.12.1")),
        watched=("host.heap", "host.descriptors"),
        not_watched=("nvml: unavailable, no NVML library",),
        commit="4f2a91c07be155d0",
        branch="main",
    )
    return known._replace(**changes)


NOT_JUDGED = Verdict(Outcome.NOT_JUDGED, reason="it failed")


def small() -> Run:
    """One test of nearly every standing, in the order in which they ran."""
    rows = [
        record("tests/test_a.py::test_clean"),
        record("tests/test_a.py::test_leaks", leak(evidence=EVIDENCE), heap=147_456),
        record(
            "tests/test_b.py::TestGpu::test_keeps_its_loss[fp16]",
            leak(8 << 20, counter="torch.allocated", device="GPU-1a2b"),
            allocated=8 << 20,
        ),
        record(
            "tests/test_b.py::test_warms_up",
            leak(90_000, outcome=Outcome.RETENTION, reason="it grew once"),
            heap=90_000,
        ),
        record("tests/test_b.py::test_fails", NOT_JUDGED, test_outcome="failed"),
        record(
            "tests/test_c.py::test_stutters",
            NOT_JUDGED,
            test_outcome="failed",
            frames=(frames(freeze_ms=80.0),),
        ),
        record("tests/test_c.py::test_is_smooth", frames=(frames(),), took_ms=400.0),
        record("tests/test_c.py::test_small", heap=512, took_ms=0.25),
    ]
    return Run(header(), tuple(_in_order(rows)))


def _in_order(rows: list[Record]) -> list[Record]:
    found, at_ms = [], 0
    for row in rows:
        started = BEGIN + datetime.timedelta(milliseconds=at_ms)
        found.append(
            row._replace(started_at=started.isoformat(timespec="milliseconds"))
        )
        at_ms += round(row.duration_ns / 1e6) + 1
    return found


def hostile() -> Run:
    """Every text that comes from outside says something it should not."""
    bad = "</script><script>document.title='owned'</script><b onclick=1>{{ 7*7 }}\u202e"
    verdict = leak(reason=bad, evidence=(f"allocated  {bad}", f"held by    {bad}", bad))
    verdict = verdict._replace(ruled_out=(bad,))
    series = frames(freeze_ms=80.0, name=bad)
    rows = [
        record(nodeid, verdict if number % 2 else CLEAN, heap=9, worker=bad)
        for number, nodeid in enumerate(HOSTILE)
    ]
    rows.append(record("tests/test_y.py::test_frames", frames=(series,), worker="gw1"))
    odd = CounterRecord(bad, bad, "bytes", 1, 2, 1)
    rows[0] = rows[0]._replace(counters=(odd, *rows[0].counters))
    known = header(
        run_id=bad,
        environment=((bad, bad),),
        watched=(bad,),
        not_watched=(bad,),
        commit=bad,
        branch=bad,
        gpu=bad,
    )
    return Run(known, tuple(_in_order(rows)), unread=(bad,))


def large(tests: int = 10_000) -> Run:
    """Many tests, of which one in a hundred leaks."""
    rows = [
        record(
            f"tests/test_{number % 97}.py::TestThing::test_case_{number}[fp-{number}]",
            leak(growth, evidence=EVIDENCE) if number % 100 == 7 else CLEAN,
            heap=growth if number % 100 == 7 else 512 * (number % 3 == 0),
            allocated=0,
            took_ms=1 + number % 13,
        )
        for number in range(tests)
        for growth in [10_000 + 37 * number]
    ]
    return Run(header(), tuple(_in_order(rows)))
