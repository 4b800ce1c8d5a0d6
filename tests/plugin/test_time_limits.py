"""The user's time limits hold for each run, and re-runs spend none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugin.test_companions import QUICK
from tests.plugin.test_companions import outcomes


if TYPE_CHECKING:
    from tests.plugin.conftest import Check


SLOW_IN_ALL = """
    import time

    import pytest

    kept = []
    runs = []

    @pytest.mark.timeout(0.5{more})
    def test_leaks():
        kept.append(bytearray(100_000))
        time.sleep(0.15)

    @pytest.mark.timeout(0.5{more})
    def test_hangs_when_run_again():
        kept.append(bytearray(100_000))
        runs.append(1)
        if len(runs) > 1:
            time.sleep(30)

    @pytest.mark.timeout(0.5{more})
    def test_hangs():
        time.sleep(30)

    def test_unlimited():
        pass
    """


@pytest.mark.parametrize("more", ["", ", func_only=True"])
def test_a_time_limit_holds_for_each_run_and_not_for_all(
    check: Check, more: str
) -> None:
    result = check(
        SLOW_IN_ALL.format(more=more), *QUICK, "-v", plugins=["pytest_timeout"]
    )
    assert outcomes(result) == {
        "test_leaks": "FAILED",
        "test_hangs_when_run_again": "PASSED",
        "test_hangs": "FAILED",
        "test_unlimited": "PASSED",
    }
    result.stdout.fnmatch_lines(
        [
            "leaked 97.7 KiB a run (host.heap)",
            "*Failed: Timeout (>0.5s) from pytest-timeout.",
            "leaks: 1",
            "  test_it.py::test_hangs_when_run_again: * stopped after 1 run: a re-run "
            "did not pass (call failed: Failed: Timeout (>0.5s) from pytest-timeout.)",
        ]
    )


def test_threads_that_watch_the_time_are_nobody_s(check: Check) -> None:
    result = check(
        """
        import pytest

        kept = []

        def test_unlimited():
            pass

        @pytest.mark.timeout(30, method="thread")
        def test_limited():
            pass

        @pytest.mark.timeout(30, method="thread")
        def test_leaks():
            kept.append(bytearray(100_000))
        """,
        *QUICK,
        "-v",
        plugins=["pytest_timeout"],
    )
    assert outcomes(result) == {
        "test_unlimited": "PASSED",
        "test_limited": "PASSED",
        "test_leaks": "FAILED",
    }
    assert "host.threads" not in result.stdout.str()


def test_a_fault_handler_s_limit_is_not_spent_by_re_runs(check: Check) -> None:
    result = check(
        """
        import time

        kept = []

        def test_leaks():
            kept.append(bytearray(100_000))
            time.sleep(0.15)
        """,
        *QUICK,
        "-ofaulthandler_timeout=0.5",
    )
    result.assert_outcomes(failed=1)
    assert "Timeout" not in result.stdout.str() + result.stderr.str()
