"""A run in Markdown, for the summary page of a CI step.

Node ids, reasons and paths may hold anything: what Markdown or HTML could take for
markup is written as character references.
"""

from __future__ import annotations

import html
import re
from collections import Counter as Tally
from typing import TYPE_CHECKING

from pytest_veo.report.problems import Severity
from pytest_veo.report.visible import visible
from pytest_veo.verdict import Outcome


if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Mapping
    from collections.abc import Sequence

    from pytest_veo.report.problems import Problem


_SHOWN = 50
_DETAILED = 20
_ID_CHARACTERS = 300
_MARKS = {
    Severity.ERROR: "❌",
    Severity.WARNING: "⚠️",
    Severity.NOTICE: "\N{INFORMATION SOURCE}",
}
_MARKUP = re.compile(r"[^A-Za-z0-9\s/,;()%=+-]")
"""All but these might begin something: emphasis, a link, a tag, a table's cell."""


def markdown(
    problems: Sequence[Problem],
    totals: Mapping[str, int],
    *,
    title: str = "pytest-veo",
    not_watched: Sequence[str] = (),
    gpu: str = "",
) -> str:
    """The summary.

    Args:
        problems: worst first.
        totals: tests by outcome's value.
        title: of the section.
        not_watched: what could not be read, and why.
        gpu: the devices' names; those of a simulated GPU are told at the top.
    """
    return "\n".join(_lines(problems, totals, title, not_watched, gpu)) + "\n"


def _lines(
    problems: Sequence[Problem],
    totals: Mapping[str, int],
    title: str,
    not_watched: Sequence[str],
    gpu: str,
) -> Iterator[str]:
    yield f"## {escaped(title)}: {_result(problems)}"
    yield ""
    if "simulated gpu" in gpu.lower():
        yield "> **Simulated GPU.** No figure below is of a real device."
        yield ""
    judged = [name for name in _order() if totals.get(name)]
    if judged:
        yield ", ".join(f"**{totals[name]:,}** {name}" for name in judged)
    else:
        yield "**No test was measured.**"
    yield ""
    yield from _table(problems)
    yield from _details(problems)
    if not_watched:
        yield from ("<details><summary>Not watched</summary>", "")
        yield from (f"- {escaped(trouble)}" for trouble in not_watched)
        yield from ("", "</details>")


def _order() -> list[str]:
    return [outcome.value for outcome in Outcome]


def _result(problems: Sequence[Problem]) -> str:
    tally = Tally(problem.severity for problem in problems)
    if tally[Severity.ERROR]:
        return f"{tally[Severity.ERROR]} found {_MARKS[Severity.ERROR]}"
    if tally[Severity.WARNING]:
        return f"no failure, {tally[Severity.WARNING]} to look at"
    return "nothing found ✅"


def _table(problems: Sequence[Problem]) -> Iterator[str]:
    if not problems:
        return
    yield "| | test | found |"
    yield "| --- | --- | --- |"
    for problem in problems[:_SHOWN]:
        mark = _MARKS[problem.severity]
        subject = escaped(problem.subject)
        yield (
            f"| {mark} {problem.check} | <code>{subject}</code> | "
            f"{escaped(problem.headline)} |"
        )
    if len(problems) > _SHOWN:
        yield f"| | | and {len(problems) - _SHOWN:,} more |"
    yield ""


def _details(problems: Sequence[Problem]) -> Iterator[str]:
    errors = [each for each in problems if each.severity is Severity.ERROR]
    for problem in errors[:_DETAILED]:
        if problem.detail:
            yield f"<details><summary><code>{escaped(problem.subject)}</code></summary>"
            # No blank line inside: one would end the block of HTML.
            lines = visible(problem.detail, keep="\n").split("\n")
            body = "\n".join(html.escape(line) or "&nbsp;" for line in lines)
            yield f"<pre>{body}</pre>"
            yield "</details>"
            yield ""


def escaped(text: str, limit: int = _ID_CHARACTERS) -> str:
    """One line of plain text, whatever it holds.

    Args:
        text: anything.
        limit: most characters; the rest is left out, and that is shown.
    """
    line = visible(" ".join(text.split()))
    if len(line) > limit:
        line = f"{line[:limit]}..."
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", line)
