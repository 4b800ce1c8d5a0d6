"""An archive or a page without a leak check: outcomes, times, frames of every test."""

from __future__ import annotations

import datetime
from collections import Counter as Tally
from typing import TYPE_CHECKING
from typing import Any

import pytest

from pytest_veo.archiving import SessionArchive


if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_veo.archive.record import RunHeader
    from pytest_veo.settings import Settings
    from pytest_veo.verdict import Verdict


_REASON = "the leak check is off"


class UncheckedResults:
    """Runs where results are shown: alone, or as the xdist controller.

    Args:
        config: the session's.
        settings: what is asked for.

    Raises:
        VeoError: the archive cannot be written, and the settings are strict.
    """

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        self._strict = settings.strict
        self._archive = SessionArchive(config, settings)
        self.fixtures: list[tuple[str, Verdict]] = []
        """None is looked at."""
        self._ended: Tally[str] = Tally()
        self._reports: dict[str, list[pytest.TestReport]] = {}
        """Of tests that are not finished."""

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write a test's record once its teardown is reported."""
        if report.when == "setup":
            self._reports[report.nodeid] = []
        self._archive.see(report)
        self._reports.setdefault(report.nodeid, []).append(report)
        if report.when != "teardown":
            return
        reports = self._reports.pop(report.nodeid)
        if any(str(each.outcome) == "rerun" for each in reports):
            return
        data = _record(reports)
        self._archive.complete(data)
        self._ended[data["verdict"]["outcome"]] += 1
        self._config.hook.pytest_veo_record(config=self._config, record=data)
        self._archive.add(data)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Close the archive."""
        self._archive.finish(self._ended)
        if (
            self._strict
            and self._archive.complaints
            and exitstatus == pytest.ExitCode.OK
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @property
    def archive_url(self) -> str | None:
        """Where the session is archived; None where it is not."""
        return self._archive.url

    def finished_header(self) -> RunHeader:
        """The run as it ended, archived or not."""
        return self._archive.ended(self._ended)

    def outcomes(self) -> Mapping[str, int]:
        """Tests by outcome."""
        return self._ended

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Tell where it is, and what went wrong with it."""
        if not (self._archive.complaints or self._archive.shown):
            return
        terminalreporter.section("veo")
        self._archive.tell(terminalreporter)


def _record(reports: list[pytest.TestReport]) -> dict[str, Any]:
    from pytest_veo.archive.record import Record
    from pytest_veo.verdict import Outcome
    from pytest_veo.verdict import Verdict

    first = reports[0]
    worst = next((each for each in reports if not each.passed), reports[-1])
    started = datetime.datetime.fromtimestamp(
        getattr(first, "start", 0), tz=datetime.UTC
    )
    gateway = getattr(getattr(first, "node", None), "gateway", None)
    return Record(
        nodeid=first.nodeid,
        worker=str(getattr(gateway, "id", "")),
        started_at=started.isoformat(timespec="milliseconds"),
        duration_ns=round(sum(each.duration for each in reports) * 1e9),
        test_outcome=worst.outcome,
        verdict=Verdict(Outcome.NOT_JUDGED, reason=_REASON),
    ).to_dict()
