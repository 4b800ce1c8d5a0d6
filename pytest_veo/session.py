"""A checked session: probes opened, items measured, verdicts on reports."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import pytest

from pytest_veo import settings as settings_
from pytest_veo.errors import BadSetting
from pytest_veo.measure import shim
from pytest_veo.measure.meter import Meter
from pytest_veo.measure.watch import Measured
from pytest_veo.measure.watch import Watch
from pytest_veo.measure.watch import today
from pytest_veo.report import failure
from pytest_veo.verdict import Outcome


if TYPE_CHECKING:
    from pytest_veo.budget import LeakBudget
    from pytest_veo.settings import Settings


class LeakFound(pytest.fail.Exception):
    """What a leaking test fails with."""


class VeoSession:
    """Holds what one pytest session needs to be checked."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.config = config
        self.settings = settings
        self.watch: Watch | None = None
        self.verdicts: list[tuple[str, Any]] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Open the probes and take the runner's door, once all items are known."""
        if self.config.option.collectonly:
            return
        try:
            self._check(session.items)
        except BadSetting as error:
            raise pytest.UsageError(str(error)) from error
        from pytest_veo.probes.host import HostProbe

        host = HostProbe()
        host.open()
        self.watch = Watch(self.config, self.settings, Meter([host], host.troubles))
        self.watch.budget_of = self.budget_of  # type: ignore[method-assign]
        self.watch.report = self.report  # type: ignore[method-assign]
        self.config.pluginmanager.register(self.watch, "veo-watch")
        shim.install(self.config, self.run)

    def _check(self, items: list[pytest.Item]) -> None:
        date = today()
        for item in items:
            settings_.leak_budget(item, self.settings.budget, date)
            settings_.memory_budgets(item)

    def budget_of(self, item: pytest.Item) -> LeakBudget:
        base = self.settings.budget
        return settings_.leak_budget(item, base, today())

    def run(
        self, item: pytest.Item, *, log: bool, nextitem: pytest.Item | None
    ) -> list[pytest.TestReport]:
        assert self.watch is not None
        if self.watch._is_rerunning:
            return shim.original(item, log=log, nextitem=nextitem)
        return self.watch.run(item, log=log, nextitem=nextitem).reports

    def report(self, item: pytest.Item, measured: Measured) -> None:
        verdict = measured.verdict
        if verdict.outcome is not Outcome.CLEAN:
            self.verdicts.append((item.nodeid, verdict))
        if verdict.outcome.fails:
            measured.reports[1] = failed_report(
                item, measured.reports[1], failure.text(verdict)
            )

    def pytest_unconfigure(self) -> None:
        shim.uninstall(self.config)
        if self.watch:
            self.watch.meter.close()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        w = terminalreporter
        w.section("veo")
        t = self.watch.tally
        w.write_line(
            f"judged {t.judged} followed {t.followed} not followed {t.not_followed} tests {t.test_ns / 1e6:.0f} ms confirm {t.confirm_ns / 1e6:.0f} ms credit {self.watch.credit.left_ns / 1e6:.0f}"
        )
        for nodeid, v in self.verdicts:
            w.write_line(
                f"{v.outcome.value} {nodeid} runs={v.runs} {v.reason} "
                + "; ".join(
                    f"{f.counter} {f.growth:+} {f.per_run:.1f}/run" for f in v.findings
                )
            )


def failed_report(
    item: pytest.Item, passed: pytest.TestReport, text: str
) -> pytest.TestReport:
    """The call's report as a failure with our text; durations and sections stay."""

    def fail() -> None:
        raise LeakFound(text, pytrace=False)

    call = pytest.CallInfo.from_call(fail, when="call")
    report = pytest.TestReport.from_item_and_call(item, call)
    kept = {"duration", "start", "stop", "sections", "user_properties"}
    for name in kept & vars(passed).keys():
        setattr(report, name, getattr(passed, name))
    return report
