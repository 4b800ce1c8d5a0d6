"""What changed between two snapshots, counter by counter."""

from __future__ import annotations

from typing import NamedTuple

from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Snapshot


class Delta(NamedTuple):
    """One counter before and after, in its unit."""

    counter: Counter
    before: int
    after: int

    @property
    def change(self) -> int:
        """After minus before."""
        return self.after - self.before


class Diff(NamedTuple):
    """All deltas between two snapshots."""

    elapsed_ns: int
    deltas: tuple[Delta, ...]
    lost: tuple[Counter, ...] = ()
    """Counters that were read before but not after: nothing is known of them."""

    def change(self, key: str, device: str | None = None) -> int | None:
        """The change of `probe.name`, summed over devices unless one is named.

        None when the counter was not read on both sides.
        """
        found = [
            delta.change
            for delta in self.deltas
            if delta.counter.key == key and device in (None, delta.counter.device)
        ]
        return sum(found) if found else None


def diff(before: Snapshot, after: Snapshot) -> Diff:
    """After minus before.

    A counter that only `after` has counted 0 before: its framework was not
    initialised then. One that only `before` has is `lost`, unless it was read as 0.
    """
    old = {reading.counter: reading.value for reading in before.readings}
    deltas = tuple(
        Delta(reading.counter, old.pop(reading.counter, 0), reading.value)
        for reading in after.readings
    )
    return Diff(
        elapsed_ns=after.taken_ns - before.taken_ns,
        deltas=deltas,
        lost=tuple(old),
    )
