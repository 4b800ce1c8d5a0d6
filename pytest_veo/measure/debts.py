"""Wider fixtures that do not give back what they took.

A fixture is charged with what grew while it was set up. When it has been torn down,
that much must be gone again. Once is retention, reported under the fixture's name: it
may have been the first to use something. Again and again is a leak.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_veo.measure.gate import is_large
from pytest_veo.memory.snapshot import HOST
from pytest_veo.memory.snapshot import Rung
from pytest_veo.verdict import Finding
from pytest_veo.verdict import Outcome
from pytest_veo.verdict import Verdict


if TYPE_CHECKING:
    from collections.abc import Container
    from collections.abc import Sequence

    from pytest_veo.memory.charge import Amounts
    from pytest_veo.memory.charge import Booking
    from pytest_veo.memory.snapshot import Counter


CYCLES = 3
"""So many set-ups and teardowns, all but the first in debt, make a leak."""


class Debts:
    """What each fixture owes, over all its set-ups and teardowns."""

    def __init__(self) -> None:
        self._owed: dict[str, list[Amounts]] = {}
        self.proved: dict[str, Verdict] = {}
        """Fixtures that have turned out to leak, until they are asked for."""
        self._told: set[str] = set()

    def close(self, closed: Sequence[Booking], debts: Sequence[Amounts]) -> None:
        """These fixtures were torn down and owe so much each."""
        for booking, debt in zip(closed, debts, strict=True):
            cycles = self._owed.setdefault(booking.fixture, [])
            cycles.append(debt)
            verdict = _verdict(cycles)
            if verdict is not None and verdict.is_leak:
                self.proved[booking.fixture] = verdict

    def debtors(self) -> frozenset[str]:
        """The fixtures that have owed something after a teardown."""
        return frozenset(name for name, owed in self._owed.items() if any(owed))

    def newly_proved(self) -> list[tuple[str, Verdict]]:
        """The fixtures that have turned out to leak since this was last asked."""
        new = [row for row in self.proved.items() if row[0] not in self._told]
        self._told.update(self.proved)
        self.proved.clear()
        return new

    def verdicts(self) -> list[tuple[str, Verdict]]:
        """The fixtures that owe something, with the verdict on each."""
        found = []
        for fixture, cycles in self._owed.items():
            verdict = _verdict(cycles)
            if verdict is not None:
                found.append((fixture, verdict))
        return found


def unpaid(
    closed: Sequence[Booking],
    freed: Sequence[Amounts],
    debtors: Container[str] = (),
) -> list[Amounts]:
    """What each of some fixtures, torn down one after the other, still owes.

    Args:
        closed: in the order of their teardowns.
        freed: what came back until the end of the first one's finalizers, from there
            to the end of the second one's, and so on; last, what came back after all
            of them. A fixture's value goes when its finalizers are through, so each
            may have freed in two of these intervals. In the last go cycles of any,
            and the values that the test itself still had.
        debtors: fixtures that have owed before: the last to be paid from the last.
    """
    left = [dict(amounts) for amounts in freed]
    owed = [
        {counter: amount for counter, amount in booking.own().items() if amount > 0}
        for booking in closed
    ]
    for place, debt in enumerate(owed):
        _pay(debt, left[place])
        if place + 2 < len(left):
            _pay(debt, left[place + 1])
    for place in sorted(
        range(len(owed)), key=lambda place: closed[place].fixture in debtors
    ):
        _pay(owed[place], left[-1])
    return [
        {
            counter: amount
            for counter, amount in debt.items()
            if _counts(counter, amount)
        }
        for debt in owed
    ]


def _pay(debt: Amounts, purse: Amounts) -> None:
    for counter, amount in debt.items():
        paid = min(amount, max(0, purse.get(counter, 0)))
        debt[counter] = amount - paid
        purse[counter] = purse.get(counter, 0) - paid


def _counts(counter: Counter, amount: int) -> bool:
    if amount <= 0 or counter.rung >= Rung.HELD:
        return False
    return counter.device != HOST or is_large(counter, amount)


def _verdict(cycles: Sequence[Amounts]) -> Verdict | None:
    last = cycles[-1]
    if not last:
        return None
    repeated = len(cycles) >= CYCLES and all(cycles[1:])
    reason = (
        f"not given back, again and again ({len(cycles)} teardowns)"
        if repeated
        else "not given back when it was torn down"
    )
    return Verdict(
        outcome=Outcome.LEAK if repeated else Outcome.RETENTION,
        findings=tuple(
            Finding(
                counter=counter.key,
                device=counter.device,
                unit=counter.unit,
                before=0,
                after=amount,
                per_run=float(amount) if repeated else 0.0,
            )
            for counter, amount in sorted(
                last.items(), key=lambda row: (row[0].device == HOST, -row[1])
            )
        ),
        runs=len(cycles),
        reason=reason,
    )
