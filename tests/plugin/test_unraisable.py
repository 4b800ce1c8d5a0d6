"""What finalizers raise is told of the test it belongs to, and fails no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from tests.plugin.conftest import Check


SOURCE = """
    import os

    kept = []

    class Cycle:
        def __init__(self):
            self.me = self
            self.file = open(os.devnull)

    def test_leaves_garbage():
        Cycle()

    def test_behind():
        pass

    def test_leaves_garbage_and_leaks():
        kept.append(bytearray(100_000))
        Cycle()

    def test_last():
        pass
    """
QUICK = ("--veo-reruns=5", "--veo-evidence=off")


@pytest.mark.parametrize("reruns", ["--veo-reruns=0", "--veo-reruns=5"])
def test_where_warnings_are_errors_the_next_test_is_not_blamed(
    check: Check, reruns: str
) -> None:
    result = check(SOURCE, reruns, "--veo-evidence=off", "-Werror")
    failed = 1 if reruns.endswith("5") else 0
    result.assert_outcomes(passed=4 - failed, failed=failed)


@pytest.mark.skipif(
    pytest.version_tuple < (8, 4), reason="older ones do not collect at the end"
)
def test_where_warnings_are_errors_pytest_tells_at_the_end_as_ever(
    check: Check,
) -> None:
    result = check(SOURCE, "--veo-reruns=0", "-Werror")
    plain = check(None, "-Werror", level="")
    for run in (result, plain):
        assert run.ret == pytest.ExitCode.TESTS_FAILED
        assert "PytestUnraisableExceptionWarning" in run.stderr.str()


def test_a_warning_is_told_of_the_test_that_left_the_garbage(check: Check) -> None:
    result = check(SOURCE, *QUICK, "-Wdefault::ResourceWarning")
    result.assert_outcomes(passed=3, failed=1, warnings=2)
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_leaves_garbage",
            "test_it.py::test_leaves_garbage_and_leaks",
            "*ResourceWarning: unclosed file *",
        ]
    )
