"""One item's three phases, with the reports of what passed held back.

The verdict on a test is known only after its teardown, and the test is logged once.
What failed is logged when pytest logs it, so that `-x` still tears down all scopes at
the failing test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

from _pytest import runner


if TYPE_CHECKING:
    import pytest


def run_phases(
    item: pytest.Item, *, log: bool, nextitem: pytest.Item | None
) -> list[pytest.TestReport]:
    """Set up, call, tear down; as `_pytest.runner.runtestprotocol` does.

    Args:
        item: what to run.
        log: log what need not wait; `log_rest` logs the rest.
        nextitem: what pytest runs next.
    """
    # Only items that use fixtures have a request; pytest drops both afterwards.
    function: Any = item if hasattr(item, "_request") else None
    if function is not None and not function._request:
        function._initrequest()
    try:
        setup = runner.call_and_report(item, "setup", log=False)
        reports = [setup]
        if log and setup.outcome != "passed":
            item.ihook.pytest_runtest_logreport(report=setup)
        if setup.outcome == "passed":
            call = runner.call_and_report(item, "call", log=False)
            if log and call.outcome != "passed":
                item.ihook.pytest_runtest_logreport(report=call)
            reports.append(call)
        session = item.session
        after = None if session.shouldfail or session.shouldstop else nextitem
        reports.append(
            runner.call_and_report(item, "teardown", log=False, nextitem=after)
        )
        return reports
    finally:
        if function is not None:
            function._request = False
            function.funcargs = None


def log_rest(item: pytest.Item, reports: list[pytest.TestReport], passed: int) -> None:
    """Log what `run_phases` held back.

    Args:
        item: what was run.
        reports: of its phases; a verdict may have changed them since.
        passed: so many of them had passed, from the first on.
    """
    hook = item.ihook
    for place, report in enumerate(reports):
        if place < passed or report.when == "teardown":
            hook.pytest_runtest_logreport(report=report)


def passed_first(reports: list[pytest.TestReport]) -> int:
    """How many reports passed before the first that did not; the last is not asked."""
    count = 0
    for report in reports[:-1]:
        if report.outcome != "passed":
            break
        count += 1
    return count
