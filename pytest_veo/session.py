"""A checked session: probes opened, items measured, verdicts put on reports."""

from __future__ import annotations

import datetime
import functools
from typing import TYPE_CHECKING
from typing import Any

import pytest

from pytest_veo import doctest_globals
from pytest_veo import options
from pytest_veo import settings as settings_
from pytest_veo.archiving import environment_rows
from pytest_veo.errors import BadSetting
from pytest_veo.measure import shim
from pytest_veo.measure.measured import Measured
from pytest_veo.measure.meter import Meter
from pytest_veo.measure.watch import Watch
from pytest_veo.probes.catalogue import CATALOGUE
from pytest_veo.probes.catalogue import open_probes
from pytest_veo.probes.sleeping import SleepingProbe
from pytest_veo.report import failure
from pytest_veo.report import summary
from pytest_veo.report.summary import Totals
from pytest_veo.results import RECORD_ATTRIBUTE
from pytest_veo.results import REFUSED_KEY
from pytest_veo.results import WORKER_KEY
from pytest_veo.telemetry.environment import Surroundings
from pytest_veo.unraisable import Unraisable
from pytest_veo.verdict import Outcome


if TYPE_CHECKING:
    from pytest_veo.archive.record import Record
    from pytest_veo.budget import LeakBudget
    from pytest_veo.probes.base import Probe
    from pytest_veo.settings import Settings
    from pytest_veo.verdict import Verdict


class CheckedSession:
    """Runs in every process that runs tests: alone, or as an xdist worker."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.config = config
        self.settings = settings
        self.totals = Totals()
        self.meter = open_meter(config, settings)
        self.watch: Watch | None = None
        self.unraisable = Unraisable(config)
        self._probe_names = tuple(
            dict.fromkeys((*CATALOGUE, *(probe.name for probe in self.meter.probes)))
        )
        self._own_budgets: dict[pytest.Item, LeakBudget] = {}
        self._writes_junit = bool(config.getoption("xmlpath", None))
        self._keeps_all = bool(
            settings.archive or settings.baseline or settings.html or self._writes_junit
        )
        self._surroundings = Surroundings(lambda: environment_rows(config))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Check every marker; then take the runner's door."""
        if self.config.option.collectonly or self.watch is not None:
            return
        if options.shows_setup(self.config):
            return
        try:
            self._check(session)
        except BadSetting as error:
            if not hasattr(self.config, "workeroutput"):
                raise pytest.UsageError(str(error)) from error
            # A worker that raised would look crashed; the controller raises this.
            session.items.clear()
            self.config.workeroutput[WORKER_KEY] = {REFUSED_KEY: str(error)}
            return
        self.watch = Watch(
            self.config,
            self.settings,
            self.meter,
            self.totals,
            own_budgets=self._own_budgets,
            judged=self.judged,
            tells_all=self._keeps_all,
        )
        self.config.pluginmanager.register(self.watch, "veo-watch")
        shim.install(self.config, self.run)

    def _check(self, session: pytest.Session) -> None:
        today = datetime.datetime.now(tz=datetime.UTC).date()
        base = self.settings.budget
        hook_budgets = bool(self.config.hook.pytest_veo_budget.get_hookimpls())
        marked: dict[Any, bool] = {}
        for item in session.items:
            is_marked = _is_marked(item, marked)
            if not is_marked and not hook_budgets:
                continue
            budget = base
            if hook_budgets:
                budget = (
                    item.ihook.pytest_veo_budget(
                        config=self.config, item=item, budget=base
                    )
                    or base
                )
            budget = settings_.leak_budget(item, budget, today)
            place = f"{item.nodeid}: veo_leak"
            settings_.check_counters(budget, self._probe_names, place)
            settings_.memory_budgets(item)
            if budget is not base:
                self._own_budgets[item] = budget

    def run(
        self, item: pytest.Item, *, log: bool, nextitem: pytest.Item | None
    ) -> list[pytest.TestReport]:
        """Run one item, measured; a re-run of ours goes straight to pytest."""
        assert self.watch is not None
        if self.watch.inquiry.is_rerunning:
            return shim.original(item, log=log, nextitem=nextitem)
        if hasattr(item, "dtest"):
            with doctest_globals.kept(item):
                reports = self.watch.run(item, log=log, nextitem=nextitem)
                if any(report.failed for report in reports):
                    doctest_globals.restore(item)  # a plugin may run it once more
        else:
            reports = self.watch.run(item, log=log, nextitem=nextitem)
        if self.unraisable.queue:
            self.unraisable.tell()
        return reports

    def judged(self, item: pytest.Item, measured: Measured) -> None:
        """Put the verdict on the reports."""
        verdict = measured.verdict
        if verdict.outcome.fails:
            measured.reports[1] = failed_report(
                item, measured.reports[1], failure.text(verdict)
            )
        if measured.leaking_fixtures and measured.reports[-1].passed:
            # An error of the teardown that proved it: not the test's own failure.
            told = [
                f"fixture {name}: {failure.text(leak)}"
                for name, leak in measured.leaking_fixtures
            ]
            measured.reports[-1] = failed_report(
                item, measured.reports[-1], "\n".join(told)
            )
        if verdict.outcome is Outcome.CLEAN and not self._keeps_all:
            return
        record = _record(item, measured, self.config)
        if self._keeps_all:
            name, rows = self._surroundings.name(len(self.meter.seen))
            record = record._replace(environment=name, environment_rows=rows)
        plain = record.to_dict()
        setattr(measured.reports[-1], RECORD_ATTRIBUTE, plain)
        if self._writes_junit:
            from pytest_veo.archive.export import junit

            measured.reports[-1].user_properties += junit.properties(plain)

    def pytest_unconfigure(self) -> None:
        """Give pytest its runner back."""
        shim.uninstall(self.config)
        if self.watch is not None:
            self.watch.collector.thaw()
        self.unraisable.give_back()
        self.meter.close()

    def _fixtures(self) -> list[dict[str, Any]]:
        if self.watch is None:
            return []
        return [_fixture_record(*row) for row in self.watch.debts.verdicts()]

    def header(self) -> str:
        """The line under pytest's header."""
        probes = self.meter.probes
        asleep = [probe.name for probe in probes if _is_asleep(probe)]
        awake = [probe.name for probe in probes if not _is_asleep(probe)]
        troubles = [str(trouble) for trouble in self.meter.troubles]
        return summary.header(self.settings.level.value, awake, asleep, troubles)

    def outcome(self) -> dict[str, Any]:
        """What this process tells the controller at its end, as plain values."""
        return {
            "totals": self.totals.to_dict(),
            "watched": sorted(str(counter) for counter in self.meter.seen),
            "probes": sorted({counter.probe for counter in self.meter.seen}),
            "troubles": [str(trouble) for trouble in self.meter.troubles],
            "fixtures": self._fixtures(),
        }


