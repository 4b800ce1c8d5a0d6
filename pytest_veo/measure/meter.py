"""All probes read as one.

A probe that fails is reported once; from then on its figures are an error, and the
session goes on.
"""

from __future__ import annotations

import sys
from operator import is_
from operator import sub
from typing import TYPE_CHECKING
from typing import NamedTuple
from typing import Self

from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Reading
from pytest_veo.memory.snapshot import Snapshot
from pytest_veo.memory.snapshot import Trouble
from pytest_veo.probes.host import HEAP
from pytest_veo.probes.host import HostProbe
from pytest_veo.probes.sleeping import SleepingProbe


if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Iterable
    from collections.abc import Sequence

    from pytest_veo.probes.base import Probe


class Layout(tuple[Counter, ...]):
    """The counters of a glance, in its order.

    `inside` says, for the place of a counter that the driver keeps for this process,
    the places of the allocators' totals on the same device: a pool that grows is no
    growth beside the pools.
    """

    inside: tuple[tuple[int, tuple[int, ...]], ...]
    heap_place: int
    """Where the native heap stands; -1: it does not."""

    def __new__(cls, counters: Iterable[Counter] = ()) -> Self:
        """The layout of these counters."""
        layout = super().__new__(cls, counters)
        layout.inside = tuple(
            (place, pools)
            for place, counter in enumerate(layout)
            if counter.key == _PROCESS and (pools := _pools(layout, counter.device))
        )
        layout.heap_place = layout.index(HEAP) if HEAP in layout else -1
        return layout


_PROCESS = "nvml.process"
_POOL_TOTALS = frozenset({"torch.reserved", "cupy.held", "jax.held"})


def _pools(layout: Layout, device: str) -> tuple[int, ...]:
    return tuple(
        place
        for place, counter in enumerate(layout)
        if counter.device == device and counter.key in _POOL_TOTALS
    )


class Glance(NamedTuple):
    """The figures of every active probe at one instant."""

    layout: Layout
    """The same object as long as no probe's counters changed."""
    values: tuple[int, ...]


def growth(before: Glance, after: Glance) -> list[int]:
    """After minus before, for each counter of `after`.

    A counter that was not there before counted 0: its framework was not initialised.
    What the driver books for the process is reduced by what its pools grew.
    """
    if before.layout is after.layout:
        grown = list(map(sub, after.values, before.values))
    else:
        old = dict(zip(before.layout, before.values, strict=True))
        grown = [
            value - old.get(counter, 0)
            for counter, value in zip(after.layout, after.values, strict=True)
        ]
    for place, pools in after.layout.inside:
        grown[place] -= sum(grown[pool] for pool in pools)
    return grown


