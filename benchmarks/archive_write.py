"""What writing one record costs the session, in microseconds of CPU time.

    python benchmarks/archive_write.py [--records N]

The record has ten counters. The line goes through to the system each time; the medians
of ten rounds are printed. For a bucket it is the spool that is written: what sends is a
process of its own.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_veo.archive.record import CounterRecord
from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.writer import RunWriter


ROUNDS = 10
RECORD = Record(
    nodeid="tests/render/test_shadows.py::TestCascades::test_soft_edges[4-2048-pcf]",
    worker="gw0",
    started_at="2026-11-30T12:00:00.000+00:00",
    duration_ns=12_345_678,
    test_outcome="passed",
    counters=tuple(
        CounterRecord(f"torch.counter_{n}", "GPU-1a2b3c4d", "bytes", n, n + 512, 512)
        for n in range(10)
    ),
    environment="0123456789ab",
)


def measure(records: int, add: Callable[[RunWriter], object]) -> float:
    """Median microseconds of CPU time a record."""
    found = []
    for number in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            writer = RunWriter(Path(folder), RunHeader(str(number), "2026-11-30"))
            began = time.process_time_ns()
            for _ in range(records):
                add(writer)
            found.append((time.process_time_ns() - began) / records / 1000)
            writer.finish(writer.header)
    return statistics.median(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2000)
    records = parser.parse_args().records
    data: dict[str, Any] = RECORD.to_dict()
    print(f"as a session does it  {measure(records, lambda w: w.add(data)):6.1f} us")
    print(f"from a Record         {measure(records, lambda w: w.add(RECORD)):6.1f} us")


if __name__ == "__main__":
    main()
