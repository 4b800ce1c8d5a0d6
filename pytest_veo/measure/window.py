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
from pytest_veo.memory.diff import diff
from pytest_veo.memory.snapshot import Kind
from pytest_veo.probes.host import RSS


if TYPE_CHECKING:
    from pytest_veo.measure.meter import Meter
    from pytest_veo.memory.diff import Diff
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
        self._rss_peak: int | None = None

    def __enter__(self) -> Self:
        self._meter.settle()
        _restart_rss_peak()
        self._before = self._meter.read()
        return self

    def __exit__(self, *_: object) -> None:
        self._rss_peak = _rss_peak_bytes()
        self._meter.settle()
        self._after = self._meter.read()

    def _diff(self) -> Diff:
        if self._before is None or self._after is None:
            raise RuntimeError(
                f"veo_memory window {self.name!r} has not ended: ask after the block"
            )
        return diff(self._before, self._after)

    def growth(self, counter: str, device: str | None = None) -> int:
        """After minus before of `probe.name`, in its unit.

        Args:
            counter: such as `torch.allocated` or `host.heap`.
            device: one device's name; all devices together without it.

        Raises:
            BadSetting: the counter was not read; the message names those that were.
        """
        change = self._diff().change(counter, device)
        if change is None:
            raise BadSetting(self._unknown(counter))
        return change

    def peak(self, counter: str, device: str | None = None) -> Peak:
        """The most of `probe.name` above its value at the window's start.

        Args:
            counter: such as `torch.allocated` or `host.rss`.
            device: one device's name; all devices together without it.

        Raises:
            BadSetting: the counter was not read; the message names those that were.
        """
        self._diff()
        assert self._before is not None
        assert self._after is not None
        start = self._before.value(counter, device)
        end = self._after.value(counter, device)
        if end is None:
            raise BadSetting(self._unknown(counter))
        start = start or 0
        if counter == RSS.key and self._rss_peak is not None:
            above = max(self._rss_peak, end) - start
            return Peak(max(0, above), max(0, above))
        return _between(
            start,
            end,
            _recorded(self._before, counter, device),
            _recorded(self._after, counter, device),
        )

    def _unknown(self, counter: str) -> str:
        assert self._after is not None
        known = sorted({reading.counter.key for reading in self._after.readings})
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


def _restart_rss_peak() -> None:
    """Let the kernel's high-water mark of resident memory begin anew (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _rss_peak_bytes() -> int | None:
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
        self.windows: list[MemoryWindow] = []

    def window(self, name: str) -> MemoryWindow:
        """A window to be used in a `with` statement.

        ```python
        with veo_memory.window("decode") as w:
            decode(clip)
        assert w.growth("torch.allocated") == 0
        ```
        """
        window = MemoryWindow(name, self._meter)
        self.windows.append(window)
        return window
