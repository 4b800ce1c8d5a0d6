"""One evidence run: begin before the extra runs of a confirmed leak, end after them."""

from __future__ import annotations

import dataclasses
import gc
from typing import Literal
from typing import Protocol

from pytest_veo.evidence import creations
from pytest_veo.evidence import device_blocks
from pytest_veo.evidence import hints
from pytest_veo.evidence import holders
from pytest_veo.evidence import newborn
from pytest_veo.evidence.allocations import Site
from pytest_veo.evidence.allocations import Tracing
from pytest_veo.evidence.creations import Creation
from pytest_veo.evidence.device_blocks import DeviceSite
from pytest_veo.evidence.holders import Holder
from pytest_veo.evidence.native import NativeSite
from pytest_veo.evidence.native import NativeTracing
from pytest_veo.evidence.newborn import Born
from pytest_veo.evidence.places import GrownPlace
from pytest_veo.evidence.places import Places
from pytest_veo.evidence.roots import Root


Level = Literal["light", "full", "native"]

_PYTEST = ("_pytest.", "pluggy.")
_KNOWN_DOMAINS = {389047: "NumPy array data"}


class DomainTracing(Protocol):
    """`pytest_veo.tracemalloc_ext`, as far as the collector needs it."""

    def is_tracking(self) -> bool:
        """Whether it has been started already."""

    def start(self) -> None:
        """Hook into the device libraries that are there."""

    def stop(self) -> None:
        """Leave nothing behind."""

    def labels(self) -> dict[int, str]:
        """Tracemalloc's domain numbers with their names for people."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What explains a leak. Text and numbers only: it may be kept and archived."""

    level: Level
    runs: int
    sites: tuple[Site, ...] = ()
    """Lines whose memory stayed, host and device domains, most telling first."""
    device_sites: tuple[DeviceSite, ...] = ()
    """Device blocks by identity, from the allocators that list theirs."""
    native_sites: tuple[NativeSite, ...] = ()
    born: tuple[Born, ...] = ()
    holders: tuple[Holder, ...] = ()
    places: tuple[GrownPlace, ...] = ()
    creations: tuple[Creation, ...] = ()
    hints: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be looked at, and why."""

    @property
    def names_nothing(self) -> bool:
        """Whether no line, object, place or handle explains the leak."""
        named = (self.sites, self.device_sites, self.native_sites, self.holders)
        return not any((*named, self.creations))

    def without_machinery(self) -> Evidence:
        """Without what pytest keeps between two runs, and C code's passing objects."""
        found = dataclasses.replace(
            self,
            holders=tuple(h for h in self.holders if not _is_machinery(h)),
            places=tuple(p for p in self.places if not _is_passing(p)),
        )
        return dataclasses.replace(found, hints=hints.hints(found))


def _is_passing(place: GrownPlace) -> bool:
    """Pytest's own, or a variable of a caller that a kept frame shows."""
    return place.owner == "pytest" or ".f_back" in place.path


def _is_machinery(holder: Holder) -> bool:
    if holder.root is Root.PYTEST or holder.path.startswith(_PYTEST):
        return True
    is_loose = holder.root in (Root.NATIVE, Root.UNKNOWN)
    return is_loose and "." not in holder.type_name


