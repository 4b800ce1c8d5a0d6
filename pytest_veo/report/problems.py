"""What a run found, as a list that CI systems understand: severity, place, text."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

from pytest_veo.report import failure
from pytest_veo.verdict import Outcome


if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Iterator
    from collections.abc import Mapping

    from pytest_veo.archive.record import Record
    from pytest_veo.verdict import Verdict


class Severity(enum.IntEnum):
    """How much it matters, worst first."""

    ERROR = 0
    """It fails its test, or the run."""
    WARNING = 1
    """It should be looked at; nothing fails."""
    NOTICE = 2
    """Known, allowed, or not certain."""


_SEVERITIES = {
    Outcome.LEAK: Severity.ERROR,
    Outcome.OVER_BUDGET: Severity.ERROR,
    Outcome.COLLECTABLE: Severity.WARNING,
    Outcome.RETENTION: Severity.NOTICE,
    Outcome.UNCONFIRMED: Severity.NOTICE,
    Outcome.ALLOWED: Severity.NOTICE,
}
_FRAMES = {
    "fail": Severity.ERROR,
    "inconclusive": Severity.WARNING,
    "not enough frames": Severity.WARNING,
}


class Problem(NamedTuple):
    """One thing that was found."""

    severity: Severity
    check: str
    """What kind it is, one word or two: `leak`, `over budget`, `frames`."""
    subject: str
    """The test's node id, or the fixture's name."""
    headline: str
    """One line, the figure first."""
    detail: str = ""
    """All that is known, several lines."""
    about: str = ""
    """What tells it from others of its subject and kind: a counter, a series. Free of
    figures, so that it is the same in the next run."""
    path: str = ""
    """The test's file, relative to the root directory; empty: not known."""
    line: int = 0
    """Where the test begins, from 1; 0: not known."""

    @property
    def name(self) -> str:
        """The subject without its file."""
        return self.subject.partition("::")[2] or self.subject


def below(prefix: str, path: str) -> str:
    """A path as the repository sees it; `prefix` is where the root directory is."""
    return f"{prefix.rstrip('/')}/{path}" if prefix not in ("", ".") else path


def problems(
    records: Iterable[Record],
    *,
    fixtures: Iterable[tuple[str, Verdict]] = (),
    lines: Mapping[str, int] | None = None,
    worse: Iterable[tuple[str, str, str]] = (),
) -> list[Problem]:
    """All there is to tell, worst first, else in the order of the tests.

    Args:
        records: of the finished tests.
        fixtures: those that did not give back, by name.
        lines: where tests begin in their files, from 1, by node id.
        worse: what is above its baseline: node id, counter, and a sentence.
    """
    known = lines or {}
    found = [problem for record in records for problem in _of_record(record, known)]
    found += [_of_verdict(name, verdict) for name, verdict in fixtures]
    found += [
        Problem(
            severity=Severity.ERROR,
            check="worse than the baseline",
            subject=nodeid,
            headline=text,
            about=counter,
            path=nodeid.partition("::")[0],
            line=known.get(nodeid, 0),
        )
        for nodeid, counter, text in worse
    ]
    return sorted(found, key=lambda problem: problem.severity)


def _of_record(record: Record, lines: Mapping[str, int]) -> Iterator[Problem]:
    path = record.nodeid.partition("::")[0]
    line = lines.get(record.nodeid, 0)
    if record.verdict.outcome in _SEVERITIES:
        problem = _of_verdict(record.nodeid, record.verdict)
        yield problem._replace(path=path, line=line)
    for series in record.frames:
        severity = _FRAMES.get(series.get("outcome") or "")
        if severity is not None:
            found = _of_series(record.nodeid, series, severity)
            yield found._replace(path=path, line=line)


def _of_verdict(subject: str, verdict: Verdict) -> Problem:
    first = verdict.findings[0] if verdict.findings else None
    reason = verdict.reason
    listed = verdict.outcome in (Outcome.ALLOWED, Outcome.RETENTION)
    headline = failure.headline(verdict)
    if listed and reason and first is not None:
        headline += f", {reason}"
    return Problem(
        severity=_SEVERITIES.get(verdict.outcome, Severity.NOTICE),
        check=verdict.outcome.value,
        subject=subject,
        headline=headline,
        detail=failure.text(verdict),
        about=first.counter if first is not None else "",
    )


def _of_series(nodeid: str, series: Mapping[str, Any], severity: Severity) -> Problem:
    return Problem(
        severity=severity,
        check="frames",
        subject=nodeid,
        headline=str(series.get("headline") or series["outcome"]),
        detail=str(series.get("text") or ""),
        about=str(series.get("series", "")),
    )
