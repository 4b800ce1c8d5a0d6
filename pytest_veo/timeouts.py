"""The user's time limits hold for each run of a test, not for what we do between.

pytest-timeout starts one clock for an item, and pytest's own fault handler another;
confirming would spend what they leave.
"""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import sys
from typing import TYPE_CHECKING
from typing import Any


if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Iterator

    import pytest


def stops(config: pytest.Config) -> list[Callable[[pytest.Item], None]]:
    """What stops an item's clocks: the user's part of it is over."""
    found: list[Callable[[pytest.Item], None]] = []
    hook: Any = config.hook
    if hasattr(hook, "pytest_timeout_cancel_timer"):
        found.append(lambda item: hook.pytest_timeout_cancel_timer(item=item))
    if _dumps_late(config):
        found.append(lambda _: faulthandler.cancel_dump_traceback_later())
    return found


def _dumps_late(config: pytest.Config) -> bool:
    if not config.pluginmanager.hasplugin("faulthandler"):
        return False
    return float(config.getini("faulthandler_timeout") or 0) > 0


@contextlib.contextmanager
def running(item: pytest.Item) -> Iterator[None]:
    """Give one more run of the item its own clock, the same as the first had.

    A run that is too slow fails instead of ending the process: only the user's own
    run may do that.
    """
    hook: Any = item.config.hook
    plugin: Any = sys.modules.get("pytest_timeout")
    if plugin is None or not hasattr(hook, "pytest_timeout_set_timer"):
        yield
        return
    settings = plugin._get_item_settings(item)
    if not settings.timeout or settings.timeout <= 0 or settings.func_only:
        yield
        return
    if hasattr(signal, "SIGALRM"):
        settings = settings._replace(method="signal")
    hook.pytest_timeout_set_timer(item=item, settings=settings)
    try:
        yield
    finally:
        hook.pytest_timeout_cancel_timer(item=item)
