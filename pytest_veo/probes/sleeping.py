"""A probe that costs nothing until its framework is there.

Its file is imported, and it is opened, when a module that it waits for turns up in
`sys.modules` (or a library in the process). Until then it has nothing to say.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from pytest_veo.errors import ProbeUnavailable
from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Reading
from pytest_veo.memory.snapshot import Trouble
from pytest_veo.probes.base import Probe


class SleepingProbe:
    """Stands for a probe until it is woken, then passes everything on to it."""

    def __init__(
        self,
        name: str,
        make: Callable[[], Probe],
        modules: tuple[str, ...],
        also: Callable[[], bool] = lambda: False,
    ) -> None:
        """Asleep.

        Args:
            name: the probe's.
            make: makes it.
            modules: names in `sys.modules` that wake it.
            also: another reason to wake.
        """
        self.name = name
        self._make = make
        self._modules = modules
        self._also = also
        self._probe: Probe | None = None
        self._troubles: tuple[Trouble, ...] = ()
        self.is_asleep = True
        """Whether nothing has woken it so far."""

    @property
    def counters(self) -> tuple[Counter, ...]:
        """The probe's; none while it sleeps."""
        return self._probe.counters if self._probe is not None else ()

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """The probe's; none while it sleeps."""
        return self._probe.troubles if self._probe is not None else self._troubles

    def open(self) -> None:
        """Nothing to do before it wakes."""

    def is_active(self) -> bool:
        """Whether it is awake and has something to read."""
        probe = self._probe
        if probe is not None:
            return probe.is_active()
        loaded = sys.modules
        for module in self._modules:
            if module in loaded:
                return self._wake()
        return self._also() and self._wake()

    def _wake(self) -> bool:
        if self._troubles:
            return False
        probe = self._make()
        try:
            probe.open()
        except ProbeUnavailable as unavailable:
            self._troubles = (Trouble(self.name, unavailable.reason),)
            self.is_asleep = False
            return False
        self._probe = probe
        self.is_asleep = False
        return probe.is_active()

    def glance(self) -> tuple[int, ...]:
        """The probe's."""
        return self._probe.glance() if self._probe is not None else ()

    def settle(self) -> None:
        """The probe's."""
        if self._probe is not None:
            self._probe.settle()

    def read(self) -> tuple[Reading, ...]:
        """The probe's."""
        return self._probe.read() if self._probe is not None else ()

    def close(self) -> None:
        """The probe's, if it ever woke."""
        if self._probe is not None:
            self._probe.close()
