"""Whose growth it is: the test's, or a wider fixture's.

What grows while a class, module, package or session fixture is set up belongs to
that fixture, and must come back when it is torn down. It is never a test's leak.
"""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_veo.memory.snapshot import Counter


Amounts = dict["Counter", int]
"""Growth by counter, in the counter's unit."""


class Booking:
    """What one wider fixture took while it was set up."""

    __slots__ = ("amounts", "fixture", "inner")

    def __init__(self, fixture: str) -> None:
        """Nothing is booked yet.

        Args:
            fixture: name and scope, as in `model (module)`.
        """
        self.fixture = fixture
        self.amounts: Amounts = {}
        self.inner: Amounts = {}
        """Of it, what fixtures that this one asked for on the way took."""

    def own(self) -> Amounts:
        """What this fixture took itself."""
        return subtract(self.amounts, self.inner)


class Ledger:
    """Bookings of the fixtures that stand, and what tests need not answer for."""

    def __init__(self) -> None:
        self._open: list[Booking] = []
        self.standing: dict[object, Booking] = {}
        """By fixture definition, from set-up to teardown."""
        self.in_window: Amounts = {}
        """All that wider fixtures took since the window began."""

    def start_window(self) -> None:
        """A new test begins: nothing is booked in it yet."""
        self.in_window = {}

    def charge(self, counter: Counter, amount: int) -> None:
        """Book growth in the window that is pytest's own."""
        self.in_window[counter] = self.in_window.get(counter, 0) + amount

    def begin(self, fixture: str) -> Booking:
        """A wider fixture's set-up begins."""
        booking = Booking(fixture)
        self._open.append(booking)
        return booking

    def end(self, key: object, booking: Booking, amounts: Amounts) -> None:
        """A wider fixture's set-up is over; all it took, inner ones included."""
        self._open.remove(booking)
        booking.amounts = amounts
        self.standing[key] = booking
        if self._open:
            self._open[-1].inner = add(self._open[-1].inner, amounts)
        else:
            self.in_window = add(self.in_window, amounts)

    def close(self, key: object) -> Booking | None:
        """A wider fixture is torn down; its booking, if it had one."""
        return self.standing.pop(key, None)


def add(one: Mapping[Counter, int], other: Mapping[Counter, int]) -> Amounts:
    """Sums by counter."""
    total = dict(one)
    for counter, amount in other.items():
        total[counter] = total.get(counter, 0) + amount
    return total


def subtract(one: Mapping[Counter, int], other: Mapping[Counter, int]) -> Amounts:
    """Differences by counter."""
    return add(one, {counter: -amount for counter, amount in other.items()})
