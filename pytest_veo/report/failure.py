"""The text of a failed check: the figure, the reason, then how it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_veo.memory.snapshot import HOST
from pytest_veo.units import Unit
from pytest_veo.units import format_value
from pytest_veo.verdict import Outcome


if TYPE_CHECKING:
    from pytest_veo.verdict import Finding
    from pytest_veo.verdict import Verdict


_SHOWN_FINDINGS = 6
_SHOWN_DELTAS = 6

_NOUNS = {
    "python_blocks": ("Python block", "Python blocks"),
    "descriptors": ("descriptor", "descriptors"),
    "threads": ("thread", "threads"),
    "children": ("child process", "child processes"),
    "asyncio_tasks": ("asyncio task", "asyncio tasks"),
}


def headline(verdict: Verdict) -> str:
    """One line with the figure first; fits an 80-column summary as far as it goes."""
    if not verdict.findings:
        return f"{verdict.outcome.value}: {verdict.reason}"
    first = verdict.findings[0]
    if verdict.outcome is Outcome.OVER_BUDGET:
        allowed = format_value(first.limit or 0, first.unit)
        figure = _amount(first, first.growth)
        return f"{figure}, over the limit of {allowed} ({_subject(first)})"
    if verdict.outcome in (Outcome.LEAK, Outcome.ALLOWED):
        return f"leaked {_amount(first, first.per_run)} a run ({_subject(first)})"
    return f"kept {_amount(first, first.growth)} ({_subject(first)})"


def _amount(finding: Finding, value: float) -> str:
    text = format_value(value, finding.unit)
    if finding.unit is not Unit.COUNT:
        return text
    name = finding.counter.partition(".")[2]
    one, many = _NOUNS.get(name, (name, name))
    return f"{text} {one if text == '1' else many}"


def _subject(finding: Finding) -> str:
    if finding.device == HOST:
        return finding.counter
    return f"{finding.counter} on {finding.device}"


def text(verdict: Verdict) -> str:
    """The whole text of a failure: its first three lines are enough to act on."""
    lines = [headline(verdict), *(f"  {line}" for line in verdict.evidence), ""]
    rows = [_row(finding) for finding in verdict.findings[:_SHOWN_FINDINGS]]
    lines += _columns(rows)
    more = len(verdict.findings) - len(rows)
    if more > 0:
        lines.append(f"  and {more} more counters")
    lines.append("")
    lines += _confirmation(verdict)
    return "\n".join(lines)


def _row(finding: Finding) -> tuple[str, str, str, str]:
    before = format_value(finding.before, finding.unit)
    after = format_value(finding.after, finding.unit)
    growth = format_value(finding.growth, finding.unit, signed=True)
    return (
        finding.counter,
        "" if finding.device == HOST else finding.device,
        f"{before} -> {after} ({growth})",
        _deltas(finding),
    )


def _deltas(finding: Finding) -> str:
    if not finding.deltas:
        return ""
    last = finding.deltas[-_SHOWN_DELTAS:]
    if len(set(last)) == 1:
        return f"then {format_value(last[0], finding.unit, signed=True)} each run"
    shown = " ".join(format_value(d, finding.unit, signed=True) for d in last)
    return f"then {shown}"


def _columns(rows: list[tuple[str, str, str, str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(3)] if rows else []
    lines = []
    for row in rows:
        cells = [row[i].ljust(widths[i]) for i in range(3) if widths[i]]
        lines.append(("  " + "  ".join([*cells, row[3]])).rstrip())
    return lines


def _confirmation(verdict: Verdict) -> list[str]:
    lines = []
    if verdict.reason:
        lines.append(f"  confirmed: {verdict.reason}")
    if verdict.ruled_out:
        lines.append(f"  ruled out: {'; '.join(verdict.ruled_out)}")
    return lines
