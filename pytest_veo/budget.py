"""What a test may use: tolerances of growth and limits of peaks."""

from __future__ import annotations

import datetime
import enum
import fnmatch
from typing import NamedTuple


class Level(enum.Enum):
    """How closely tests are looked at."""

    OFF = "off"
    FAST = "fast"
    """Cheap figures around every test; suspects are run again."""
    DEEP = "deep"
    """Every test is run again and judged down to one block or handle."""


class Tolerance(NamedTuple):
    """Growth a run that is let pass, in the counter's unit."""

    pattern: str
    """`probe.name`, or a shell pattern such as `torch.*`."""
    growth: int

    def covers(self, key: str) -> bool:
        """Whether the pattern means the counter `probe.name`."""
        return fnmatch.fnmatchcase(key, self.pattern)


class Allowance(NamedTuple):
    """A known leak, let pass with a reason until a date."""

    reason: str
    until: datetime.date | None = None


class LeakBudget(NamedTuple):
    """How one test's growth is judged."""

    level: Level = Level.FAST
    tolerances: tuple[Tolerance, ...] = ()
    """The first that covers a counter holds."""
    counters: tuple[str, ...] = ()
    """Patterns of the counters that are judged; empty: all."""
    reruns: int | None = None
    """Most confirming runs; 0: none are allowed; None: as many as it takes."""
    allowance: Allowance | None = None
    retention_limit_bytes: int | None = None
    """Retention above this fails; None: retention never fails."""
    confirm_time_ns: int = 30_000_000_000
    """Most time that confirming one test may take."""

    def judges(self, key: str) -> bool:
        """Whether the counter `probe.name` is judged at all."""
        return not self.counters or any(
            fnmatch.fnmatchcase(key, pattern) for pattern in self.counters
        )

    def tolerated(self, key: str) -> int:
        """Growth a run of `probe.name` that is let pass."""
        for tolerance in self.tolerances:
            if tolerance.covers(key):
                return tolerance.growth
        return 0


class MemoryBudget(NamedTuple):
    """Limits on one counter while a test runs."""

    on: str
    """`probe.name`."""
    peak_bytes: int | None = None
    growth_bytes: int | None = None
