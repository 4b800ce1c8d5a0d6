"""One door into pytest's runner for every plugin that owns the protocol.

pytest's runner and the plugins that run items themselves (pytest-rerunfailures and
its kind) all call `_pytest.runner.runtestprotocol`; the latter bound the function
when they were imported. Standing in for it serves them all without taking the
protocol from any. A nested session (pytester) has a config of its own and is not
touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

from _pytest import runner


if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


_RUN = "_veo_run"
"""Of a config: what runs its items instead of pytest's own function. No stash key: that
takes three calls a test; no table of ours: evidence would find all that pytest holds
through it."""

_original: Callable[..., list[pytest.TestReport]] = runner.runtestprotocol


def runtestprotocol(
    item: pytest.Item, log: bool = True, nextitem: pytest.Item | None = None
) -> list[pytest.TestReport]:
    """As pytest's own; measured when the item's config asks for it."""
    run: Callable[..., list[pytest.TestReport]]
    run = getattr(item.config, _RUN, _original)
    return run(item, log=log, nextitem=nextitem)


def original(item: pytest.Item, *, log: bool, nextitem: Any) -> list[pytest.TestReport]:
    """Pytest's own function, unmeasured."""
    return _original(item, log=log, nextitem=nextitem)


def install(config: pytest.Config, run: Callable[..., Any]) -> None:
    """Let `run(item, log=, nextitem=)` run this config's items."""
    setattr(config, _RUN, run)
    runner.runtestprotocol = runtestprotocol
    for plugin in config.pluginmanager.get_plugins():
        if getattr(plugin, "runtestprotocol", None) is _original:
            plugin.runtestprotocol = runtestprotocol


def uninstall(config: pytest.Config) -> None:
    """Give the config's items back to pytest."""
    vars(config).pop(_RUN, None)
