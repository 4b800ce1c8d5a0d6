"""A named stretch of a test, with what grew in it and how high it rose.

Peaks are read without touching the user's own peak counters. Where a library keeps one
running peak, the window's is known exactly only if it set a new record; else it lies
between what was seen and the old record, and says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from typing import NamedTuple
from typing import Self

from pytest_veo.errors import BadSetting
from pytest_veo.memory.snapshot import Kind
from pytest_veo.probes.host import RSS


if TYPE_CHECKING:
    from pytest_veo.measure.meter import Meter
    from pytest_veo.memory.snapshot import Snapshot


class Peak(NamedTuple):
    """The most that was in use above the window's start, in the counter's unit."""

    least: int
    """It was at least this."""
    most: int | None
    """It was at most this; None: nothing is known."""

    @property
    def is_exact(self) -> bool:
        """Whether both bounds are the same."""
        return self.least == self.most


class MemoryWindow:
    """What happened to memory while the `with` block ran."""

    def __init__(self, name: str, meter: Meter) -> None:
        self.name = name
        self._meter = meter
        self._before: Snapshot | None = None
        self._after: Snapshot | None = None
        self._rss_records: tuple[int | None, int | None] = (None, None)

    def __enter__(self) -> Self:
        self._meter.settle()
        self._rss_records = (_restart_rss_record(), None)
        self._before = self._meter.read()
        return self

    def __exit__(self, *_: object) -> None:
        self._rss_records = (self._rss_records[0], _rss_record_bytes())
        self._meter.settle()
        self._after = self._meter.read()

    def growth(self, counter: str, device: str | None = None) -> int:
        """After minus before of `probe.name`, in its unit.

        Args:
            counter: such as `torch.allocated` or `host.heap`.
            device: one device's name; all devices together without it.

        Raises:
            BadSetting: the counter was not read; the message names those that were.
        """
        before, after = self._ended()
        if after.value(counter, device) is None:
            raise BadSetting(self._unknown(counter, after))
        return after.change(before, counter, device)

    def peak(self, counter: str, device: str | None = None) -> Peak:
        """The most of `probe.name` above its value at the window's start.

        Args:
            counter: such as `torch.allocated` or `host.rss`.
            device: one device's name; all devices together without it.

        Raises:
            BadSetting: the counter was not read; the message names those that were.
        """
        growth = self.growth(counter, device)
        before, after = self._ended()
        end = after.value(counter, device) or 0
        start = end - growth
        if counter == RSS.key:
            old, new = self._rss_records
            # The kernel sums up what is resident a little late.
            new = None if new is None else max(new, start, end)
        else:
            old = _recorded(before, counter, device)
            new = _recorded(after, counter, device)
        peak = _between(start, end, old, new)
        if peak.is_exact and device is None and len(after.devices(counter)) > 1:
            # Devices need not have been at their peaks together.
            return Peak(max(0, growth), peak.most)
        return peak

    def _ended(self) -> tuple[Snapshot, Snapshot]:
        if self._before is None or self._after is None:
            raise RuntimeError(
                f"veo_memory window {self.name!r} has not ended: ask after the block"
            )
        return self._before, self._after

    def _unknown(self, counter: str, after: Snapshot) -> str:
        known = sorted({reading.counter.key for reading in after.readings})
        return (
            f"veo_memory window {self.name!r}: no counter {counter!r} was read, "
            f"there are {', '.join(known)}"
        )


def _recorded(snapshot: Snapshot, counter: str, device: str | None) -> int | None:
    """The running peak that the library keeps of the counter."""
    found = [
        reading.value
        for reading in snapshot.readings
        if reading.counter.kind is Kind.PEAK
        and reading.counter.key == f"{counter}_peak"
        and device in (None, reading.counter.device)
    ]
    return sum(found) if found else None


def _between(start: int, end: int, old: int | None, new: int | None) -> Peak:
    seen = max(0, end - start)
    if new is None:
        return Peak(seen, None)
    if old is None or new > old:
        return Peak(new - start, new - start)
    return Peak(seen, max(seen, new - start))


def _restart_rss_record() -> int | None:
    """Let the kernel's record of resident memory begin anew (Linux).

    Returns:
        None, or the record of old where it cannot be restarted.
    """
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return _rss_record_bytes()
    return None


def _rss_record_bytes() -> int | None:
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


class MemoryWindows:
    """The fixture `veo_memory`: opens windows by name."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def window(self, name: str) -> MemoryWindow:
        """A window to be used in a `with` statement.

        ```python
        with veo_memory.window("decode") as w:
            decode(clip)
        assert w.growth("torch.allocated") == 0
        ```
        """
        return MemoryWindow(name, self._meter)
