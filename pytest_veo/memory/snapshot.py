"""Counters and their readings at one instant.

A figure is a reading, or a trouble with its reason. It is never 0 because
something could not be read.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from pytest_veo.units import Unit


HOST = "host"
"""The device name of counters that belong to no GPU."""


class Kind(enum.Enum):
    """What a counter's value says about time."""

    CURRENT = "current"
    PEAK = "peak"
    TOTAL = "total"

    __hash__ = object.__hash__


class Rung(enum.IntEnum):
    """How much a counter proves: the evidence ladder, best first."""

    IDENTITY = 1
    """Which allocations exist."""
    LIVE = 2
    """Bytes or objects an allocator has handed out and not got back."""
    HELD = 3
    """Bytes an allocator keeps: reserved memory, private pools."""
    DRIVER = 4
    """This process's bytes as the driver or kernel books them."""
    DEVICE = 5
    """The whole device. Other tenants move it: context, never evidence."""


class Counter(NamedTuple):
    """One named figure of one device, such as `torch.allocated` on `GPU-1a2b`."""

    probe: str
    name: str
    unit: Unit
    device: str = HOST
    """`GPU-<uuid>` as the driver names it, or `host`."""
    rung: Rung = Rung.LIVE
    kind: Kind = Kind.CURRENT
    exact: bool = True
    """Whether an unchanged program gives an unchanged value. Exact counters need
    every measured run to grow; noisy ones are judged by a robust slope."""
    gate: int = 0
    """Growth above this, in `unit`, makes a test worth a closer look."""
    step: int = 1
    """The smallest change the source can show (512 bytes, 2 MiB, one block)."""
    always: bool = False
    """Growth here is followed up whatever the confirming credit: one descriptor,
    one thread, any device byte."""

    @property
    def key(self) -> str:
        """`probe.name`, as options, markers and reports write it."""
        return f"{self.probe}.{self.name}"

    def __str__(self) -> str:
        return self.key if self.device == HOST else f"{self.key} {self.device}"


class Reading(NamedTuple):
    """A counter's value at one instant, in the counter's unit."""

    counter: Counter
    value: int


class Trouble(NamedTuple):
    """A figure that could not be read, and why."""

    probe: str
    reason: str
    device: str = HOST
    counter: str = ""
    """The counter's name; empty when all of the probe (on that device) is meant."""
    is_error: bool = False
    """False: unavailable here by nature. True: it worked, then failed."""

    def __str__(self) -> str:
        subject = f"{self.probe}.{self.counter}" if self.counter else self.probe
        place = "" if self.device == HOST else f" {self.device}"
        kind = "error" if self.is_error else "unavailable"
        return f"{subject}{place}: {kind}, {self.reason}"


class Snapshot(NamedTuple):
    """Every reading taken at one instant."""

    readings: tuple[Reading, ...]

    def value(self, key: str, device: str | None = None) -> int | None:
        """The value of `probe.name`, summed over devices unless one is named.

        None when the counter was not read.
        """
        found = [reading.value for reading in self._of(key, device)]
        return sum(found) if found else None

    def change(self, before: Snapshot, key: str, device: str | None = None) -> int:
        """By how much `probe.name` has grown since; 0 when it was not read now.

        One that was not read before counted 0: its framework was not initialised.
        """
        old = {reading.counter: reading.value for reading in before.readings}
        return sum(
            reading.value - old.get(reading.counter, 0)
            for reading in self._of(key, device)
        )

    def devices(self, key: str) -> frozenset[str]:
        """Where `probe.name` was read."""
        return frozenset(reading.counter.device for reading in self._of(key, None))

    def _of(self, key: str, device: str | None) -> list[Reading]:
        return [
            reading
            for reading in self.readings
            if reading.counter.key == key and device in (None, reading.counter.device)
        ]
