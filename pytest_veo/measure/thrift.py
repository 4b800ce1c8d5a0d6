"""Whether Python's blocks are counted after a test, or taken as an idle test's.

To count them the interpreter walks every pool of its heap: 50 to 100 microseconds in a
process that has imported pytest, a sixth of an empty test. A test that left no more
objects to the collector than an idle one does, and no more native heap (which is read
always), can keep strings, bytes and numbers only, and few of them. So in a session
that has proved quiet, the blocks of such tests are counted as often as a share of the
tests' own time pays for, over several tests together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_veo.measure.gate import Idle


if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence


SHARE = 0.02
"""Of the tests' own time, for counting."""
_FIRST_TESTS = 128
"""Tests that are counted one by one before any is not."""
_ALARM_TESTS = 32
"""Tests that are counted one by one once several together have kept something."""
_DOUBT = 8
"""Blocks by which several tests together may miss the sum of their estimates."""
_FIRST_OF_KIND = 16
_MOST_TOGETHER = 32
_ALONE_EVERY = 4
"""Groups."""
_MANY = 8
"""Fewer tests together tell too little of what one costs."""
_SLACK = 2
"""Objects beyond an idle test's."""


class _Kind:
    """Tests that use so many fixtures."""

    __slots__ = ("alone", "objects", "seen", "uncounted")

    def __init__(self) -> None:
        self.objects = Idle(0)
        self.alone = 0.0
        """Blocks of an idle test that is counted, on average."""
        self.uncounted = 0.0
        """Of one that is not: the count itself leaves a block or two."""
        self.seen = 0

    def saw(self, newborn: int, blocks: int) -> None:
        """One that was counted alone, and was quiet."""
        self.objects.saw(newborn)
        self.seen += 1
        self.alone += (blocks - self.alone) / min(self.seen, _FIRST_OF_KIND)
        if self.seen <= _FIRST_OF_KIND:
            self.uncounted = self.alone

    def saw_together(self, blocks: int, others: int) -> None:
        """One that was counted, beside what others kept beyond their estimate."""
        self.uncounted += (blocks - self.alone) / (2 * max(others, _MANY))


class Thrift:
    """Keeps book of which tests' blocks were counted."""

    def __init__(self) -> None:
        self.is_counted = True
        """Whether the last test's blocks were counted."""
        self.others = 0
        """Tests before the last one that were counted together with it."""
        self._pending = 0
        self._groups = 0
        self._alone = _FIRST_TESTS
        self._must_count = False
        self._earned_ns = 0.0
        self._cost_ns = 0.0
        self._newborn: int | None = None
        self._kinds: dict[int, _Kind] = {}

    def may_skip(self, newborn: int | None, fixtures: int, test_ns: int) -> bool:
        """Whether this test's blocks may be taken as an idle test's.

        Args:
            newborn: objects for the collector that it made and did not free; None:
                nobody knows.
            fixtures: how many the test uses.
            test_ns: how long it took.
        """
        self._newborn = newborn
        self._earned_ns = min(self._earned_ns + test_ns * SHARE, 2 * self._cost_ns)
        kind = self._kinds.get(fixtures)
        return (
            self._earned_ns < self._cost_ns
            and self._alone <= 0
            and not self._must_count
            and self._pending < _MOST_TOGETHER
            and kind is not None
            and kind.seen >= _FIRST_OF_KIND
            and newborn is not None
            and newborn <= kind.objects.cost + _SLACK
        )

    def idle(self, blocks: int, fixtures: int) -> Callable[[], int]:
        """Instead of counting: as many as before, and what an idle test costs."""
        # Parts of one are carried on: they add up over many tests.
        cost = self._kinds[fixtures].uncounted
        told = int(cost * (self._pending + 1)) - int(cost * self._pending)
        self._pending += 1
        self.is_counted = False
        return lambda: blocks + told

    def counted(self, cost_ns: int) -> None:
        """The last test's blocks were counted.

        Args:
            cost_ns: how long it took.
        """
        self.is_counted = True
        self.others, self._pending = self._pending, 0
        self._groups += self.others > 0
        # The next one is counted, too, now and then: alone, to learn from.
        self._must_count = self.others > 0 and self._groups % _ALONE_EVERY == 0
        self._cost_ns += (cost_ns - self._cost_ns) / 8
        self._earned_ns = max(0.0, self._earned_ns - self._cost_ns)
        self._alone -= 1

    def saw(self, blocks: int, fixtures: int) -> None:
        """Learn from the last test, which was quiet, or from several.

        Args:
            blocks: how many it kept.
            fixtures: how many the test uses.
        """
        kind = self._kinds.get(fixtures)
        if kind is None:
            kind = self._kinds[fixtures] = _Kind()
        if self._newborn is None:
            return  # the collector has taken more than this test's or these tests' own
        if self.others:
            kind.saw_together(blocks, self.others)
        else:
            kind.saw(self._newborn, blocks)

    def beyond_doubt(self, growth: Sequence[int]) -> Sequence[int]:
        """The last test's growth, blocks first, as far as it is not an estimate's."""
        return [growth[0] - _DOUBT, *growth[1:]] if self.others else growth

    def must_count(self) -> None:
        """The next test looks guilty."""
        self._must_count = True

    def rest(self) -> None:
        """The process was at rest and everything counted."""
        self._pending = 0

    def alarm(self) -> None:
        """Some test among several has kept blocks: count after each for a while."""
        self._alone = max(self._alone, _ALARM_TESTS)