class Meter:
    """Reads every open probe; remembers what could not be read."""

    def __init__(
        self, probes: Sequence[Probe], troubles: Sequence[Trouble] = ()
    ) -> None:
        self.probes = list(probes)
        self._host = next(
            (p for p in probes if isinstance(p, HostProbe) and p.shared_place >= 0),
            None,
        )
        self._own = (0,) * len(self._host.counters) if self._host is not None else ()
        self._own_heap = 0
        self._lone_host: HostProbe | None = None
        """The host probe, while no other one has anything to watch."""
        self._signs = (0, 0)
        self._shared_place = self._host.shared_place if self._host is not None else -1
        self._awake: list[tuple[Probe, tuple[Counter, ...] | None]] = []
        """The other probes that were awake at the last glance, with what they read;
        None: nothing. Empty unless the host's comes first."""
        self._sleepers = [p for p in probes if isinstance(p, SleepingProbe)]
        """Those that nothing has woken at the last glance."""
        self._refused = list(troubles)
        self._parts: tuple[tuple[Counter, ...], ...] = ()
        self.watches_devices = False
        """Whether a framework was in use at the last glance."""
        self._layout = Layout()
        self._examined = Layout()
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

    @property
    def can_skip_blocks(self) -> bool:
        """Whether a glance can do without counting Python's blocks."""
        return self._host is not None and self._host.can_skip_blocks

    def glance(self, blocks: Callable[[], int] | None = None) -> Glance:
        """The cheap figures; nothing is collected, synchronised or imported.

        Args:
            blocks: gives Python's blocks, the first figure, instead of counting them;
                only where `can_skip_blocks`.
        """
        host = self._lone_host
        if host is not None:
            values = host.glance() if blocks is None else host.glance(blocks)
            # A framework comes with modules, a driver with a mapped library.
            signs = (len(sys.modules), values[self._shared_place])
            if signs == self._signs:
                # A named tuple's own constructor is a function of Python's.
                return tuple.__new__(Glance, (self._layout, values))
            self._signs = signs
            return self._glance_all()  # much has changed: blocks are counted, too
        return self._glance_awake(blocks) or self._glance_all(blocks)

    def _glance_awake(self, blocks: Callable[[], int] | None) -> Glance | None:
        """The figures of the probes that were awake at the last glance.

        None if anything is not as it was then: all probes must be asked.
        """
        if not self._awake:
            return None
        values = self._of_host(blocks)
        signs = (len(sys.modules), values[self._shared_place])
        if signs != self._signs:
            self._signs = signs
            return None
        values = tuple(map(sub, values, self._own))
        try:
            for probe, counters in self._awake:
                if probe.is_active() is not (counters is not None):
                    return None
                if counters is None:
                    continue
                part = probe.glance()
                if probe.counters is not counters or len(part) != len(counters):
                    return None
                values += part
        except Exception:
            return None  # who asks all of them tells of it
        return tuple.__new__(Glance, (self._layout, values))

    def _glance_all(self, blocks: Callable[[], int] | None = None) -> Glance:
        values: tuple[int, ...] = ()
        parts: list[tuple[Counter, ...]] = []
        awake: list[tuple[Probe, tuple[Counter, ...] | None]] = []
        before = self._of_host(blocks)
        for probe in self.probes:
            if probe is self._host:
                values += tuple(map(int.__sub__, before, self._own))
                parts.append(probe.counters)
                continue
            try:
                if not probe.is_active():
                    awake.append((probe, None))
                    continue
                part, counters = probe.glance(), probe.counters
                if len(part) != len(counters):
                    raise ValueError(
                        f"glance gave {len(part)} figures for {len(counters)} counters"
                    )
            except Exception as error:
                self._drop(probe, error)
                return self._glance_all(blocks)
            values += part
            parts.append(counters)
            awake.append((probe, counters))
        known = self._layout
        layout = self._layout_of(parts)
        if self._have_any_woken() or layout is not known:
            self._book_own(before, self._of_host(blocks))
        are_all_asleep = len(self._sleepers) == len(self.probes) - 1
        self._lone_host = self._host if are_all_asleep else None
        is_first = self.probes[:1] == [self._host]
        asleep = set(map(id, self._sleepers))
        self._awake = [each for each in awake if is_first and id(each[0]) not in asleep]
        return Glance(layout, values)

    def _have_any_woken(self) -> bool:
        """Whether a probe that slept at the last glance does so no more."""
        asleep = [probe for probe in self._sleepers if probe.is_asleep]
        has_any_woken = len(asleep) < len(self._sleepers)
        self._sleepers = asleep
        return has_any_woken

    def _of_host(self, blocks: Callable[[], int] | None) -> tuple[int, ...]:
        """The host's own figures, what is ours included."""
        if self._host is None:
            return ()
        if blocks is None:
            return self._host.glance()
        return self._host.glance(lambda: blocks() + self._own[0])

    def _book_own(self, before: tuple[int, ...], after: tuple[int, ...]) -> None:
        """Take what our own probes needed to wake off the host's figures for good.

        To import NVML's binding alone takes 600 KiB.
        """
        if self._host is None:
            return
        grown = map(int.__sub__, after, before)
        self._own = tuple(
            own + max(0, more) for own, more in zip(self._own, grown, strict=True)
        )
        if HEAP in self._host.counters:
            self._own_heap = self._own[self._host.counters.index(HEAP)]

    def heap_since(self, before: Glance) -> int:
        """How the native heap has grown since, for a fraction of a glance's cost."""
        place = before.layout.heap_place
        if self._host is None or place < 0:
            return 0
        return self._host.heap_bytes() - self._own_heap - before.values[place]

    def _layout_of(self, parts: list[tuple[Counter, ...]]) -> Layout:
        known = self._parts
        if len(parts) != len(known) or not all(map(is_, parts, known)):
            self._parts = tuple(parts)
            self.watches_devices = len(parts) > 1
            self._layout = Layout(counter for part in parts for counter in part)
            self.seen.update(self._layout)
        return self._layout

    def read(self) -> Snapshot:
        """Every figure of every active probe. May be slow."""
        readings: list[Reading] = []
        for probe in self.active():
            try:
                found = probe.read()
            except Exception as error:
                self._drop(probe, error)
                continue
            readings += self._without_own(found) if probe is self._host else found
        return Snapshot(tuple(readings))

    def _without_own(self, readings: Sequence[Reading]) -> list[Reading]:
        assert self._host is not None
        own = dict(zip(self._host.counters, self._own, strict=True))
        return [
            Reading(reading.counter, reading.value - own.get(reading.counter, 0))
            for reading in readings
        ]

    def examine(self) -> Glance:
        """As `glance`, with the dear figures of frameworks that are in use."""
        if self._lone_host is not None:
            return self.glance()
        readings = self.read().readings
        counters = tuple(reading.counter for reading in readings)
        if counters != tuple(self._examined):
            self._examined = Layout(counters)
            self.seen.update(counters)
        return Glance(self._examined, tuple(reading.value for reading in readings))

    def settle(self) -> None:
        """Let every active probe synchronise and flush."""
        for probe in self.active():
            try:
                probe.settle()
            except Exception as error:
                self._drop(probe, error)

    def _drop(self, probe: Probe, error: Exception) -> None:
        self.probes.remove(probe)
        self._sleepers = [each for each in self._sleepers if each is not probe]
        if probe is self._host:
            self._host = self._lone_host = None
            self._awake = []
        reason = f"{type(error).__name__}: {error}"
        self._refused.append(Trouble(probe.name, reason, is_error=True))

    def close(self) -> None:
        """Close every probe; one that fails to is only noted."""
        for probe in list(self.probes):
            try:
                probe.close()
            except Exception as error:
                self._drop(probe, error)
