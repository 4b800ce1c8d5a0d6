"""The common body of a probe: gauges, each read by one call, each lost alone.

A probe of a library we do not own calls code that may fail in any way: a lost
device, a function an older version lacks, a stub that a test has put into
`sys.modules`. Whatever happens, a figure is a whole number or it is taken off the
list and its reason is kept. It never comes back later in the session: a counter
that vanished at 3 GiB and returned would look like growth of 3 GiB.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable

from pytest_veo.memory.snapshot import HOST
from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Reading
from pytest_veo.memory.snapshot import Rung
from pytest_veo.memory.snapshot import Trouble
from pytest_veo.units import Unit


_REASON_LENGTH = 200


class Unreadable(Exception):
    """A figure cannot be read, for a reason of ours, told in full."""


class Gauge:
    """Counters that one call to the source answers together."""

    __slots__ = ("counters", "take", "worked")

    def __init__(
        self, counters: Iterable[Counter], take: Callable[[], tuple[int, ...]]
    ) -> None:
        self.counters = tuple(counters)
        self.take = take
        self.worked = False
        """Whether it was ever read: a later failure is an error, not a nature."""


class GaugedProbe:
    """A probe made of gauges. A source of its own adds them in `_discover`."""

    name = ""

    def __init__(self) -> None:
        self.counters: tuple[Counter, ...] = ()
        self.troubles: tuple[Trouble, ...] = ()
        self._quick: tuple[Gauge, ...] = ()
        self._slow: tuple[Gauge, ...] = ()
        self._can_discover = True

    def open(self) -> None:
        """Nothing to get ready; the source is looked at once it is active."""

    def is_active(self) -> bool:
        """Whether the user has imported and initialised the source."""
        raise NotImplementedError

    def glance(self) -> tuple[int, ...]:
        """The quick gauges, in the order of `counters`."""
        self._look_around()
        while True:
            quick = self._quick
            values: list[int] = []
            for gauge in quick:
                values += self._take(gauge)
            if quick is self._quick:
                return tuple(values)
            # A gauge was lost, and may have taken others of its device with it.

    def settle(self) -> None:
        """Bring the source to rest; what fails is a trouble, never an exception."""
        try:
            self._bring_to_rest()
        except Exception as error:  # the source is not ours: any failure is its answer
            self._report(f"settling failed: {self._reason(error)}", is_error=True)

    def read(self) -> tuple[Reading, ...]:
        """Every gauge, the quick ones first."""
        self._look_around()
        taken = [(gauge, self._take(gauge)) for gauge in (*self._quick, *self._slow)]
        standing = {*self._quick, *self._slow}
        return tuple(
            Reading(counter, value)
            for gauge, values in taken
            if gauge in standing
            for counter, value in zip(gauge.counters, values, strict=True)
        )

    def close(self) -> None:
        """Let go of the gauges, and with them of the source."""
        self._forget()

    def _discover(self) -> None:
        """Add gauges for what has appeared since the last look."""

    def _bring_to_rest(self) -> None:
        """Wait and flush; a source without deferred work needs nothing."""

    def _reason(self, error: Exception) -> str:
        return reason_of(error)

    def _is_fault(self, error: Exception) -> bool:
        """Whether an error met at the first reading is more than a missing feature."""
        return False

    def _live(
        self,
        name: str,
        device: str,
        unit: Unit = Unit.BYTES,
        *,
        exact: bool = True,
        step: int = 1,
    ) -> Counter:
        """A counter of what is handed out: any growth of it is followed up."""
        return Counter(
            probe=self.name,
            name=name,
            unit=unit,
            device=device,
            exact=exact,
            step=step,
            always=True,
        )

    def _held(
        self,
        name: str,
        device: str,
        unit: Unit = Unit.BYTES,
        *,
        gate: int = 0,
        step: int = 1,
    ) -> Counter:
        """A counter of what is kept for later: it grows with use."""
        return Counter(
            probe=self.name,
            name=name,
            unit=unit,
            device=device,
            rung=Rung.HELD,
            exact=False,
            gate=gate,
            step=step,
        )

    def _add_quick(self, gauge: Gauge) -> None:
        self._quick = (*self._quick, gauge)
        self.counters = (*self.counters, *gauge.counters)

    def _add_slow(self, gauge: Gauge) -> None:
        self._slow = (*self._slow, gauge)

    def _report(
        self,
        reason: str,
        device: str = HOST,
        counter: str = "",
        *,
        is_error: bool = False,
    ) -> None:
        """Keep a trouble, once."""
        trouble = Trouble(self.name, reason, device, counter, is_error)
        if trouble not in self.troubles:
            self.troubles = (*self.troubles, trouble)

    def _retract(self, reason: str, device: str = HOST) -> None:
        """Drop a trouble that is over."""
        if not self.troubles:
            return
        self.troubles = tuple(
            trouble
            for trouble in self.troubles
            if (trouble.reason, trouble.device) != (reason, device)
        )

    def _look_around(self) -> None:
        if not self._can_discover:
            return
        try:
            self._discover()
        except Exception as error:  # the source is not ours: any failure is its answer
            self._can_discover = False
            self._report(self._reason(error), is_error=bool(self._quick))

    def _take(self, gauge: Gauge) -> tuple[int, ...]:
        """The gauge's values; none when it failed and is lost."""
        try:
            values = gauge.take()
        except Exception as error:  # the source is not ours: any failure is its answer
            is_error = gauge.worked or self._is_fault(error)
            self._lose(gauge, self._reason(error), is_error=is_error)
            return ()
        for value in values:
            if type(value) is not int or value < 0:
                reason = f"{value!r:.40} is no count"
                self._lose(gauge, reason, is_error=gauge.worked)
                return ()
        gauge.worked = True
        return values

    def _lose(self, gauge: Gauge, reason: str, *, is_error: bool) -> None:
        """Take a gauge off the list; one of several counters is its whole device."""
        first = gauge.counters[0]
        if len(gauge.counters) > 1:
            self._lose_device(first.device, reason, is_error=is_error)
            return
        self._keep(lambda kept: kept is not gauge)
        self._report(reason, first.device, first.name, is_error=is_error)

    def _lose_device(self, device: str, reason: str, *, is_error: bool = True) -> None:
        self._keep(lambda kept: kept.counters[0].device != device)
        self._report(reason, device, is_error=is_error)

    def _keep(self, is_kept: Callable[[Gauge], bool]) -> None:
        quick = tuple(filter(is_kept, self._quick))
        self._slow = tuple(filter(is_kept, self._slow))
        if len(quick) != len(self._quick):
            self._quick = quick
            self.counters = tuple(
                counter for gauge in quick for counter in gauge.counters
            )

    def _forget(self) -> None:
        self._quick = ()
        self._slow = ()
        self.counters = ()
        self.troubles = ()
        self._can_discover = True


def reason_of(error: Exception) -> str:
    """The error as one line: its class and the first line of its message."""
    if isinstance(error, Unreadable):
        return str(error)
    kind = type(error).__name__
    lines = str(error).strip().splitlines()
    return f"{kind}: {lines[0][:_REASON_LENGTH]}" if lines else kind
