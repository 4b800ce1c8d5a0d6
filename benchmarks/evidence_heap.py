"""A census and a holder search on a heap of a million objects.

Marks: census at most 1 s; holder search at most 3 s; neither more than 1.5 times the
heap's own memory.

    python benchmarks/evidence_heap.py [objects]
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from typing import TypeVar


sys.path.insert(0, str(Path(__file__).parent.parent))

from pytest_veo.evidence import holders
from pytest_veo.evidence.places import Places


T = TypeVar("T")
KEPT: list[Any] = []


class Record:
    """Five tracked objects, as programs have them: instance, dict, lists, tuple."""

    def __init__(self, number: int) -> None:
        self.name = str(number)
        self.fields = {"rows": [number], "next": None}
        self.tags = [("a", self)]


class Leaked:
    """Deep in the heap, once."""


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(what: str, call: Callable[[], T]) -> T:
    start, before = time.process_time(), peak_mib()
    result = call()
    seconds = time.process_time() - start  # what others do on the machine counts less
    print(f"{what:34} {seconds:6.2f} s, peak {before:.0f} -> {peak_mib():.0f} MiB")
    return result


def main(wanted: int) -> None:
    empty = peak_mib()
    print("time of this process on a processor")
    while len(gc.get_objects()) < wanted:
        KEPT.extend(Record(number) for number in range(20_000))
    middle = KEPT[len(KEPT) // 2]
    middle.fields["rows"].append({"deep": (Leaked(), [1])})
    gc.collect()
    print(f"{len(gc.get_objects())} objects, heap {peak_mib() - empty:.0f} MiB")
    del middle

    census = timed("census", Places.take)
    for number in range(8):
        KEPT.append(Record(number))
    grown = timed("what grew, with names", lambda: census.grown(runs=8, seconds=10))
    print("   ", [place.path for place in grown])
    leaked = [each for each in gc.get_objects() if type(each) is Leaked]
    found = timed("holder of one object", lambda: holders.find(leaked, seconds=10))
    print("   ", found[0].path)
    found = timed(
        "holders of three objects",
        lambda: holders.find([leaked[0], KEPT[5], KEPT[9].tags], seconds=10),
    )
    capped = timed("with a cap of 0.05 s", lambda: holders.find(leaked, seconds=0.05))
    print("   ", *capped[0].lines())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
