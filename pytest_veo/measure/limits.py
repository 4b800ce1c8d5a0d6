"""How far the re-runs of one suspect may go."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import NamedTuple

from pytest_veo.budget import Level
from pytest_veo.measure.gate import any_large
from pytest_veo.measure.gate import is_next_arena
from pytest_veo.memory.snapshot import Counter
from pytest_veo.probes.host import BLOCKS
from pytest_veo.probes.host import HEAP


if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_veo.budget import LeakBudget
    from pytest_veo.measure.confirm import Confirmed
    from pytest_veo.measure.gate import Suspicion


FAST_RUNS = 600
"""Re-runs of a suspect at most."""
DEEP_RUNS = 4096
"""The same at level deep."""
MOST_QUIET_RUNS = 12
QUIET_NS = 20_000_000
"""Time that re-runs without any growth may take before they clear a test."""
DEEP_QUIET_NS = 100_000_000
"""The same at level deep."""
FILL_NS = 1_000_000_000
"""Time that filling a bounded place may take, to see whether growth ends then."""
DEEP_FILL_NS = 5_000_000_000
"""The same at level deep."""
LEAST_SMALL_NS = 1_000_000_000
"""Time that confirming small growth, once begun, may always take."""
OVERDRAFT_NS = 8_000_000_000
"""By so much it may overdraw the credit: one that has begun is seen to its end, but
not many."""


class Limits(NamedTuple):
    """How far confirming may go."""

    most_runs: int
    time_ns: int
    patience_ns: int = 0
    """How long to look for the end of steady growth: a cache fills, a leak does not."""
    patience_runs: int = 0
    runs_in_time: int = 0
    """The most where a time has to pass, however short a run is."""
    suspects: frozenset[Counter] | None = None
    """The counters that must be decided; each is done with once it was seen flat, for
    noisy ones are seldom all flat at once. None: all, together."""
    quiet_runs: int = 3
    """So many in a row without growth clear a counter."""
    quiet_ns: int = 0
    """If that many take less, as many as it has room for do, up to `MOST_QUIET_RUNS`:
    a buffer that is enlarged by an eighth grows ever more seldom."""
    fill_ns: int = 0
    """Time that filling a bounded place may take."""
    small_ns: int | None = None
    """Time that confirming small growth may take; None: as much as any."""

    def quiet_runs_of(self, run_ns: int) -> int:
        """How many quiet runs clear a counter, if one takes so long."""
        room = self.quiet_ns // max(1, run_ns)
        return max(self.quiet_runs, min(MOST_QUIET_RUNS, room))


def patient(limits: Limits, shown: Confirmed) -> Limits:
    """As many quiet runs as show that what grew now and then has stopped."""
    quiet_runs = max(limits.quiet_runs, 2 * shown.longest_pause)
    return limits._replace(quiet_runs=quiet_runs)


def lasting(limits: Limits, time_ns: int) -> Limits:
    """So long as steady growth has to be looked at, however short a run is."""
    return limits._replace(
        patience_ns=max(limits.patience_ns, time_ns),
        patience_runs=limits.runs_in_time,
        most_runs=limits.runs_in_time,
    )


def limits_of(
    budget: LeakBudget,
    suspicions: Sequence[Suspicion],
    *,
    is_experienced: bool,
    credit_ns: int,
) -> Limits:
    """How far re-runs of a suspect may go.

    Args:
        budget: its test's.
        suspicions: counters above their gates.
        is_experienced: whether suspicions of this session have come to nothing before.
        credit_ns: what confirming may still take.
    """
    deep = budget.level is Level.DEEP
    allowed = DEEP_RUNS if budget.reruns is None else min(DEEP_RUNS, budget.reruns)
    is_hasty = not deep and is_experienced and not any_large(suspicions)
    hasty_runs = 1 if is_hasty else 2
    # Every process that keeps anything comes to its next arena now and then.
    is_hasty |= not deep and all(map(is_next_arena, suspicions))
    suspects = [suspicion.counter for suspicion in suspicions]
    if not is_hasty:  # while we look, a little growth of these is seen, too
        suspects += (BLOCKS, HEAP)
    return Limits(
        most_runs=allowed if deep else min(FAST_RUNS, allowed),
        time_ns=budget.confirm_time_ns,
        patience_ns=2_000_000_000 if deep else 150_000_000,
        patience_runs=1500 if deep else 300,
        runs_in_time=allowed,
        suspects=None if deep else frozenset(suspects),
        quiet_runs=3 if deep else hasty_runs,
        quiet_ns=DEEP_QUIET_NS if deep else 0 if is_hasty else QUIET_NS,
        fill_ns=DEEP_FILL_NS if deep else FILL_NS,
        small_ns=None if deep else max(LEAST_SMALL_NS, credit_ns + OVERDRAFT_NS),
    )
