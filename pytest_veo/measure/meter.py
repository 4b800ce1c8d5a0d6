"""All probes read as one.

A probe that fails is reported once; from then on its figures are an error, and the
session goes on.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from typing import NamedTuple

from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Reading
from pytest_veo.memory.snapshot import Snapshot
from pytest_veo.memory.snapshot import Trouble
from pytest_veo.probes.host import HEAP
from pytest_veo.probes.host import HostProbe


if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_veo.probes.base import Probe


class Glance(NamedTuple):
    """The cheap figures of every active probe at one instant."""

    layout: tuple[Counter, ...]
    """The same object as long as no probe's counters changed."""
    values: tuple[int, ...]


def growth(before: Glance, after: Glance) -> list[int]:
    """After minus before, for each counter of `after`.

    A counter that was not there before counted 0: its framework was not initialised.
    """
    if before.layout is after.layout:
        return [b - a for a, b in zip(before.values, after.values, strict=True)]
    old = dict(zip(before.layout, before.values, strict=True))
    return [
        value - old.get(counter, 0)
        for counter, value in zip(after.layout, after.values, strict=True)
    ]


class Meter:
    """Reads every open probe; remembers what could not be read."""

    def __init__(
        self, probes: Sequence[Probe], troubles: Sequence[Trouble] = ()
    ) -> None:
        self.probes = list(probes)
        host = next((p for p in probes if isinstance(p, HostProbe)), None)
        self._heap_bytes = host.heap_bytes if host is not None else None
        self._refused = list(troubles)
        self._parts: tuple[tuple[Counter, ...], ...] = ()
        self._layout: tuple[Counter, ...] = ()
        self.seen: set[Counter] = set()
        """Every counter that was read at least once."""

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """Everything that cannot be read now, and why."""
        current = [trouble for probe in self.probes for trouble in probe.troubles]
        return (*self._refused, *current)

    def active(self) -> list[Probe]:
        """Probes that have something to read."""
        return [probe for probe in self.probes if self._is_active(probe)]

    def _is_active(self, probe: Probe) -> bool:
        try:
            return probe.is_active()
        except Exception as error:
            self._drop(probe, error)
            return False

    def glance(self) -> Glance:
        """The cheap figures; nothing is collected, synchronised or imported."""
        values: tuple[int, ...] = ()
        parts: list[tuple[Counter, ...]] = []
        for probe in self.probes:
            try:
                if not probe.is_active():
                    continue
                part = probe.glance()
                if len(part) != len(probe.counters):
                    raise ValueError(
                        f"glance gave {len(part)} figures for "
                        f"{len(probe.counters)} counters"
                    )
            except Exception as error:
                self._drop(probe, error)
                return self.glance()
            values += part
            parts.append(probe.counters)
        return Glance(self._layout_of(parts), values)

    def heap_since(self, before: Glance) -> int:
        """How the native heap has grown since, for a fraction of a glance's cost."""
        if self._heap_bytes is None or HEAP not in before.layout[:2]:
            return 0
        return self._heap_bytes() - before.values[before.layout.index(HEAP)]

    def _layout_of(self, parts: list[tuple[Counter, ...]]) -> tuple[Counter, ...]:
        known = self._parts
        if len(parts) != len(known) or any(
            a is not b for a, b in zip(parts, known, strict=True)
        ):
            self._parts = tuple(parts)
            self._layout = tuple(counter for part in parts for counter in part)
            self.seen.update(self._layout)
        return self._layout

    def read(self) -> Snapshot:
        """Every figure of every active probe. May be slow."""
        readings: list[Reading] = []
        for probe in self.active():
            try:
                readings += probe.read()
            except Exception as error:
                self._drop(probe, error)
        return Snapshot(
            taken_ns=time.monotonic_ns(),
            readings=tuple(readings),
            troubles=self.troubles,
        )

    def settle(self) -> None:
        """Let every active probe synchronise and flush."""
        for probe in self.active():
            try:
                probe.settle()
            except Exception as error:
                self._drop(probe, error)

    def _drop(self, probe: Probe, error: Exception) -> None:
        self.probes.remove(probe)
        reason = f"{type(error).__name__}: {error}"
        self._refused.append(Trouble(probe.name, reason, is_error=True))

    def close(self) -> None:
        """Close every probe; one that fails to is only noted."""
        for probe in list(self.probes):
            try:
                probe.close()
            except Exception as error:
                self._drop(probe, error)
