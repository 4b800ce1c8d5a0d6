"""The terminal's header and closing section."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_veo.report.failure import headline
from pytest_veo.units import format_ns
from pytest_veo.verdict import SMALL
from pytest_veo.verdict import Outcome


if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Sequence

    from pytest_veo.verdict import Verdict


_SHOWN = 10
"""Rows of each kind; the archive has them all."""


class Totals:
    """What the session did, summed over workers."""

    __slots__ = (
        "confirm_ns",
        "followed",
        "judged",
        "not_judged",
        "test_ns",
        "together",
        "unassigned",
    )

    def __init__(self, **known: int) -> None:
        """Zero, but for what is known.

        Args:
            known: figures by name, as `to_dict` gave them.
        """
        self.judged = 0
        self.not_judged = 0
        self.followed = 0
        self.confirm_ns = 0
        self.test_ns = 0
        self.together = 0
        """Tests so short that Python's blocks were counted over several of them."""
        self.unassigned = 0
        """Such groups that kept a few blocks, by which test nobody knows."""
        for name, value in known.items():
            setattr(self, name, value)

    def to_dict(self) -> dict[str, int]:
        """All figures by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def add(self, other: Totals) -> None:
        """Add another worker's."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def header(
    level: str,
    watched: Sequence[str],
    waiting: Sequence[str],
    troubles: Sequence[str],
) -> str:
    """The line under pytest's header: what is watched, and what is not.

    Args:
        level: of the leak check.
        watched: probes that read something now.
        waiting: probes that will once a test uses their framework.
        troubles: what cannot be read, with its reason.
    """
    line = f"veo: leak check {level}, watching {', '.join(watched) or 'nothing'}"
    if waiting:
        line += f"; once in use: {', '.join(waiting)}"
    return f"{line} ({'; '.join(troubles)})" if troubles else line


def closing(
    totals: Totals,
    verdicts: Sequence[tuple[str, Verdict]],
    fixtures: Sequence[tuple[str, Verdict]],
    troubles: Sequence[str],
    unmeasured: str = "",
) -> Iterator[str]:
    """The lines of the closing section.

    Args:
        totals: what was done.
        verdicts: on tests.
        fixtures: those that did not give back.
        troubles: what could not be read.
        unmeasured: how many tests ran out of our sight, and who ran them.
    """
    for outcome, title in (
        (Outcome.LEAK, "leaks"),
        (Outcome.OVER_BUDGET, "over budget"),
        (Outcome.ALLOWED, "allowed leaks"),
        (Outcome.COLLECTABLE, "freed by the cyclic collector only"),
        (Outcome.RETENTION, "retention"),
    ):
        yield from _listed(
            title, [row for row in verdicts if row[1].outcome is outcome]
        )
    yield from _listed("fixtures that did not give back", fixtures)
    yield from _unconfirmed(verdicts)
    if unmeasured:
        yield f"not measured: {unmeasured}"
    if troubles:
        yield "not watched:"
        yield from (f"  {trouble}" for trouble in troubles)
    yield _spent(totals)


def _size(row: tuple[str, Verdict]) -> float:
    findings = row[1].findings
    return -max((finding.growth for finding in findings), default=0)


def _listed(title: str, rows: Sequence[tuple[str, Verdict]]) -> Iterator[str]:
    if not rows:
        return
    yield f"{title}: {len(rows)}"
    for nodeid, verdict in sorted(rows, key=_size)[:_SHOWN]:
        yield f"  {nodeid}: {headline(verdict)}{_why(verdict)}"
    if len(rows) > _SHOWN:
        yield f"  and {len(rows) - _SHOWN} more"


def _why(verdict: Verdict) -> str:
    if verdict.outcome in (Outcome.ALLOWED, Outcome.RETENTION):
        return f", {verdict.reason}"
    return ""


def _unconfirmed(verdicts: Sequence[tuple[str, Verdict]]) -> Iterator[str]:
    rows = [row for row in verdicts if row[1].outcome is Outcome.UNCONFIRMED]
    small = [row for row in rows if row[1].reason == SMALL]
    rows = sorted((row for row in rows if row[1].reason != SMALL), key=_size)
    if rows:
        yield f"suspected, not confirmed: {len(rows)}"
    for nodeid, verdict in rows[:_SHOWN]:
        figure = f"{headline(verdict)}, " if verdict.findings else ""
        yield f"  {nodeid}: {figure}{verdict.reason}"
    if len(rows) > _SHOWN:
        yield f"  and {len(rows) - _SHOWN} more"
    if small:
        nodeid, verdict = min(small, key=_size)
        yield f"suspected, small and not followed up (confirm-share): {len(small)}"
        yield f"  the largest is {nodeid}: {headline(verdict)}"


def _spent(totals: Totals) -> str:
    words = [f"{totals.judged} tests judged"]
    if totals.together:
        kept = f", {totals.unassigned} of which kept a little"
        words[0] += (
            f" ({totals.together} of them, the shortest, in groups"
            f"{kept if totals.unassigned else ''})"
        )
    if totals.not_judged:
        words.append(
            f"{totals.not_judged} not judged (failed, skipped, xfailed or level off)"
        )
    words.append(
        f"{totals.followed} run again in {format_ns(totals.confirm_ns)} "
        f"(tests took {format_ns(totals.test_ns)})"
    )
    return ", ".join(words)