def _is_asleep(probe: Probe) -> bool:
    return isinstance(probe, SleepingProbe) and probe.is_asleep


def _fixture_record(name: str, verdict: Verdict) -> dict[str, Any]:
    from pytest_veo.archive.record import Record

    return Record(nodeid=name, verdict=verdict).to_dict()


def open_meter(config: pytest.Config, settings: Settings) -> Meter:
    """The meter over the wanted probes, ours and those of other plugins.

    Raises:
        BadSetting: a name that no probe has, or that two have.
    """
    catalogue = dict(CATALOGUE)
    for found in config.hook.pytest_veo_probes(config=config):
        for probe in found or ():
            if probe.name in catalogue:
                raise BadSetting(
                    f"pytest_veo_probes: the name {probe.name!r} is taken, "
                    "give the probe another"
                )
            catalogue[probe.name] = functools.partial(_same, probe)
    for option, names in (
        ("probes", settings.probes),
        ("require", settings.require),
    ):
        _, place = options.text(config, option)
        settings_.check_probes(names, tuple(catalogue), place)
    _, place = options.text(config, "tolerance")
    settings_.check_counters(settings.budget, tuple(catalogue), place)
    opened = open_probes(settings.probes or tuple(catalogue), catalogue)
    return Meter(opened.ready, opened.troubles)


def _same(probe: Probe) -> Probe:
    return probe


_NAMES = frozenset({"veo_leak", "veo_memory"})


def _is_marked(item: pytest.Item, known: dict[Any, bool]) -> bool:
    """Whether the item or a parent has a marker of ours; parents are asked once."""
    if any(mark.name in _NAMES for mark in item.own_markers):
        return True
    node: Any = item.parent
    if node not in known:
        known[node] = any(
            mark.name in _NAMES
            for parent in node.listchain()
            for mark in parent.own_markers
        )
    return known[node]


def failed_report(
    item: pytest.Item, passed: pytest.TestReport, text: str
) -> pytest.TestReport:
    """The call's report as a failure with our text; times and sections stay."""
    call = pytest.CallInfo.from_call(lambda: _fail(text), when="call")
    report = pytest.TestReport.from_item_and_call(item, call)
    for name, value in vars(passed).items():
        if name not in ("outcome", "longrepr"):
            setattr(report, name, value)
    return report


def _fail(text: str) -> None:
    pytest.fail(text, pytrace=False)


def _record(item: pytest.Item, measured: Measured, config: pytest.Config) -> Record:
    from pytest_veo.archive.record import CounterRecord
    from pytest_veo.archive.record import Record

    first = measured.first
    rows: tuple[CounterRecord, ...] = ()
    if first is not None:
        rows = tuple(
            CounterRecord(
                counter=counter.key,
                device=counter.device,
                unit=counter.unit.value,
                before=after - change,
                after=after,
                growth=change,
            )
            for counter, after, change in zip(
                first.after.layout, first.after.values, first.growth, strict=True
            )
        )
    worker = getattr(config, "workerinput", {}).get("workerid", "")
    started = datetime.datetime.fromtimestamp(
        getattr(measured.reports[0], "start", 0), tz=datetime.UTC
    )
    worst = next((r for r in measured.reports if not r.passed), measured.reports[-1])
    return Record(
        nodeid=item.nodeid,
        worker=worker,
        started_at=started.isoformat(timespec="milliseconds"),
        duration_ns=measured.duration_ns,
        test_outcome=worst.outcome,
        verdict=measured.verdict,
        counters=rows,
    )
