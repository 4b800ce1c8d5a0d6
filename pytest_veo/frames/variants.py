"""A parametrized test as a sweep: the cells of its runs, gathered into one table.

Each run of such a test is a test of its own to pytest, perhaps in a process of its
own. So every cell travels in the record of its series, and the table is made of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from pytest_veo.frames.record import plain
from pytest_veo.frames.stats import FrameStats
from pytest_veo.frames.sweep import Row
from pytest_veo.frames.sweep import draw_table
from pytest_veo.frames.sweep import row_of
from pytest_veo.frames.verdict import Outcome


MOST_ROWS = 64
"""Of a longer table only the cells are shown that did not pass."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One combination of a parametrized test's parameters."""

    test: str
    """The test's id without its parameters."""
    place: tuple[int, ...]
    """Which value of each parameter it is: the order of the table."""
    parameters: tuple[tuple[str, Any], ...]


def cell_of(
    variant: Variant, stats: FrameStats, outcome: Outcome | None
) -> dict[str, Any]:
    """The cell of one series as plain values, for the series' record."""
    row = row_of(variant.parameters, stats, outcome)
    return {"test": variant.test, "place": list(variant.place), **plain(row)}


def tables_of(records: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The tables of all parametrized tests among these records, by test.

    Args:
        records: of series, in any order; those without a cell do not matter. The
            last of several runs of one cell counts.

    Returns:
        Test id and table; a test of which one cell alone was run has no table.
    """
    tests: dict[str, dict[tuple[str, str], Mapping[str, Any]]] = {}
    for record in records:
        if (cell := record.get("cell")) is not None:
            key = (record["series"], repr(cell["parameters"]))
            tests.setdefault(cell["test"], {})[key] = {**cell, "of": record["series"]}
    return [
        (test, _table(list(cells.values())))
        for test, cells in tests.items()
        if len({parameters for _, parameters in cells}) > 1
    ]


def _table(cells: list[Mapping[str, Any]]) -> str:
    cells.sort(key=lambda cell: cell["place"])
    one_each = len({repr(cell["parameters"]) for cell in cells}) == len(cells)
    rows = [_row(cell, names_series=not one_each) for cell in cells]
    if len(rows) <= MOST_ROWS:
        return draw_table(rows)
    open_rows = [row for row in rows if row.outcome is not Outcome.PASS]
    passed = len(rows) - len(open_rows)
    shown = draw_table(open_rows[:MOST_ROWS])
    more = max(0, len(open_rows) - MOST_ROWS)
    rest = f"{passed} cells pass" + (f", {more} more do not" if more else "")
    return f"{shown}\n{rest}" if open_rows else rest


def _row(cell: Mapping[str, Any], *, names_series: bool) -> Row:
    parameters = tuple((name, value) for name, value in cell["parameters"])
    outcome = cell["outcome"]
    return Row(
        parameters=(*parameters, ("series", cell["of"]))
        if names_series
        else parameters,
        frames=cell["frames"],
        drop_rate=cell["drop_rate"],
        p99_ms=cell["p99_ms"],
        order_error=cell["order_error"],
        outcome=None if outcome is None else Outcome(outcome),
    )
