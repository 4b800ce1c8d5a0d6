"""The body of a probe that counts live objects by type, at `read` only."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping

from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Reading
from pytest_veo.probes.gauges import Gauge
from pytest_veo.probes.gauges import GaugedProbe
from pytest_veo.probes.live_objects import count_live
from pytest_veo.probes.live_objects import is_countable
from pytest_veo.units import Unit


_FROZEN = "objects put aside by gc.freeze() are not counted"


class CountedTypesProbe(GaugedProbe):
    """Counts the objects of types that are imported, all in one walk."""

    places: Mapping[str, tuple[str, str]] = {}
    """Counter to the module and the attribute of the type it counts."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[str, type] = {}
        self._frozen_before = 0
        self._is_frozen = False

    def open(self) -> None:
        """Note how many objects the interpreter itself has put aside."""
        self._frozen_before = gc.get_freeze_count()

    def glance(self) -> tuple[int, ...]:
        """Nothing: to count is to walk every object there is."""
        return ()

    def read(self) -> tuple[Reading, ...]:
        """The number of live objects of each type."""
        if not self._is_frozen and gc.get_freeze_count() > self._frozen_before:
            # Told for good: to ask walks all that is put aside, 70 ms with PyTorch.
            self._is_frozen = True
            self._report(_FROZEN)
        return super().read()

    def close(self) -> None:
        """Let go of the types."""
        super().close()
        self._kinds = {}
        self._is_frozen = False

    def _discover(self) -> None:
        missing = self.places.keys() - self._kinds.keys()
        found = {
            name: kind
            for name, kind in ((name, _type_at(self.places[name])) for name in missing)
            if kind is not None
        }
        if not found:
            return
        self._kinds |= found
        for name, kind in found.items():
            if not is_countable(kind):
                reason = f"Python's collector does not list objects of {kind.__name__}"
                self._report(reason, counter=name)
        names = [name for name in self.places if name in self._kinds]
        counted = [name for name in names if is_countable(self._kinds[name])]
        kinds = tuple(self._kinds[name] for name in counted)
        counters = tuple(
            Counter(probe=self.name, name=name, unit=Unit.COUNT) for name in counted
        )
        self._slow = (Gauge(counters, lambda: count_live(kinds)),)


def _type_at(place: tuple[str, str]) -> type | None:
    """The type, if its module is imported; runs no code of the module."""
    module_name, attribute = place
    module = sys.modules.get(module_name)
    kind = getattr(module, "__dict__", {}).get(attribute)
    return kind if isinstance(kind, type) else None
