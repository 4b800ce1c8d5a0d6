"""pytest's entry point: hooks of a few lines that call the rooms below.

Nothing is measured, opened or imported beyond this until a session asks for it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from typing import Any

import pytest

from pytest_veo import hookspec
from pytest_veo import options
from pytest_veo.errors import BadSetting
from pytest_veo.errors import VeoError


if TYPE_CHECKING:
    from pytest_veo.measure.meter import Meter
    from pytest_veo.measure.window import MemoryWindows
    from pytest_veo.publish import Results
    from pytest_veo.results import SessionResults
    from pytest_veo.session import CheckedSession
    from pytest_veo.settings import Settings


SESSION_KEY: pytest.StashKey[CheckedSession] = pytest.StashKey()
RESULTS_KEY: pytest.StashKey[SessionResults] = pytest.StashKey()

_MARKERS = (
    "veo_leak(tolerance=, counters=, reruns=, level=, allow=, reason=, until=): how "
    "this test is checked for leaks; allow=True with a reason lets a known one pass",
    "veo_memory(peak=, growth=, on='host.rss'): limits on one counter while the test "
    "runs",
)


def pytest_addoption(
    parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager
) -> None:
    """Declare the options and ini keys."""
    options.add_options(parser)
    config: Any = pluginmanager.get_plugin("pytestconfig")
    wrong = options.wrong_level(map(str, config.invocation_params.args))
    if wrong is not None:
        from pytest_veo import settings  # which only a slip is worth

        try:
            settings.level_of(wrong, "--veo-leak-check")
        except BadSetting as error:
            raise pytest.UsageError(str(error)) from None


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks of our own."""
    pluginmanager.add_hookspecs(hookspec)
    pluginmanager.register(_Starter(), "veo-start")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers, and what is to be done at the very end."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    # What is registered first runs last: after pytest has collected five times over,
    # looking for unraisable exceptions.
    config.add_cleanup(lambda: _thaw(config))


class _Starter:
    """Starts the checks once all other plugins are configured."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        is_checked = options.level(config) != "off"
        is_kept = any(options.text(config, name)[0] for name in options.KEPT)
        if not is_checked and not is_kept:
            return
        try:
            _start(config) if is_checked else _only_keep(config)
        except VeoError as error:
            raise pytest.UsageError(str(error)) from error


def _thaw(config: pytest.Config) -> None:
    session = config.stash.get(SESSION_KEY, None)
    if session is not None and session.watch is not None:
        session.watch.collector.let_go()


def _only_keep(config: pytest.Config) -> None:
    """Keep times, outcomes and frames of tests that nobody checks for leaks."""
    if hasattr(config, "workerinput"):
        return
    from pytest_veo import settings
    from pytest_veo.unchecked import UncheckedResults

    results = UncheckedResults(config, settings.resolve(config))
    config.pluginmanager.register(results, "veo-results")
    _publish(config, results)


def _start(config: pytest.Config) -> None:
    """Measure where tests run, gather where results are shown."""
    from pytest_veo import settings
    from pytest_veo.results import SessionResults
    from pytest_veo.session import CheckedSession

    resolved = settings.resolve(config)
    session = CheckedSession(config, resolved)
    config.stash[SESSION_KEY] = session
    config.pluginmanager.register(session, "veo-session")
    if not hasattr(config, "workerinput"):
        _compare(config, resolved)
        config.stash[RESULTS_KEY] = SessionResults(config, resolved)
        config.pluginmanager.register(config.stash[RESULTS_KEY], "veo-results")
        _publish(config, config.stash[RESULTS_KEY])


def _compare(config: pytest.Config, resolved: Settings) -> None:
    update = config.getoption("veo_update_baseline") or config.getoption("veo_accept")
    if not (resolved.baseline or update):
        return
    from pytest_veo import baselines

    asked = baselines.resolve(config, resolved)
    if asked is not None:
        check = baselines.BaselineCheck(config, asked)
        config.pluginmanager.register(check, "veo-baseline")


def _publish(config: pytest.Config, results: Results) -> None:
    from pytest_veo import publish

    settings = publish.resolve(config, os.environ)
    if settings.is_needed:
        publisher = publish.Publisher(config, settings, results)
        config.pluginmanager.register(publisher, "veo-publish")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Hold tests to their memory budgets, if any has one."""
    marked = [item for item in session.items if _has_memory_marker(item)]
    if not marked or session.config.option.collectonly:
        return
    from pytest_veo.fixtures import MemoryBudgets

    try:
        budgets = MemoryBudgets(_meter(session.config), marked)
    except BadSetting as error:
        raise pytest.UsageError(str(error)) from error
    session.config.pluginmanager.register(budgets, "veo-memory-budgets")


def _has_memory_marker(item: pytest.Item) -> bool:
    return item.get_closest_marker("veo_memory") is not None


def _meter(config: pytest.Config) -> Meter:
    """The session's meter; one of its own where nothing is checked for leaks."""
    session = config.stash.get(SESSION_KEY, None)
    if session is not None:
        return session.meter
    from pytest_veo import settings
    from pytest_veo.session import open_meter

    meter = open_meter(config, settings.resolve(config))
    config.add_cleanup(meter.close)
    return meter


@pytest.fixture
def veo_memory(request: pytest.FixtureRequest) -> MemoryWindows:
    """Open windows on memory inside a test.

    `with veo_memory.window("decode") as w: ...`, then
    `w.growth("torch.allocated")` and `w.peak("host.rss")`.
    """
    from pytest_veo.measure.window import MemoryWindows

    return MemoryWindows(_meter(request.config))


def pytest_report_header(config: pytest.Config) -> str | None:
    """One line: what is watched, and what is not."""
    session = config.stash.get(SESSION_KEY, None)
    if session is not None:
        return session.header()
    if config.getoption("veo_baseline"):
        return "veo: NO memory is compared with --veo-baseline: no --veo-leak-check"
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what this process measured to where results are shown."""
    checked = session.config.stash.get(SESSION_KEY, None)
    if checked is None or checked.watch is None:
        return
    told = checked.outcome()
    results = session.config.stash.get(RESULTS_KEY, None)
    if results is not None:
        results.take(told)
    else:
        from pytest_veo.results import WORKER_KEY

        session.config.workeroutput[WORKER_KEY] = told  # type: ignore[attr-defined]
