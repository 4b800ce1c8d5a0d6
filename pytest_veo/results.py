"""What a whole session came to: gathered from reports and workers, archived, told.

Runs where results are shown: alone, or as the xdist controller. Each record arrives
on a report; the workers' totals when they end.
"""

from __future__ import annotations

from collections import Counter as Tally
from typing import TYPE_CHECKING
from typing import Any

import pytest

from pytest_veo import options
from pytest_veo.archiving import FRAMES_ATTRIBUTE
from pytest_veo.archiving import SessionArchive
from pytest_veo.report import summary
from pytest_veo.report.summary import Totals
from pytest_veo.verdict import Outcome


if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_veo.archive.record import RunHeader
    from pytest_veo.settings import Settings
    from pytest_veo.verdict import Verdict

    Fixtures = list[tuple[str, Verdict]]


RECORD_ATTRIBUTE = "veo_record"
"""On the last report of a test: its record as a plain dict."""
WORKER_KEY = "veo"
"""In a worker's output: what it tells the controller at its end."""
REFUSED_KEY = "refused"
"""In what a worker tells: why it ran nothing, such as a marker without meaning."""


RERUN = "rerun"
"""The outcome of a report whose test pytest-rerunfailures will run once more."""


class SessionResults:
    """Gathers, archives and tells."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        """Begin; the archive's folder is made at once.

        Raises:
            VeoError: it cannot be written, and the settings are strict.
        """
        self.config = config
        self.settings = settings
        self.totals = Totals()
        self.verdicts: list[tuple[str, Verdict]] = []
        self.fixtures: Fixtures = []
        self.troubles: dict[str, None] = {}
        self.watched: set[str] = set()
        self.probes: set[str] = set()
        self._tests = 0
        self._to_be_rerun: set[str] = set()
        """Tests whose present attempt is none of those that count."""
        self._complaints: list[str] = []
        self._ended: Tally[str] = Tally()
        self._archive = SessionArchive(config, settings)

    def take(self, told: Mapping[str, Any]) -> None:
        """What one process that ran tests tells at its end."""
        self.totals.add(Totals(**told["totals"]))
        self.watched.update(told["watched"])
        self.probes.update(told["probes"])
        self.troubles.update(dict.fromkeys(told["troubles"]))
        self.fixtures += [_fixture(data) for data in told["fixtures"]]

    # -------------------------------------------------------------------- hooks

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take a test's record from its last report."""
        if report.when == "setup":
            self._tests += 1
            if self._to_be_rerun:
                self._to_be_rerun.discard(report.nodeid)
        if report.outcome == RERUN:
            self._to_be_rerun.add(report.nodeid)
        if self._to_be_rerun and report.nodeid in self._to_be_rerun:
            return
        brought = vars(report)
        if FRAMES_ATTRIBUTE in brought:
            self._archive.see(report)
        if RECORD_ATTRIBUTE in brought:
            self._keep(brought[RECORD_ATTRIBUTE])

    def _keep(self, data: dict[str, Any]) -> None:
        from pytest_veo.archive.record import Record

        self._archive.complete(data)
        record = Record.from_dict(data)
        self._ended[record.verdict.outcome.value] += 1
        if record.verdict.outcome not in (Outcome.CLEAN, Outcome.NOT_JUDGED):
            self.verdicts.append((record.nodeid, record.verdict))
        self.config.hook.pytest_veo_record(config=self.config, record=data)
        self._archive.add(data)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """An xdist worker has ended."""
        told = getattr(node, "workeroutput", {}).get(WORKER_KEY)
        if told is None:
            return
        if REFUSED_KEY in told:
            raise pytest.UsageError(told[REFUSED_KEY])
        self.take(told)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Close the archive; fail the run where the settings ask for it."""
        self._archive.finish(*self._kept())
        if self.config.option.collectonly:
            return
        missing = [name for name in self.settings.require if name not in self.probes]
        if missing:
            self._complaints.append(
                f"REQUIRED BUT NOT READ: {', '.join(missing)} (--veo-require)"
            )
        failing = bool(missing) or any(v.outcome.fails for _, v in self.fixtures)
        if self.settings.strict:
            unsure = [v for _, v in self.verdicts if v.outcome is Outcome.UNCONFIRMED]
            failing |= bool(unsure or self.fixtures or self._complaints)
            failing |= bool(self._archive.complaints)
        if failing and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @property
    def archive_url(self) -> str | None:
        """Where the session is archived; None where it is not."""
        return self._archive.url

    def finished_header(self) -> RunHeader:
        """The run as it ended, archived or not."""
        return self._archive.ended(*self._kept())

    def _kept(self) -> tuple[Tally[str], set[str], dict[str, None], Fixtures]:
        return self._ended, self.watched, self.troubles, self.fixtures

    def outcomes(self) -> Mapping[str, int]:
        """Tests by outcome, those without a record among them."""
        clean, not_judged = Outcome.CLEAN.value, Outcome.NOT_JUDGED.value
        found = {
            name: count
            for name, count in self._ended.items()
            if name not in (clean, not_judged)
        }
        found[clean] = self.totals.judged - sum(found.values())
        return found | {not_judged: self.totals.not_judged}

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the closing section."""
        if self.config.option.collectonly:
            return
        terminalreporter.section("veo")
        lines = summary.closing(
            self.totals,
            self.verdicts,
            self.fixtures,
            tuple(self.troubles),
            self._unmeasured(),
        )
        for line in lines:
            terminalreporter.write_line(line)
        if self._tests and not self.totals.judged:
            terminalreporter.write_line("NOTHING WAS MEASURED", red=True, bold=True)
        for complaint in self._complaints:
            terminalreporter.write_line(complaint, red=True)
        self._archive.tell(terminalreporter)

    def _unmeasured(self) -> str:
        """How many tests ran out of our sight, and who ran them."""
        count = self._tests - self.totals.judged - self.totals.not_judged
        shows = options.shows_setup(self.config)
        by = "pytest ran to show their set-up" if shows else "another plugin ran"
        return f"{count} tests that {by}" if count > 0 else ""


def _fixture(data: Mapping[str, Any]) -> tuple[str, Verdict]:
    from pytest_veo.archive.record import Record

    record = Record.from_dict(data)
    return record.nodeid, record.verdict
