"""Stand-ins for tests of code that builds on pytest-veo: a probe that obeys.

    # conftest.py of the suite under test
    from pytest_veo.testing import ScriptedProbe

    PROBE = ScriptedProbe("fake", used=0)

    def pytest_veo_probes(config):
        return [PROBE]

A test that calls `PROBE.grow("used", 4096)` then leaks 4 KiB of `fake.used`.
"""

from __future__ import annotations

from pytest_veo.errors import ProbeUnavailable
from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Reading
from pytest_veo.memory.snapshot import Trouble
from pytest_veo.units import Unit


DEVICE = "GPU-00000000-0000-0000-0000-000000000000"
"""The device that a scripted probe reads, unless another is named."""


class ScriptedProbe:
    """A probe whose figures are what the test says, from `open` on."""

    def __init__(
        self,
        name: str,
        *,
        device: str = DEVICE,
        unavailable: str = "",
        **bytes_by_counter: int,
    ) -> None:
        """A probe with these counters, in bytes.

        Args:
            name: the word before the point in `fake.used`.
            device: what its counters belong to.
            unavailable: the reason why it cannot be opened; empty: it can.
            bytes_by_counter: each counter's name and first figure.
        """
        self.name = name
        self.counters = tuple(
            Counter(
                probe=name, name=counter, unit=Unit.BYTES, device=device, always=True
            )
            for counter in bytes_by_counter
        )
        self.troubles: tuple[Trouble, ...] = ()
        self._bytes = dict(bytes_by_counter)
        self._deferred = dict.fromkeys(bytes_by_counter, 0)
        self._unavailable = unavailable

    def grow(self, counter: str, size_bytes: int) -> None:
        """Let a counter rise, or fall if the size is below zero."""
        self._bytes[counter] += size_bytes

    def free_when_settled(self, counter: str, size_bytes: int) -> None:
        """Let a counter fall once the probe is asked to settle, as queues do."""
        self._deferred[counter] += size_bytes

    def lose(self, counter: str, reason: str) -> None:
        """Let a counter fail from now on: it becomes a trouble."""
        lost = next(known for known in self.counters if known.name == counter)
        self.counters = tuple(known for known in self.counters if known is not lost)
        self.troubles += (
            Trouble(self.name, reason, lost.device, counter, is_error=True),
        )

    def open(self) -> None:
        """Get ready, or say why not."""
        if self._unavailable:
            raise ProbeUnavailable(self.name, self._unavailable)

    def is_active(self) -> bool:
        """Always."""
        return True

    def glance(self) -> tuple[int, ...]:
        """The figures of `counters`."""
        return tuple(self._bytes[counter.name] for counter in self.counters)

    def settle(self) -> None:
        """Free what waits for it."""
        for counter, size_bytes in self._deferred.items():
            self._bytes[counter] -= size_bytes
            self._deferred[counter] = 0

    def read(self) -> tuple[Reading, ...]:
        """The figures, with their counters."""
        return tuple(
            Reading(counter, value)
            for counter, value in zip(self.counters, self.glance(), strict=True)
        )

    def close(self) -> None:
        """Nothing to let go of."""