class Collector:
    """Gathers evidence over a few runs of one test.

    ```
    collector = Collector("full")
    collector.begin()
    for _ in range(4): rerun()
    evidence = collector.end(runs=4)
    ```

    `light` looks at objects, containers and block identities, and slows nothing down;
    `full` traces allocations as well; `native` records native stacks with memray and
    nothing else, for a leak of which `full` found no Python object.

    The caller settles the process and calls `gc.unfreeze` before `begin`; between
    `begin` and `end` the collector does not list older objects. A collector is used
    once; `abandon` ends it without a result.

    Args:
        level: how much to pay.
        domains: traces device allocations on the way, e.g. `tracemalloc_ext`.
        seconds: how long the search for holders, and that for places, may take.
    """

    def __init__(
        self,
        level: Level = "full",
        domains: DomainTracing | None = None,
        seconds: float = 2.0,
    ) -> None:
        self._level = level
        self._seconds = seconds
        self._domains = domains if level == "full" else None
        self._stops_domains = False
        self._tracing = Tracing() if level == "full" else None
        self._native = NativeTracing() if level == "native" else None
        self._history = device_blocks.History()
        self._descriptors = creations.Descriptors()
        self._nursery = newborn.Nursery()
        self._places: Places | None = None
        self._blocks: dict[device_blocks.Identity, device_blocks.Block] = {}
        self._is_open = False

    def begin(self) -> None:
        """Note what exists, and start tracing.

        Raises:
            MissingDependency: level `native` without memray.
        """
        gc.collect()
        if self._native is not None:
            self._native.begin()
            return
        if self._tracing is not None:
            self._history.begin()  # before the census: torch imports a lot for it
        self._blocks = device_blocks.look()
        self._places = Places.take()
        self._descriptors.begin()
        if self._tracing is not None:
            self._tracing.begin()
        if self._domains is not None and not self._domains.is_tracking():
            self._stops_domains = True
            self._domains.start()
        self._is_open = True
        self._nursery.open()  # last: what is ours is there already

    def end(self, runs: int) -> Evidence:
        """Look at what stayed, and leave nothing of ours behind.

        Args:
            runs: how often the test ran since `begin`.
        """
        if self._native is not None:
            native_sites = self._native.end(runs)
            found = Evidence(level="native", runs=runs, native_sites=native_sites)
            return dataclasses.replace(found, hints=hints.hints(found))
        return self._end_of_objects(runs)

    def _end_of_objects(self, runs: int) -> Evidence:
        ours = set(map(id, self._descriptors.containers))
        born = [each for each in self._nursery.close() if id(each) not in ours]
        self._is_open = False
        descriptors = self._descriptors.end()
        created = creations.find(born, descriptors, runs)
        sites, notes = self._end_tracing(runs)
        chosen = newborn.representatives(born, runs)
        counts = newborn.census(born, runs)
        found = holders.find(chosen, [born], self._seconds)
        del born, chosen
        places = self._grown_places(runs)
        # Last: torch imports a lot to put names to the stacks it has recorded.
        blocks = device_blocks.grown(self._blocks, device_blocks.look(), runs)
        self._history.end()
        evidence = Evidence(
            level=self._level,
            runs=runs,
            sites=sites,
            device_sites=blocks,
            born=counts,
            holders=found,
            places=places,
            creations=created,
            notes=tuple(note for note in notes if note),
        )
        return dataclasses.replace(evidence, hints=hints.hints(evidence))

    def _grown_places(self, runs: int) -> tuple[GrownPlace, ...]:
        census, self._places = self._places, None
        if census is None:
            return ()
        return census.grown(runs, self._seconds, self._descriptors.containers)

    def _end_tracing(self, runs: int) -> tuple[tuple[Site, ...], tuple[str, ...]]:
        notes = [self._nursery.note, self._history.note]
        if self._tracing is None:
            return (), tuple(notes)
        ours = self._domains.labels() if self._domains is not None else {}
        labels = _KNOWN_DOMAINS | ours
        sites = self._tracing.end(runs, labels)
        notes.append(self._tracing.note)
        self._stop_domains()
        return sites, tuple(notes)

    def _stop_domains(self) -> None:
        """Stop what `begin` started; the user's own goes on."""
        if self._domains is not None and self._stops_domains:
            self._domains.stop()
        self._stops_domains = False

    def abandon(self) -> None:
        """End without a result: a run was broken off. After `end`, do nothing."""
        self._descriptors.end()
        if self._native is not None:
            self._native.end(1)
        if self._is_open:
            self._nursery.close()
            self._is_open = False
        self._stop_domains()
        if self._tracing is not None:
            self._tracing.abandon()
        self._history.end()
        self._places = None
