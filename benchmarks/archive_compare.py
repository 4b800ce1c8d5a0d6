"""Comparing runs and finding steps in a large archive, timed and checked.

    python benchmarks/archive_compare.py [--rows 1000000]
    python benchmarks/archive_compare.py --seeds 200     # how often trend is right

The first form makes an archive of so many counter rows in 500 gathered runs, a second
one of two runs with half of them each, and a third with 5,000 runs of one test beside
others. The second form plants three regressions in 500 runs with natural noise.
"""

from __future__ import annotations

import argparse
import datetime
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_veo.archive.compact import compact
from pytest_veo.archive.compare import compare
from pytest_veo.archive.compare import side
from pytest_veo.archive.query import Engine
from pytest_veo.archive.record import CounterRecord
from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.reference import parse
from pytest_veo.archive.steps import find_steps
from pytest_veo.archive.store import RunWriter
from pytest_veo.archive.trend import trends_of


START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
COUNTERS = 10
MIB = 1 << 20


def write_run(archive: Path, number: int, tests: int, random_: random.Random) -> str:
    started = START + datetime.timedelta(minutes=20 * number)
    header = RunHeader(
        run_id=f"{started:%Y%m%dT%H%M%S}.000000Z-{number:06x}",
        started_at=started.isoformat(timespec="milliseconds"),
        environment=(("python", "3.12.1"),),
        commit=f"{number:08x}" * 5,
        branch="main",
    )
    writer = RunWriter(archive, header)
    for test in range(tests):
        rows = []
        for place in range(COUNTERS):
            size = round(MIB * (1 + random_.gauss(0, 0.02)))
            rows.append(CounterRecord(f"host.c{place}", "host", "bytes", 0, size, size))
        name = f"tests/test_{test // 50}.py::test_{test}"
        writer.add(Record(nodeid=name, test_outcome="passed", counters=tuple(rows)))
    writer.finish(header._replace(finished_at=started.isoformat()))
    return header.run_id


def make(archive: Path, runs: int, tests: int) -> list[str]:
    random_ = random.Random(1)
    return [write_run(archive, number, tests, random_) for number in range(runs)]


def timed(label: str, work: Any, mark_s: float) -> None:
    work()  # what is loaded once is not the question's cost
    wall, cpu = time.perf_counter(), time.process_time()
    said = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"| {label} | {wall:.2f} s | {cpu:.2f} s | {mark_s:g} s | {said} |")


def compared(archive: Path, before: str, after: str) -> str:
    one, two = (side(parse(ref, str(archive), "")) for ref in (before, after))
    found = compare(one, two, ())
    return f"{found.same + len(found.grew) + len(found.shrank)} figures"


def trended(archive: Path, test: str, counters: list[str]) -> str:
    with Engine(str(archive)) as engine:
        found = trends_of(engine, test, counters)
    points = sum(len(trend.values) for trend in found.trends)
    return f"{len(found.trends)} figures, {points} points"


def speed(rows: int, folder: Path) -> None:
    runs = 500
    tests = rows // (runs * COUNTERS)
    many, two, long = folder / "many", folder / "two", folder / "long"
    ids = make(many, runs, tests)
    pair = make(two, 2, rows // (2 * COUNTERS))
    make(long, 5000, max(1, rows // (5000 * COUNTERS)))
    now = datetime.datetime.now(tz=datetime.UTC)
    for archive in (many, two, long):
        compact(archive, now=now)
    print("| question | wall | CPU | mark | answer |")
    print("| --- | ---: | ---: | ---: | --- |")
    size = f"{rows:,} rows"
    timed(
        f"compare two of {runs} runs, {size} in all",
        lambda: compared(many, ids[0], ids[-1]),
        2,
    )
    timed(
        f"compare two runs, {size} in them", lambda: compared(two, pair[0], pair[1]), 2
    )
    timed(
        "median:20 against the last",
        lambda: compared(many, "median:20", "last"),
        2,
    )
    first = "tests/test_0.py::test_0"
    timed(
        f"trend, one counter over 5,000 runs, {size} in all",
        lambda: trended(long, first, ["host.c0"]),
        1,
    )
    timed("trend, all its counters", lambda: trended(long, first, []), 1)


def histories(seed: int) -> Iterator[tuple[str, tuple[bool, bool, bool]]]:
    """Each shape of noise: exactly the three, the three or in range, any other."""
    random_ = random.Random(seed)
    steps = sorted(random_.sample(range(20, 480, 20), 3))
    for shape in ("calm", "wild runs", "two machines", "drift", "memory"):
        level, rest = 8.0, 0.0
        values = []
        for run in range(500):
            level += steps.count(run) * 1.0
            rest = 0.5 * rest + random_.gauss(0, 0.02) * 0.866
            noise = {
                "calm": random_.gauss(0, 0.02),
                "wild runs": random_.gauss(0, 0.02)
                + (random_.random() < 0.03) * random_.choice((0.2, 0.5, 2)),
                "two machines": random_.gauss(0, 0.01)
                + 0.04 * (random_.random() < 0.4),
                "drift": random_.gauss(0, 0.02) + 0.04 * run / 500,
                "memory": rest,
            }[shape]
            values.append(level * (1 + noise))
        found = find_steps(values)
        places = [step.place for step in found]
        told = len(found) == len(steps) and all(
            each.first <= at <= each.last for each, at in zip(found, steps, strict=True)
        )
        others = any(min(abs(at - step) for step in steps) > 2 for at in places)
        yield shape, (places == steps, told, others)


def rates(seeds: int) -> None:
    counts: dict[str, list[int]] = {}
    for seed in range(seeds):
        for shape, what in histories(seed):
            before = counts.setdefault(shape, [0, 0, 0])
            counts[shape] = [
                count + is_so for count, is_so in zip(before, what, strict=True)
            ]
    print("| noise | exactly the three | the three, or in the range | another named |")
    print("| --- | ---: | ---: | ---: |")
    for shape, count in counts.items():
        shares = " | ".join(f"{each / seeds:.1%}" for each in count)
        print(f"| {shape} | {shares} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=0)
    args = parser.parse_args()
    if args.seeds:
        rates(args.seeds)
        return
    with tempfile.TemporaryDirectory() as folder:
        speed(args.rows, Path(folder))


if __name__ == "__main__":
    main()
