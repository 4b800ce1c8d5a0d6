"""The cyclic collector between tests: cheap, because most of the heap is put aside.

`gc.freeze` moves what lives now out of the collector's sight, so that a full pass after
each test looks at that test's own objects only. Reference counts work on as always.
What is frozen cannot be collected when a cycle of it dies, and `gc.get_objects` and
`gc.get_referrers` do not show it; so it is thawed, collected and frozen again at the
end of a module once that costs little beside the tests themselves.
"""

from __future__ import annotations

import gc
import time

from pytest_veo.evidence import frozen


_FULL_PASS_SHARE = 0.01
"""Full passes may take this share of the tests' own time."""
_FIRST_FULL_PASS_NS = 2_000_000_000
"""Time that tests have to take before the first full pass."""


class Collector:
    """Collects between tests; freezes only where it may."""

    def __init__(self, *, may_freeze: bool) -> None:
        self._may_freeze = may_freeze
        self._is_frozen = False
        self._full_cost_ns = int(_FIRST_FULL_PASS_NS * _FULL_PASS_SHARE)
        self._last_full_ns = 0
        self._counts = (0, 0, 0)
        """The collector's own, at the last look."""

    def born(self) -> int | None:
        """Objects made and not freed since the last look, when nothing is swept.

        Returns:
            None if the collector has run in between, and where nothing is put aside:
            who errs by this figure would have to collect the whole heap.
        """
        if not self._may_freeze:
            return None
        young, *older = self._counts
        self._counts = gc.get_count()
        now, *older_now = self._counts
        return now - young if older == older_now else None

    def sweep(self) -> int | None:
        """Collect what the last test left, put aside what it kept.

        Returns:
            Objects made and not freed since the last sweep; None if the collector has
            run in between.
        """
        young, middle, old = gc.get_count()
        gc.collect()
        gc.freeze()
        return None if middle or old else young

    def thaw(self) -> None:
        """Collect everything, what was put aside included."""
        is_users = bool(frozen.count()) and not self._may_freeze
        gc.unfreeze()
        gc.collect()
        if self._may_freeze or is_users:
            gc.freeze()
            self._is_frozen = self._may_freeze

    def let_go(self) -> None:
        """Give the collector the whole heap back, at the session's end."""
        if self._is_frozen:
            gc.unfreeze()
            self._is_frozen = False

    def rest(self, test_ns: int) -> None:
        """Collect at the end of a wider scope, everything if that is affordable.

        Args:
            test_ns: how long tests have run so far.
        """
        if not self._may_freeze:
            gc.collect(1)
            return
        if not self._is_frozen:
            # Young garbage only: a pass over all that pytest collected costs more
            # than it frees.
            gc.collect(1)
            gc.freeze()
            self._is_frozen = True
            return
        earned_ns = (test_ns - self._last_full_ns) * _FULL_PASS_SHARE
        if earned_ns > self._full_cost_ns:
            began = time.perf_counter_ns()
            self.thaw()
            self._full_cost_ns = time.perf_counter_ns() - began
            self._last_full_ns = test_ns
