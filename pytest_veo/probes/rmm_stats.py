"""RMM's own statistics, where the user's memory resource keeps any.

A plain resource counts nothing. `rmm.statistics.enable_statistics()` or an adaptor
that tracks, anywhere in the chain of resources, makes the figures appear.
"""

from __future__ import annotations

import sys
from typing import Any

from pytest_veo.probes.cuda_driver import DriverWatch
from pytest_veo.probes.gauges import Gauge
from pytest_veo.probes.gauges import GaugedProbe
from pytest_veo.probes.gauges import Unreadable
from pytest_veo.units import Unit


_NO_STATISTICS = (
    "the device's resource keeps no statistics: rmm.statistics.enable_statistics()"
)
_LONGEST_CHAIN = 16


class RmmStatsProbe(GaugedProbe):
    """Counters of the counting adaptor of every device with a context."""

    name = "rmm"

    def __init__(self, watch: DriverWatch | None = None) -> None:
        super().__init__()
        self._watch = watch or DriverWatch()
        self._watched: set[int] = set()

    def is_active(self) -> bool:
        """Whether RMM is imported and this process holds a CUDA context."""
        return "rmm" in sys.modules and self._watch.has_any_context()

    def close(self) -> None:
        """Let go of the gauges."""
        super().close()
        self._watched = set()

    def _discover(self) -> None:
        driver = self._watch.driver()
        if driver is None:
            return
        for ordinal in range(driver.device_count()):
            if ordinal in self._watched or not driver.has_context(ordinal):
                continue
            device = driver.device_name(ordinal)
            adaptor = _counting_adaptor(ordinal)
            if adaptor is None:
                self._report(_NO_STATISTICS, device)
                continue
            self._retract(_NO_STATISTICS, device)
            self._watched.add(ordinal)
            self._add_adaptor(ordinal, id(adaptor), device, _counts_calls(adaptor))

    def _add_adaptor(
        self, ordinal: int, identity: int, device: str, counts_calls: bool
    ) -> None:
        """Watch one adaptor, found anew each time: to keep it would keep its memory."""

        def adaptor() -> Any:
            found = _counting_adaptor(ordinal)
            if id(found) != identity:
                raise Unreadable("the device's resource was replaced")
            return found

        def statistics() -> tuple[int, ...]:
            counts = adaptor().allocation_counts
            return _figure(counts, "current_bytes"), _figure(counts, "current_count")

        def tracked() -> tuple[int, ...]:
            return (adaptor().get_allocated_bytes(),)

        allocated = self._live("allocated", device)
        if counts_calls:
            allocations = self._live("allocations", device, Unit.COUNT)
            self._add_quick(Gauge((allocated, allocations), statistics))
        else:
            self._add_quick(Gauge((allocated,), tracked))


def _counting_adaptor(ordinal: int) -> Any | None:
    """The first resource of the device's chain that counts, calls rather than bytes."""
    chain = _chain(sys.modules["rmm"].mr.get_per_device_resource(ordinal))
    for resource in chain:
        if _counts_calls(resource):
            return resource
    for resource in chain:
        if hasattr(type(resource), "get_allocated_bytes"):
            return resource
    return None


def _chain(resource: Any) -> list[Any]:
    """The resource and those it draws on."""
    chain = [resource]
    while hasattr(type(chain[-1]), "get_upstream") and len(chain) < _LONGEST_CHAIN:
        chain.append(chain[-1].get_upstream())
    return chain


def _counts_calls(resource: Any) -> bool:
    return hasattr(type(resource), "allocation_counts")


def _figure(counts: Any, name: str) -> int:
    """Older versions answer with a dictionary, newer ones with an object."""
    value: int = counts[name] if isinstance(counts, dict) else getattr(counts, name)
    return value
