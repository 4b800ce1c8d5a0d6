"""GitLab's code quality report: problems in the form of Code Climate's issues.

GitLab compares a merge request's report with its target branch's by fingerprint and
shows what is new and what is resolved; so fingerprints have no figures in them.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING
from typing import Any

from pytest_veo.report.problems import Problem
from pytest_veo.report.problems import Severity
from pytest_veo.report.problems import below
from pytest_veo.report.visible import visible


if TYPE_CHECKING:
    from collections.abc import Iterable


_SEVERITIES = {
    Severity.ERROR: "major",
    Severity.WARNING: "minor",
    Severity.NOTICE: "info",
}


def report(problems: Iterable[Problem], prefix: str = "") -> str:
    """The whole report, one JSON array; without problems it is `[]`.

    Args:
        problems: of one run, such as `pytest_veo.report.problems.problems` gives.
        prefix: the root directory as seen from the repository's, `""` or `sub/dir`.
    """
    seen: dict[str, int] = {}
    issues = [_issue(problem, prefix, seen) for problem in problems]
    return json.dumps(issues, indent=1) + "\n"


def _issue(problem: Problem, prefix: str, seen: dict[str, int]) -> dict[str, Any]:
    path = below(prefix, problem.path or problem.subject.partition("::")[0])
    issue: dict[str, Any] = {
        "type": "issue",
        "check_name": f"veo {problem.check}",
        "description": visible(f"{problem.name}: {problem.headline}"),
        "categories": ["Performance"],
        "severity": _SEVERITIES[problem.severity],
        "fingerprint": _fingerprint(problem, seen),
        "location": {"path": visible(path), "lines": {"begin": max(1, problem.line)}},
    }
    detail = visible(problem.detail, keep="\n").replace("```", "'''")
    if detail:
        issue["content"] = {"body": f"```text\n{detail}\n```"}
    return issue


def _fingerprint(problem: Problem, seen: dict[str, int]) -> str:
    """The same in the next run, and of no other problem of this one."""
    key = "\0".join((problem.check, problem.subject, problem.about))
    seen[key] = seen.get(key, 0) + 1
    return hashlib.sha256(
        f"{key}\0{seen[key]}".encode("utf-8", "surrogatepass")
    ).hexdigest()
