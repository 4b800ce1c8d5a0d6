"""Running an item again, as pytest itself would, and leaving nothing behind.

Function-scoped fixtures are made afresh; wider ones stand untouched. pytest tears
down to what the *next* item needs, so a stand-in for it that needs all of the
item's parents keeps every wider scope alive.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import Self

import pytest
from _pytest import runner
from _pytest.junitxml import xml_key

from pytest_veo import doctest_globals
from pytest_veo import timeouts
from pytest_veo.silence import kept_lists
from pytest_veo.silence import silence
from pytest_veo.unraisable import queue_of


if TYPE_CHECKING:
    from collections.abc import Callable

    from _pytest.runner import SetupState


class StandIn:
    """A next item that needs all of an item's parents, but not the item."""

    def __init__(self, item: pytest.Item) -> None:
        self._chain = [*item.listchain()[:-1], self]

    def listchain(self) -> list[Any]:
        """As `pytest.Item.listchain`."""
        return self._chain


class WiderTeardown:
    """Holds back the teardown of wider scopes while an item may be run again.

    Stands in for `SetupState.teardown_exact`: tears down the function scope at once
    and, unless the item looks guilty, the wider scopes too, inside the same teardown
    hook as always.
    """

    def __init__(
        self, session: pytest.Session, is_guilty: Callable[[pytest.Item], bool]
    ) -> None:
        """Take the place of the session's own.

        Args:
            session: the running one.
            is_guilty: looks at an item once its function scope is torn down.
        """
        self._state: SetupState = session._setupstate
        self._original = self._state.teardown_exact
        self._state.teardown_exact = self._teardown  # type: ignore[method-assign]
        self._item: pytest.Item | None = None
        self._is_guilty = is_guilty
        self.pending: list[pytest.Item | None] = []
        """What comes next, while wider scopes wait to be torn down for it."""
        self._is_rerun = False
        self.left_by: pytest.Item | None = None
        """The item for which wider scopes were left standing."""
        self.tore_down = False
        """Whether wider scopes have gone since `watch`: figures fall that are not
        the item's."""

    def watch(self, item: pytest.Item) -> None:
        """Look at this item once its function scope is torn down."""
        self._item = item
        self._is_rerun = False
        self.tore_down = False

    def _teardown(self, nextitem: pytest.Item | None) -> None:
        item = self._item
        if item is not None and self._is_rerun:
            # Not even a test that stops the session tears more down again.
            self._original(StandIn(item))  # type: ignore[arg-type]
            return
        self._is_rerun = True
        if item is None or _shares_parents(item, nextitem):
            self._original(nextitem)
            return
        # Errors of the function scope must not keep the wider ones up.
        try:
            self._original(StandIn(item))  # type: ignore[arg-type]
        except BaseException:
            self.tore_down = True
            self._original(nextitem)
            raise
        if not self._needs_wider(nextitem):
            return
        if self._is_guilty(item):
            self.pending.append(nextitem)
            return
        self.tore_down = True
        self._original(nextitem)

    def _needs_wider(self, nextitem: pytest.Item | None) -> bool:
        needed = nextitem.listchain() if nextitem is not None else []
        stack = list(self._state.stack)
        return stack != needed[: len(stack)]

    def leave_standing(self, item: pytest.Item) -> None:
        """Do not tear down what was held back: the item is about to be run again."""
        self.left_by = item
        self.pending.clear()

    def catch_up(self, item: pytest.Item) -> None:
        """Tear down what was left standing for another item that was not run again.

        Args:
            item: what runs now; what it needs stays.
        """
        left_by, self.left_by = self.left_by, None
        if left_by is None or left_by is item:
            return
        try:
            self._original(item)
        except Exception as error:
            warnings.warn(
                pytest.PytestWarning(f"teardown after {left_by.nodeid}: {error!r}"),
                stacklevel=2,
            )

    def leave(self) -> None:
        """The item is done with; teardown is pytest's own again."""
        self._item = None
        self.pending.clear()

    def finish(self, *, is_last: bool) -> pytest.TestReport | None:
        """Do the teardown that was held back; a failed report if it raised.

        Args:
            is_last: the session ends with this item: all that stands is torn down.
        """
        item, self._item = self._item, None
        if item is None or not (self.pending or is_last):
            return None
        nextitem = self.pending.pop() if self.pending else None
        self.tore_down = True
        if is_last or item.session.shouldfail or item.session.shouldstop:
            nextitem = None
        capture = item.config.pluginmanager.getplugin("capturemanager")
        capturing: contextlib.AbstractContextManager[Any] = (
            capture.item_capture("teardown", item)
            if capture is not None
            else contextlib.nullcontext()
        )
        call = pytest.CallInfo.from_call(
            lambda: self._run_held_back(item, capturing, nextitem),
            when="teardown",
            reraise=_ends_the_session(item.config),
        )
        if call.excinfo is None:
            return None
        return pytest.TestReport.from_item_and_call(item, call)

    def _run_held_back(
        self, item: pytest.Item, capturing: Any, nextitem: pytest.Item | None
    ) -> None:
        with capturing, timeouts.running(item):
            self._original(nextitem)


