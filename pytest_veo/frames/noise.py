"""What this machine adds to any frame: a null loop, and time spent waiting for a CPU.

A wall-clock limit on a shared machine judges the machine first. The null loop does
nothing but keep a pace; what it is late by, the frames were late by too.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pytest_veo.frames.distribution import MAD_SCALE
from pytest_veo.frames.distribution import Ordered
from pytest_veo.frames.series import Int64s


NULL_PERIOD_NS = 1_000_000
_SCHEDSTAT = Path("/proc/thread-self/schedstat")
_PRESSURE = Path("/proc/pressure/cpu")
_STAT = Path("/proc/stat")
_STEAL_COLUMN = 8


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MachineNoise:
    """What the machine did to frames while a series was recorded, in nanoseconds."""

    frames: int
    """Frames of the null loop; 0 when none was run."""
    p50_ns: float = 0.0
    """How much longer than meant the null loop's frames were."""
    p95_ns: float = 0.0
    p99_ns: float = 0.0
    max_ns: float = 0.0
    mad_ns: float = 0.0
    waited_ns: int | None = None
    """Time for which the recording thread was ready and had no CPU; None where the
    system does not tell."""
    stolen_ns: int = 0
    """At most so long the host of a virtual machine kept its CPUs to itself."""
    pressure: float | None = None
    """Share of the time for which something on the machine waited for a CPU."""

    @property
    def kept_ns(self) -> int | None:
        """For how long the machine may have kept the thread from going on."""
        return None if self.waited_ns is None else self.waited_ns + self.stolen_ns

    def excess_ns(self, share: float) -> float:
        """What the null loop's quantile at `share` was above its pace."""
        for limit, excess in ((0.5, self.p50_ns), (0.95, self.p95_ns)):
            if share <= limit:
                return excess
        return self.p99_ns if share <= 0.99 else self.max_ns

    def of_other_threads(self, span_ns: int) -> MachineNoise:
        """What may have kept threads that nobody counted for: all that waited here.

        Args:
            span_ns: for how long they recorded frames.
        """
        if self.pressure is None:
            return self
        waited = max(self.waited_ns or 0, round(self.pressure * span_ns))
        return dataclasses.replace(self, waited_ns=waited)

    def worse(self, other: MachineNoise) -> MachineNoise:
        """The larger of each figure; what was waited stays this one's."""
        return dataclasses.replace(
            self,
            frames=self.frames + other.frames,
            p50_ns=max(self.p50_ns, other.p50_ns),
            p95_ns=max(self.p95_ns, other.p95_ns),
            p99_ns=max(self.p99_ns, other.p99_ns),
            max_ns=max(self.max_ns, other.max_ns),
            mad_ns=max(self.mad_ns, other.mad_ns),
        )


def null_loop(
    duration_ns: int,
    *,
    period_ns: int = NULL_PERIOD_NS,
    clock: Callable[[], int] = time.perf_counter_ns,
    sleep: Callable[[float], None] = time.sleep,
) -> Int64s:
    """Stamps of a loop that only keeps a pace, in `clock`'s nanoseconds.

    It sleeps half of every period and computes for the rest, since a machine may be
    late in waking a sleeper, or in letting a busy loop go on.

    Args:
        duration_ns: how long it runs.
        period_ns: its pace.
        clock: read about as often as the loop can.
        sleep: seconds.
    """
    stamps = [clock()]
    begin = due = stamps[0]
    while due - begin < duration_ns:
        due += period_ns
        rest = due - clock()
        if rest > 0:
            sleep(rest / 2e9)
        while (now := clock()) < due:
            pass
        stamps.append(now)
        # After a stall the loop goes on from now: one stall is one late frame.
        due = max(due, now - period_ns)
    return np.array(stamps, np.int64)


def describe_null(stamps_ns: Int64s, period_ns: int = NULL_PERIOD_NS) -> MachineNoise:
    """How late the null loop was."""
    late = np.maximum(np.diff(stamps_ns) - period_ns, 0)
    if late.size == 0:
        return MachineNoise(frames=0)
    ordered = Ordered(late)
    p50 = ordered.quantile(0.5)
    return MachineNoise(
        frames=int(late.size),
        p50_ns=p50,
        p95_ns=ordered.quantile(0.95),
        p99_ns=ordered.quantile(0.99),
        max_ns=ordered.at(-1),
        mad_ns=MAD_SCALE * ordered.distance_median(p50),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class WaitReading:
    """What the system has counted so far of waiting for a CPU."""

    at_ns: int
    waited_ns: int | None
    pressure_ns: int | None
    stolen_ticks: int = 0
    tick_ns: int = 0

    def until(self, later: WaitReading, noise: MachineNoise) -> MachineNoise:
        """`noise`, with what was waited between this reading and a later one."""
        span = later.at_ns - self.at_ns
        waited = _less(later.waited_ns, self.waited_ns)
        pressure = _less(later.pressure_ns, self.pressure_ns)
        share = None if pressure is None or span <= 0 else min(1.0, pressure / span)
        # Whole ticks are counted, so up to one more may be gone; a machine that never
        # lost one has its CPUs to itself.
        ticks = later.stolen_ticks - self.stolen_ticks + 1 if later.stolen_ticks else 0
        return dataclasses.replace(
            noise, waited_ns=waited, stolen_ns=ticks * later.tick_ns, pressure=share
        )


def read_waiting() -> WaitReading:
    """Read the kernel's counts for this thread and this machine."""
    ticks = _stolen_ticks(_STAT)
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK") if ticks else 0
    return WaitReading(
        time.monotonic_ns(),
        _waited_ns(_SCHEDSTAT),
        _pressure_ns(_PRESSURE),
        ticks,
        tick_ns,
    )


def _waited_ns(path: Path) -> int | None:
    # "<ns on a CPU> <ns waiting for one> <slices>"; absent outside Linux.
    try:
        return int(path.read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return None


def _pressure_ns(path: Path) -> int | None:
    # "some avg10=... total=<us>" on its first line; absent without PSI.
    try:
        first = path.read_text().splitlines()[0]
        return int(first.rpartition("total=")[2]) * 1000
    except (OSError, IndexError, ValueError):
        return None


def _stolen_ticks(path: Path) -> int:
    # "cpu user nice system idle iowait irq softirq steal ..."; 0 outside Linux.
    try:
        with path.open() as stat:
            return int(stat.readline().split()[_STEAL_COLUMN])
    except (OSError, IndexError, ValueError):
        return 0


def _less(later: int | None, earlier: int | None) -> int | None:
    return None if later is None or earlier is None else later - earlier
