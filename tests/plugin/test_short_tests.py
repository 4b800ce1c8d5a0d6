"""Tests so short that Python's blocks are counted over several together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from tests.plugin.conftest import Check


SUITE = """
import itertools
import time

import pytest

KEPT = []
PLACES = itertools.count()
LIST = [None] * 2_000_000

def empty(): pass

def lists(): KEPT.extend([[] for _ in range(20)])

def many_strings():
    time.sleep(0.03)  # so long that it pays for being counted
    for n in range(2000):
        LIST[next(PLACES)] = str(n) + "x"

def strings():
    for n in range(24):
        LIST[next(PLACES)] = str(n) + "x"

@pytest.mark.parametrize("n", range(1000))
def test_it(n):
    CALLED.get(n, empty)()
"""


def checked(check: Check, called: str, *options: str) -> pytest.RunResult:
    return check(SUITE + f"\nCALLED = {called}\n", *options)


def test_empty_tests_are_clean(check: Check) -> None:
    result = checked(check, "{}")
    result.assert_outcomes(passed=1000)
    result.stdout.no_fnmatch_line("suspected*")
    result.stdout.no_fnmatch_line("leaks*")


@pytest.mark.parametrize(
    "kept",
    ["lists", "many_strings"],
)
def test_one_test_that_keeps_much_is_named(check: Check, kept: str) -> None:
    result = checked(check, f"{{700: {kept}}}", "--veo-evidence=off")
    result.assert_outcomes(passed=999, failed=1)
    result.stdout.fnmatch_lines(["FAILED test_it.py::test_it?700? - *"])


def test_strings_that_one_of_many_tests_keeps_are_nobody_s(
    check: Check, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest("""
        from pytest_veo.measure import thrift

        thrift.SHARE = 0.0  # none is counted before its group is full
    """)
    result = checked(check, "{700: many_strings}")
    result.assert_outcomes(passed=1000)
    result.stdout.fnmatch_lines(
        [
            "suspected, not confirmed: 1",
            "  test_it.py::test_it?7??]: kept 2,* Python blocks (host.python_blocks), "
            "by this test or one of the 32 before it: *",
        ]
    )
    result.stdout.no_fnmatch_line("retention*")


def test_strings_that_many_tests_keep_are_found(check: Check) -> None:
    """Each keeps two dozen of them: no object for the collector, no native heap.

    They are more than are ever counted together, so one is counted alone.
    """
    called = "{n: strings for n in range(900, 940)}"
    result = checked(check, called, "--maxfail=1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.re_match_lines([r"leaked 24(\.\d)? Python blocks a run"])


@pytest.mark.parametrize(
    ("called", "failed"), [("{}", 0), ("{700: many_strings}", 1)], ids=["clean", "leak"]
)
def test_beside_a_device_tests_are_counted_together_as_well(
    check: Check, pytester: pytest.Pytester, called: str, failed: int
) -> None:
    pytester.makeconftest(
        """
        from pytest_veo.testing import ScriptedProbe

        def pytest_veo_probes(config):
            return [ScriptedProbe("fake", used=0)]
        """
    )
    result = checked(check, called)
    result.assert_outcomes(passed=1000 - failed, failed=failed)
    result.stdout.fnmatch_lines(["1000 tests judged (??? of them, the shortest, in *"])
    result.stdout.no_fnmatch_line("suspected*")