def attempts_left(item: pytest.Item) -> int:
    """How often pytest-rerunfailures may still run the item, should it fail."""
    plugin: Any = sys.modules.get("pytest_rerunfailures")
    made = getattr(item, "execution_count", None)
    if plugin is None or made is None:
        return 0
    return max(0, int(plugin.get_reruns_count(item) or 0) + 1 - int(made))


def _ends_the_session(config: pytest.Config) -> tuple[type[BaseException], ...]:
    """What is no failure of a test, as pytest's own runner has it."""
    if config.getoption("usepdb", False):
        return (pytest.exit.Exception,)
    return (pytest.exit.Exception, KeyboardInterrupt)


def _shares_parents(item: pytest.Item, nextitem: pytest.Item | StandIn | None) -> bool:
    if isinstance(nextitem, StandIn):
        return True
    return nextitem is not None and nextitem.parent is item.parent


class Rerunner:
    """Runs one item again and again between `__enter__` and `__exit__`.

    Nothing of a re-run is reported, logged, warned about or kept: report
    sections, properties, log records, warnings, sub-reports and the finalizers
    that pytest adds to wider fixtures for every use are taken back after each run.
    """

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._stand_in = StandIn(item)
        self._stack = contextlib.ExitStack()
        self._sections = len(item._report_sections)
        self._properties = len(item.user_properties)
        self._suite_properties = _suite_properties(item.config)
        self._known_suite_properties = len(self._suite_properties)
        self._failed_subtests = _failed_subtests(item.config)
        self._known_failed_subtests = dict(self._failed_subtests)
        self._unraisable = queue_of(item.config)
        self._warnings: list[warnings.WarningMessage] | None = None
        self._kept = [(held, len(held)) for held in kept_lists(item.config)]
        self._fixturedefs = _wider_fixturedefs(item)
        self._folder_numbers = _folder_numbers(item.config)
        self._known_folder_numbers = dict(self._folder_numbers)

    def __enter__(self) -> Self:
        config = self._item.config
        if self._unraisable:
            queued = list(self._unraisable)  # of the user's own run
            self._stack.callback(self._unraisable.extend, queued)
        self._stack.enter_context(silence(config))
        self._warnings = self._stack.enter_context(warnings.catch_warnings(record=True))
        config.pluginmanager.register(self, "veo-rerun")
        self._stack.callback(config.pluginmanager.unregister, self)
        return self

    def __exit__(self, *_: object) -> None:
        self._forget_unraisable()
        self._stack.close()

    def run(self) -> str:
        """Run the item once with fresh function-scoped fixtures.

        Returns:
            Nothing if it passed, else why it did not.
        """
        item = self._item
        doctest_globals.restore(item)
        self._forget_unraisable()
        try:
            # Within a context of its own, what was warned about once counts anew: as
            # between two tests, so that no module's list of warnings grows.
            with timeouts.running(item), warnings.catch_warnings():
                reports = runner.runtestprotocol(
                    item,
                    log=False,
                    nextitem=self._stand_in,  # type: ignore[arg-type]
                )
            why = _why_not(reports) or self._why_subtests()
        except pytest.fail.Exception as error:  # a time limit, between two phases
            why = f"a re-run did not pass ({error})"
        self._take_back()
        return why

    def _forget_unraisable(self) -> None:
        if self._unraisable:
            self._unraisable.clear()

    def _why_subtests(self) -> str:
        failed = self._failed_subtests != self._known_failed_subtests
        return "a re-run did not pass (a subtest failed)" if failed else ""

    def _take_back(self) -> None:
        if self._warnings:
            self._warnings.clear()
        self._failed_subtests.clear()
        self._failed_subtests.update(self._known_failed_subtests)
        del self._item._report_sections[self._sections :]
        del self._item.user_properties[self._properties :]
        del self._suite_properties[self._known_suite_properties :]
        for held, known in self._kept:
            del held[known:]
        for fixturedef, count in self._fixturedefs.values():
            del fixturedef._finalizers[count:]
        # A new name for each run's folder would stay: pathlib interns names, and on
        # Python 3.12 what is interned never goes.
        self._folder_numbers.clear()
        self._folder_numbers.update(self._known_folder_numbers)
        forget_last_exception()

    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> None:
        """Note the wider fixtures of those that are asked for while an item runs.

        Pytest has just left one finalizer on each.
        """
        for name in fixturedef.argnames:
            wider = request._get_active_fixturedef(name)
            scope = getattr(wider, "scope", "function")
            if scope != "function" and id(wider) not in self._fixturedefs:
                known = max(0, len(wider._finalizers) - 1)
                self._fixturedefs[id(wider)] = (wider, known)

    def pytest_fixture_post_finalizer(self, fixturedef: Any) -> None:
        """Remove a re-run's temporary folder: pytest keeps it for days."""
        if fixturedef.argname != "tmp_path" or fixturedef.cached_result is None:
            return
        folder = fixturedef.cached_result[0]
        is_pytest_s = fixturedef.func.__module__ == "_pytest.tmpdir"
        if is_pytest_s and isinstance(folder, Path) and not _is_inside(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_inside(folder: Path) -> bool:
    """Whether the process works in this folder."""
    try:
        return Path.cwd().is_relative_to(folder)
    except FileNotFoundError:  # it worked in one that is gone
        return False


def _suite_properties(config: pytest.Config) -> list[tuple[str, str]]:
    """The properties of all of the session's tests that junit XML will have."""
    xml = config.stash.get(xml_key, None)
    return xml.global_properties if xml is not None else []


def _folder_numbers(config: pytest.Config) -> dict[str, int]:
    """The next number of each temporary folder's name; pytest counts since 9.1."""
    factory = getattr(config, "_tmp_path_factory", None)
    numbers: dict[str, int] = getattr(factory, "_next_number", {})
    return numbers


def _failed_subtests(config: pytest.Config) -> dict[Any, int]:
    """How many subtests of each test failed; pytest counts while it runs them."""
    try:
        from _pytest.subtests import failed_subtests_key
    except ImportError:  # pytest 8
        return {}
    return config.stash.get(failed_subtests_key, {})


def _why_not(reports: list[pytest.TestReport]) -> str:
    for report in reports:
        if not report.passed:
            how = f"{report.when} {report.outcome}"
            return f"a re-run did not pass ({how}: {_message(report)})"
    return ""


def _message(report: pytest.TestReport) -> str:
    """What a report of a failure or skip comes down to, in one line."""
    found: Any = report.longrepr
    if isinstance(found, tuple):  # of a skip: file, line and reason
        found = found[-1]
    crash = getattr(found, "reprcrash", None)
    lines = str(found if crash is None else crash.message).strip().splitlines()
    return lines[0] if lines else report.outcome


def forget_last_exception() -> None:
    """Drop `sys.last_*`: the traceback there keeps a test's locals alive."""
    for name in ("last_exc", "last_value", "last_traceback", "last_type"):
        if hasattr(sys, name):
            delattr(sys, name)


def _wider_fixturedefs(item: pytest.Item) -> dict[int, tuple[Any, int]]:
    """The item's fixtures that outlive it, with their present finalizer counts.

    A function-scoped fixture leaves a finalizer on every wider fixture it asked
    for, on each use, until that one is torn down; once the user is finished it
    does nothing.
    """
    known = getattr(item, "_fixtureinfo", None)
    if known is None:
        return {}
    return {
        id(fixturedef): (fixturedef, len(fixturedef._finalizers))
        for fixturedefs in known.name2fixturedefs.values()
        for fixturedef in fixturedefs
        if fixturedef.scope != "function"
    }
