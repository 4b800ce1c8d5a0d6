"""Workflow commands of GitHub Actions: problems shown beside the lines of a change.

GitHub shows ten errors and ten warnings of a step and drops the others without a
word, so no more are written, and the last one says how many there were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_veo.report.problems import Problem
from pytest_veo.report.problems import Severity
from pytest_veo.report.problems import below
from pytest_veo.report.visible import visible


if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Sequence


SHOWN = 10
"""Annotations of each kind that GitHub shows for one step."""
_DETAIL_LINES = 25
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning"}


def github(problems: Sequence[Problem], prefix: str = "") -> Iterator[str]:
    """One command a line; notices are left to the step's summary.

    Args:
        problems: worst first.
        prefix: the root directory as seen from the repository's, `""` or `sub/dir`.
    """
    for severity, command in _COMMANDS.items():
        found = [each for each in problems if each.severity is severity]
        rest = len(found) - SHOWN
        shown = found if rest <= 0 else found[: SHOWN - 1]
        yield from (_command(command, problem, prefix) for problem in shown)
        if rest > 0:
            more = len(found) - len(shown)
            text = f"{more} more, see the summary of this step"
            yield f"::{command} title=veo::{_data(text)}"


def _command(command: str, problem: Problem, prefix: str) -> str:
    properties = []
    if problem.path:
        properties.append(f"file={_property(below(prefix, problem.path))}")
        if problem.line:
            properties.append(f"line={problem.line}")
    properties.append(f"title={_property(f'{problem.check}: {problem.name}')}")
    return f"::{command} {','.join(properties)}::{_data(_text(problem))}"


def _text(problem: Problem) -> str:
    text = problem.detail or problem.headline
    if not text.startswith(problem.headline):
        text = f"{problem.headline}\n{text}"
    lines = visible(text, keep="\n").split("\n")
    return "\n".join(lines[:_DETAIL_LINES]).rstrip()


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
