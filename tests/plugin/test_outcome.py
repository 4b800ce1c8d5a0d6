"""A leaking test is exactly one failure, whoever counts."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from tests.plugin.conftest import Check


LEAKY = """
    kept = []

    def test_leaks():
        kept.append(bytearray(100_000))

    def test_does_not():
        bytearray(100_000)
"""
QUICK = "--veo-reruns=5"


def test_a_leak_is_one_failure_and_its_clean_twin_passes(check: Check) -> None:
    result = check(LEAKY, QUICK, "-rA")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            "test_it.py F. * [[]100%[]]",
            "*= FAILURES =*",
            "*_ test_leaks _*",
            "leaked 97.7 KiB a run (host.heap)",
            "  allocated * test_it.py:4 * kept.append(bytearray(100_000)) *",
            "  held by * test_it.kept * (list of bytearray, * entries, +1 a run)",
            "  host.heap * -> * (+9?.? KiB) * then +97.7 KiB each run",
            "  confirmed: it grew again in [345] runs with fresh fixtures",
            "  ruled out: a first use (growth went on after the warm-up runs)*",
            "*= PASSES =*",
            "*= veo =*",
            "leaks: 1",
            "  test_it.py::test_leaks: leaked 97.7 KiB a run (host.heap)",
            "2 tests judged, * run again in * (tests took *)",
            "*= short test summary info =*",
            "PASSED test_it.py::test_does_not",
            "FAILED test_it.py::test_leaks - Failed: leaked 97.7 KiB a run (host.heap)",
        ]
    )


def test_stop_at_first_stops_behind_the_leak(check: Check) -> None:
    result = check(LEAKY, QUICK, "-x")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*! stopping after 1 failures !*"])


def test_maxfail_counts_a_leak_once(check: Check) -> None:
    result = check(
        """
        kept = []

        def test_leaks():
            kept.append(bytearray(100_000))

        def test_fails():
            assert False

        def test_is_not_run():
            pass
        """,
        QUICK,
        "--maxfail=2",
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*! stopping after 2 failures !*"])


def test_last_failed_runs_the_leak_again(
    check: Check, pytester: pytest.Pytester
) -> None:
    check(LEAKY, QUICK, "-pcacheprovider").assert_outcomes(failed=1, passed=1)
    result = check(None, QUICK, "-pcacheprovider", "--lf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["run-last-failure: rerun previous 1 failure"])


def test_junit_has_one_case_with_one_failure(
    check: Check, pytester: pytest.Pytester
) -> None:
    check(LEAKY, QUICK, "--junit-xml=junit.xml")
    suite = ET.parse(pytester.path / "junit.xml").getroot()[0]
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "2",
        "failures": "1",
        "errors": "0",
    }
    leaking, clean = suite.findall("testcase")
    failures = leaking.findall("failure")
    assert [failure.get("message") for failure in failures] == [
        failures[0].get("message")
    ]
    assert str(failures[0].get("message")).startswith(
        "Failed: leaked 97.7 KiB a run (host.heap)"
    )
    assert [child.tag for child in clean] == ["properties"]


def test_properties_and_sections_of_re_runs_are_not_shown(
    check: Check, pytester: pytest.Pytester
) -> None:
    result = check(
        """
        import logging
        import sys

        kept = []

        def test_leaks(record_property, record_testsuite_property, caplog):
            kept.append(bytearray(100_000))
            record_property("answer", 42)
            record_testsuite_property("asked", "once")
            print("printed")
            print("complained", file=sys.stderr)
            logging.getLogger().warning("logged")
            assert len(caplog.records) == 1
        """,
        QUICK,
        "--junit-xml=junit.xml",
        "-ojunit_family=xunit1",
    )
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert text.count("\nprinted") == 1
    assert text.count("\ncomplained") == 1
    assert text.count("logged") == 1
    xml = (pytester.path / "junit.xml").read_text()
    assert xml.count('name="answer"') == 1
    assert xml.count('name="asked"') == 1


@pytest.mark.parametrize(
    "options",
    [
        ("-s",),
        ("--capture=sys",),
        ("--capture=tee-sys",),
        ("-olog_cli=true", "-olog_cli_level=INFO"),
    ],
    ids=" ".join,
)
def test_what_re_runs_print_and_log_is_never_shown(
    check: Check, options: tuple[str, ...]
) -> None:
    result = check(
        """
        import logging
        import os
        import sys

        kept = []

        def test_leaks(request):
            kept.append(bytearray(100_000))
            print("printed")
            print("complained", file=sys.stderr)
            sys.stdout.flush()
            os.write(1, b"written\\n")
            logging.getLogger().warning("logged")
            assert sys.stdout.encoding
        """,
        QUICK,
        "-rN",
        "--show-capture=no",
        *options,
    )
    text = result.stdout.str() + result.stderr.str()
    result.assert_outcomes(failed=1)
    # Three are enough for large even growth where a run takes long.
    assert re.search("in [345] runs with fresh fixtures", text)
    for word in ("printed", "complained", "written", "logged"):
        assert text.count(word) <= 1


def test_a_run_without_terminal_still_fails(check: Check) -> None:
    result = check(LEAKY, QUICK, "-pno:terminal")
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_collecting_only_checks_nothing(check: Check) -> None:
    result = check(LEAKY, "--collect-only", "-q", inprocess=True)
    assert result.ret == pytest.ExitCode.OK
    text = result.stdout.str()
    assert "test_it.py::test_leaks" in text
    assert "= veo =" not in text


def test_show_setup_runs_unmeasured_and_says_so(check: Check) -> None:
    result = check(LEAKY, "--setup-show", inprocess=True)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "not measured: 2 tests that pytest ran to show their set-up",
            "NOTHING WAS MEASURED",
        ]
    )


def test_a_run_without_pytest_s_own_small_plugins_is_measured(check: Check) -> None:
    names = ("setuponly", "setupplan", "junitxml", "tmpdir", "subtests", "debugging")
    result = check("def test_it(): pass", *(f"-pno:{name}" for name in names))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 tests judged, *"])


def test_allowed_leaks_pass_and_are_listed_with_their_reason(check: Check) -> None:
    result = check(
        """
        import pytest

        kept = []

        @pytest.mark.veo_leak(allow=True, reason="upstream #12", until="2999-12-31")
        def test_leaks():
            kept.append(bytearray(100_000))
        """,
        QUICK,
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "allowed leaks: 1",
            "  test_it.py::test_leaks: leaked 97.7 KiB a run (host.heap), "
            "allowed: upstream #12",
        ]
    )


LARGE = LEAKY.replace("100_000", "20_000_000")


def test_without_re_runs_growth_is_listed_as_unconfirmed(check: Check) -> None:
    result = check(LARGE, "--veo-reruns=0")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "suspected, not confirmed: *",
            "  test_it.py::test_leaks: kept 19.1 MiB (host.*), re-runs are not "
            "allowed (reruns=0)",
        ]
    )


def test_strict_fails_on_unconfirmed_growth(check: Check) -> None:
    result = check(LARGE, "--veo-reruns=0", "--veo-strict")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=2)
