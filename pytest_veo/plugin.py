"""pytest's entry point: hooks of a few lines that call the rooms below."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_veo import hookspec
from pytest_veo import settings
from pytest_veo.budget import Level
from pytest_veo.errors import BadSetting


if TYPE_CHECKING:
    pass


SESSION_KEY = pytest.StashKey["VeoSession"]()

_MARKERS = (
    "veo_leak(tolerance=, counters=, reruns=, level=, allow=, reason=, until=): how "
    "this test is checked for leaks; allow=True with a reason lets a known one pass",
    "veo_memory(peak=, growth=, on='host.rss'): limits on one counter while the test "
    "runs",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options and ini keys."""
    settings.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks of our own."""
    pluginmanager.add_hookspecs(hookspec)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Resolve the settings; start the session's checks when they ask for any."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    try:
        resolved = settings.resolve(config)
    except BadSetting as error:
        raise pytest.UsageError(str(error)) from error
    if resolved.level is not Level.OFF:
        start(config, resolved)


def start(config: pytest.Config, resolved: settings.Settings) -> None:
    """Measure this session."""
    from pytest_veo.session import VeoSession

    session = VeoSession(config, resolved)
    config.stash[SESSION_KEY] = session
    config.pluginmanager.register(session, "veo-session")
