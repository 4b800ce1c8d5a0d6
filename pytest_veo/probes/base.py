"""What a probe is: the one protocol behind every source of counters.

A probe reads; it never decides, never imports a framework, never initialises a
device, never raises out of `glance` or `read` because a source failed. What it
cannot read it says in `troubles`.
"""

from __future__ import annotations

from typing import Protocol
from typing import runtime_checkable

from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Reading
from pytest_veo.memory.snapshot import Trouble


@runtime_checkable
class Probe(Protocol):
    """Reads the counters of one source.

    The life of a probe: `open` once; then, around every test, `is_active` and, if
    that is true, `glance`; around a test that looks guilty also `settle` and
    `read`; `close` once. Every method is called from the main thread.
    """

    name: str
    """The word before the point in `torch.allocated`: lower case, one word."""

    @property
    def counters(self) -> tuple[Counter, ...]:
        """What `glance` yields now, in its order.

        Replaced by a new tuple when it changes (a second device was initialised, one
        was lost), never changed in place. A counter that appears during a session
        counted 0 before.
        """

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """What cannot be read at present. Replaced, never changed in place."""

    def open(self) -> None:
        """Get ready. Cheap; touches no framework.

        Raises:
            ProbeUnavailable: this source cannot exist here, and why.
        """

    def is_active(self) -> bool:
        """Whether the framework is imported *and* initialised by the user.

        Costs a dictionary look-up while it is not.
        """

    def glance(self) -> tuple[int, ...]:
        """The cheap figures, one for each of `counters`.

        Nothing is collected, synchronised or flushed. A counter that fails is
        taken out of `counters` and put into `troubles` before this returns.
        """

    def settle(self) -> None:
        """Bring this source to rest: synchronise, flush deferred frees.

        Frees nothing that the user's program could still use.
        """

    def read(self) -> tuple[Reading, ...]:
        """Every figure, those of `glance` included.

        May be slow; called after `settle`.
        """

    def close(self) -> None:
        """Let go of what `open` took."""
