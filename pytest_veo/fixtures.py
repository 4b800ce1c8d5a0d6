"""The fixture `veo_memory` and the marker of the same name, for any session.

Works with and without a leak check; nothing is opened before a test asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import pytest

from pytest_veo import settings
from pytest_veo.errors import BadSetting
from pytest_veo.measure.window import MemoryWindow
from pytest_veo.units import format_bytes


if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_veo.budget import MemoryBudget
    from pytest_veo.measure.meter import Meter


SECTION = "veo memory"


class MemoryBudgets:
    """Holds marked tests to their budgets, inside the call phase.

    A failure raised there is one of the test's own: xfail, junit and xdist see nothing
    unusual.
    """

    def __init__(self, meter: Meter, items: list[pytest.Item]) -> None:
        """Read every marker.

        Raises:
            BadSetting: a marker means nothing.
        """
        self._meter = meter
        self._budgets = {
            item: budgets
            for item in items
            if (budgets := settings.memory_budgets(item))
        }

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Measure the test's own body."""
        budgets = self._budgets.get(item)
        if budgets is None:
            return (yield)
        with MemoryWindow(item.name, self._meter) as window:
            result = yield
        complaints = [line for budget in budgets for line in _over(window, budget)]
        if complaints:
            pytest.fail("\n".join(complaints), pytrace=False)
        notes = [note for budget in budgets for note in _unsure(window, budget)]
        if notes:
            item.add_report_section("call", SECTION, "\n".join(notes))
        return result


def _over(window: MemoryWindow, budget: MemoryBudget) -> list[str]:
    try:
        growth = window.growth(budget.on)
        peak = window.peak(budget.on)
    except BadSetting as error:
        return [str(error)]
    lines = []
    if budget.growth_bytes is not None and growth > budget.growth_bytes:
        lines.append(_line("grew by", growth, budget.growth_bytes, budget.on))
    if budget.peak_bytes is not None and peak.least > budget.peak_bytes:
        lines.append(_line("rose by", peak.least, budget.peak_bytes, budget.on))
    return lines


def _line(verb: str, amount: int, allowed: int, on: str) -> str:
    return f"{verb} {format_bytes(amount)} ({on}), allowed are {format_bytes(allowed)}"


def _unsure(window: MemoryWindow, budget: MemoryBudget) -> list[str]:
    """What could not be told because the peak lies between two bounds."""
    limit = budget.peak_bytes
    if limit is None:
        return []
    peak = window.peak(budget.on)
    if peak.is_exact or (peak.most is not None and peak.most <= limit):
        return []
    upper = "unknown" if peak.most is None else format_bytes(peak.most)
    return [
        f"peak of {budget.on} not known: at least {format_bytes(peak.least)}, "
        f"at most {upper}, allowed are {format_bytes(limit)}"
    ]
