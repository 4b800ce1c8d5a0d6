"""What a comparison with earlier runs came to, as rows for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_veo.report.html.page import Changed
from pytest_veo.report.html.page import Compared
from pytest_veo.units import Unit
from pytest_veo.units import counted
from pytest_veo.units import format_value


if TYPE_CHECKING:
    from collections.abc import Collection
    from collections.abc import Iterable
    from collections.abc import Iterator
    from typing import Protocol

    from pytest_veo.archive.baseline import Difference
    from pytest_veo.archive.compare import Comparison

    class Result(Protocol):
        """What `baselines.BaselineCheck` finds."""

        name: str
        compared: int
        worse: tuple[Difference, ...]
        unsure: tuple[Difference, ...]
        better: int
        new: int
        not_run: int
        notes: tuple[str, ...]
        missing: str


_MOST_ROWS = 200


def compared_of(result: Result, known: Collection[str]) -> Compared:
    """The comparison for the page.

    Args:
        result: of the session.
        known: node ids of the tests that the page has.
    """
    if result.missing:
        return Compared("", doubts=(result.missing,))
    rows = [
        *_rows("worse", "bad", result.worse, known),
        *_rows("worse or moved", "warn", result.unsure, known),
    ]
    counts = [
        f"{counted(result.compared, 'test')} compared",
        *(f"{count} {what}" for count, what in _counted(result) if count),
    ]
    return Compared(
        result.name,
        rows=tuple(rows[:_MOST_ROWS]),
        summary=", ".join(counts),
        doubts=result.notes,
        more=max(0, len(rows) - _MOST_ROWS),
    )


def comparison_of(found: Comparison, known: Collection[str]) -> Compared:
    """Two archived runs beside each other for the page.

    Args:
        found: the comparison, the run of the page behind.
        known: node ids of the tests that the page has.
    """
    rows = [
        *_rows("grew", "bad", found.grew, known),
        *_rows("grew or moved", "warn", found.moved, known),
        *(
            Changed("gone", "note", nodeid, "test", "", "", False)
            for nodeid in found.gone
        ),
        *(Changed("new", "note", nodeid, "test", "", "") for nodeid in found.new),
        *_rows("shrank", "good", found.shrank, known),
    ]
    foreign = (f"not made in the same place: {'; '.join(found.foreign)}",)
    return Compared(
        found.before,
        rows=tuple(rows[:_MOST_ROWS]),
        summary=f"{found.same} figures the same within their limits",
        doubts=(*(foreign if found.foreign else ()), *found.notes),
        more=max(0, len(rows) - _MOST_ROWS),
    )


def _counted(result: Result) -> Iterator[tuple[int, str]]:
    yield result.better, "figure better" if result.better == 1 else "figures better"
    yield result.new, "new"
    yield result.not_run, "in the baseline but not run or not judged"


def _rows(
    change: str, tone: str, found: Iterable[Difference], known: Collection[str]
) -> Iterator[Changed]:
    for each in found:
        unit = Unit(each.past.unit)
        yield Changed(
            change=change,
            tone=tone,
            nodeid=each.key.nodeid,
            figure=each.key.name,
            before=format_value(each.past.usual, unit),
            now=format_value(each.now, unit),
            known=each.key.nodeid in known,
        )
