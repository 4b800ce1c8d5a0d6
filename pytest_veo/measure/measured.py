"""What one item's run came to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_veo.verdict import CLEAN
from pytest_veo.verdict import Outcome
from pytest_veo.verdict import Verdict


if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from pytest_veo.measure.ruling import FirstRun


class Measured:
    """One item's run: its reports and what was decided."""

    __slots__ = ("duration_ns", "first", "leaking_fixtures", "reports", "verdict")

    def __init__(self, reports: list[pytest.TestReport], duration_ns: int) -> None:
        self.reports = reports
        self.duration_ns = duration_ns
        self.first: FirstRun | None = None
        self.verdict = CLEAN
        self.leaking_fixtures: Sequence[tuple[str, Verdict]] = ()
        """Wider fixtures that the teardown after this item has proved to leak."""


OFF = Verdict(outcome=Outcome.NOT_JUDGED, reason="its level is off")


def not_judged(reports: list[pytest.TestReport]) -> Verdict:
    """The verdict on a test that did not pass, by the reports of its phases."""
    worst = next((r for r in reports if not r.passed), reports[1])
    how = "xfailed" if hasattr(worst, "wasxfail") else worst.outcome
    if how == "passed":
        return Verdict(outcome=Outcome.NOT_JUDGED, reason="a subtest failed")
    return Verdict(outcome=Outcome.NOT_JUDGED, reason=f"the test {how}")
