"""The text of a failed leak check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_veo.units import format_value


if TYPE_CHECKING:
    from pytest_veo.verdict import Finding
    from pytest_veo.verdict import Verdict


def text(verdict: Verdict) -> str:
    """The whole text; the figure stands in its first line."""
    lines = [headline(verdict.findings[0])]
    for f in verdict.findings:
        lines.append(f"  {f.counter} {f.before} -> {f.after}  {f.deltas}")
    lines.append(verdict.reason)
    return "\n".join(lines)


def headline(finding: Finding) -> str:
    size = format_value(finding.per_run, finding.unit)
    return f"leaked {size} a run: {finding.counter}"
