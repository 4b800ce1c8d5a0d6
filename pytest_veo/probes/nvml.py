"""NVIDIA's management library: what the driver books, for us and for the device.

The figure that matters is this process's bytes on each device it has a CUDA context
on: contexts, modules, streams, raw `cudaMalloc`, everything that no framework's
allocator reports. It is trusted only after a self-test: inside a container the
driver lists the process ids of the host, and our own is not among them. (A process
of the host that happens to have our number would pass for us: one more reason why
this rung alone never proves a leak.)

Device-wide use comes with it because it is the cheaper question. While it has not
moved, the process list is not asked for again at a glance.
"""

from __future__ import annotations

import os
import sys

from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Reading
from pytest_veo.memory.snapshot import Rung
from pytest_veo.probes.cuda_driver import CudaDriver
from pytest_veo.probes.cuda_driver import DriverWatch
from pytest_veo.probes.gauges import Gauge
from pytest_veo.probes.gauges import GaugedProbe
from pytest_veo.probes.nvml_library import NvmlCard
from pytest_veo.probes.nvml_library import NvmlLibrary
from pytest_veo.probes.nvml_library import Unlisted
from pytest_veo.probes.nvml_library import explain
from pytest_veo.probes.nvml_library import is_fault
from pytest_veo.units import Unit


_PAGE = 2 << 20
"""The driver hands out device memory in pages of this size."""
_NEVER = sys.maxsize
"""Gate of figures that are context, not evidence."""
_SELF_TESTS = 8
"""Glances on which a process that is not listed is looked for again."""
_UNLISTED = (
    "the driver does not list this process; in a container, share the host's process "
    "ids (--pid=host)"
)


class NvmlProbe(GaugedProbe):
    """Counters of every device on which this process holds a CUDA context."""

    name = "nvml"

    def __init__(self, watch: DriverWatch | None = None) -> None:
        super().__init__()
        self._watch = watch or DriverWatch()
        self._start_over()

    def is_active(self) -> bool:
        """Whether this process holds a CUDA context, whoever made it."""
        if self._pid != os.getpid():
            self._start_over()  # a forked child: the parent's library is not ours
        return bool(self._cards) or self._watch.has_any_context()

    def read(self) -> tuple[Reading, ...]:
        """Every figure, the process lists asked afresh."""
        self._forget_lists()
        return super().read()

    def close(self) -> None:
        """Give the library back."""
        library = self._library
        is_ours = self._pid == os.getpid()
        self._start_over()
        if library is not None and is_ours:
            library.close()

    def _bring_to_rest(self) -> None:
        self._forget_lists()

    def _forget_lists(self) -> None:
        for card in self._cards:
            card.forget()

    def _start_over(self) -> None:
        self._forget()
        self._pid = os.getpid()
        self._library: NvmlLibrary | None = None
        self._unseen: tuple[int, ...] | None = None
        self._cards: tuple[NvmlCard, ...] = ()
        self._untested: dict[NvmlCard, tuple[int, int]] = {}

    def _reason(self, error: Exception) -> str:
        return explain(error)

    def _is_fault(self, error: Exception) -> bool:
        return is_fault(error)

    def _discover(self) -> None:
        driver = self._watch.driver()
        if driver is None:
            return
        if self._library is None:
            self._library = NvmlLibrary()
        if self._unseen is None:
            self._unseen = tuple(range(driver.device_count()))
        for ordinal in self._unseen:
            if driver.has_context(ordinal):
                self._unseen = tuple(left for left in self._unseen if left != ordinal)
                self._add_card(self._library, driver, ordinal)
        for card in tuple(self._untested):
            self._test_self(driver, card)

    def _add_card(self, library: NvmlLibrary, driver: CudaDriver, ordinal: int) -> None:
        device = driver.device_name(ordinal)
        try:
            card = NvmlCard(library, device, self._pid)
        except Exception as error:  # NVML's errors share no base with our own
            self._report(explain(error), device, is_error=is_fault(error))
            return
        self._cards = (*self._cards, card)
        self._add_quick(Gauge((_device_used(card),), lambda: (card.used(),)))
        self._untested[card] = (ordinal, _SELF_TESTS)

    def _test_self(self, driver: CudaDriver, card: NvmlCard) -> None:
        """Watch this process's bytes once its own number was seen in the list."""
        ordinal, tests_left = self._untested.pop(card)

        def take() -> tuple[int, ...]:
            try:
                return (card.own(),)
            except Unlisted:
                if driver.has_context(ordinal):
                    raise
                return (0,)  # the context is gone, and all it had with it

        try:
            card.own()
        except Unlisted:
            self._report(_UNLISTED, card.name, "process")
            if tests_left > 1:
                self._untested[card] = (ordinal, tests_left - 1)
        except Exception as error:  # NVML's errors share no base with our own
            self._report(explain(error), card.name, "process", is_error=is_fault(error))
        else:
            self._retract(_UNLISTED, card.name)
            self._add_quick(Gauge((_process(card),), take))


def _process(card: NvmlCard) -> Counter:
    return Counter(
        probe=NvmlProbe.name,
        name="process",
        unit=Unit.BYTES,
        device=card.name,
        rung=Rung.DRIVER,
        exact=False,
        step=_PAGE,
    )


def _device_used(card: NvmlCard) -> Counter:
    """The name tells the versions of the query apart, so that no archive mixes them."""
    return Counter(
        probe=NvmlProbe.name,
        name="device_used_and_reserved" if card.counts_reserved else "device_used",
        unit=Unit.BYTES,
        device=card.name,
        rung=Rung.DEVICE,
        exact=False,
        gate=_NEVER,
        step=_PAGE,
    )
