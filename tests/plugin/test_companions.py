"""Beside other plugins and other kinds of tests: leaks are named, twins are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from tests.plugin.conftest import Check


HAS_SUBTESTS = pytest.mark.skipif(
    not hasattr(pytest, "Subtests"), reason="subtests came with pytest 9"
)
QUICK = ("--veo-reruns=5", "--veo-evidence=off")


def outcomes(result: pytest.RunResult) -> dict[str, str]:
    """How each test ended, from a verbose run."""
    lines = (line.split() for line in result.stdout.lines)
    words = [line for line in lines if len(line) > 1 and "::" in line[0]]
    return {
        line[0].partition("::")[2]: line[1]
        for line in words
        if line[1] in ("PASSED", "FAILED", "ERROR", "SKIPPED", "XFAIL", "XPASS")
    }


def test_unittest_parametrized_tests_and_doctests(check: Check) -> None:
    result = check(
        '''
        import unittest

        import pytest

        kept = []

        class TestCase(unittest.TestCase):
            ups = []

            @classmethod
            def setUpClass(cls):
                cls.ups.append(1)

            def setUp(self):
                self.large = bytearray(100_000)

            def test_clean(self):
                assert self.ups == [1]

            def test_leaks(self):
                kept.append(self.large)
                assert self.ups == [1]

        @pytest.mark.parametrize("count", [0, 100_000])
        def test_parametrized(count):
            if count:
                kept.append(bytearray(count))

        def clean():
            """
            >>> len(bytearray(100_000))
            100000
            """

        def leaks():
            """
            >>> kept.append(bytearray(100_000))
            """
        ''',
        *QUICK,
        "--doctest-modules",
        "-v",
    )
    assert outcomes(result) == {
        "TestCase::test_clean": "PASSED",
        "TestCase::test_leaks": "FAILED",
        "test_parametrized[0]": "PASSED",
        "test_parametrized[100000]": "FAILED",
        "test_it.clean": "PASSED",
        "test_it.leaks": "FAILED",
    }
    result.stdout.fnmatch_lines(["leaks: 3"])


@HAS_SUBTESTS
def test_subtests(check: Check) -> None:
    result = check(
        """
        kept = []

        def test_subtests_clean(subtests):
            for number in range(3):
                with subtests.test(number=number):
                    bytearray(100_000)

        def test_subtests_leak(subtests):
            for number in range(3):
                with subtests.test(number=number):
                    kept.append(bytearray(100_000))

        def test_a_failed_subtest_is_not_judged(subtests):
            with subtests.test():
                kept.append(bytearray(100_000))
                assert not kept
        """,
        *QUICK,
        "-v",
    )
    assert outcomes(result) == {
        "test_subtests_clean": "PASSED",
        "test_subtests_leak": "FAILED",
        "test_a_failed_subtest_is_not_judged": "FAILED",
    }
    text = result.stdout.str()
    assert text.count("SUBPASSED(number=0)") == 2
    assert "contains 1 failed subtest\n" in text
    result.stdout.fnmatch_lines(["leaks: 1"])


def test_every_worker_s_leak_reaches_the_controller(
    check: Check, pytester: pytest.Pytester
) -> None:
    source = """
        kept = []

        def test_leaks(worker_id):
            kept.append(bytearray(100_000))
            assert worker_id.startswith("gw")

        def test_does_not():
            bytearray(100_000)
        """
    pytester.makepyfile(test_other=source)
    result = check(
        source,
        *QUICK,
        "-n2",
        "--dist=loadfile",
        "--veo-archive=kept",
        "--veo-require=host",
        plugins=["xdist.plugin"],
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(failed=2, passed=2)
    result.stdout.fnmatch_lines(
        [
            "leaks: 2",
            "  test_*.py::test_leaks: leaked 97.7 KiB a run (host.heap)",
            "  test_*.py::test_leaks: leaked 97.7 KiB a run (host.heap)",
            "4 tests judged, * run again in * (tests took *)",
        ]
    )
    from pytest_veo.archive.store import load_run
    from pytest_veo.archive.store import run_ids

    archive = pytester.path / "kept"
    run = load_run(archive, run_ids(archive)[0])
    assert sorted((r.nodeid, r.worker[:2], r.verdict.is_leak) for r in run.records) == [
        ("test_it.py::test_does_not", "gw", False),
        ("test_it.py::test_leaks", "gw", True),
        ("test_other.py::test_does_not", "gw", False),
        ("test_other.py::test_leaks", "gw", True),
    ]
    assert len({record.worker for record in run.records}) == 2


def test_rerunfailures_s_attempts_count_once(
    check: Check, pytester: pytest.Pytester
) -> None:
    result = check(
        """
        import pytest

        kept = []
        runs = []

        def test_leaks():
            kept.append(bytearray(100_000))

        @pytest.mark.flaky(reruns=1)
        def test_marked():
            kept.append(bytearray(100_000))

        def test_passes_in_the_end():
            runs.append(1)
            assert len(runs) > 1

        def test_clean():
            pass
        """,
        *QUICK,
        "-v",
        "--reruns=2",
        "--veo-archive=kept",
        plugins=["pytest_rerunfailures"],
    )
    result.assert_outcomes(failed=2, passed=2)
    assert outcomes(result) == {
        "test_leaks": "FAILED",
        "test_marked": "FAILED",
        "test_passes_in_the_end": "PASSED",
        "test_clean": "PASSED",
    }
    result.stdout.fnmatch_lines(["leaks: 2", "*2 failed, 2 passed, 4 rerun in *"])
    from pytest_veo.archive.store import load_run
    from pytest_veo.archive.store import run_ids

    archive = pytester.path / "kept"
    run = load_run(archive, run_ids(archive)[0])
    assert [(r.nodeid, r.verdict.is_leak) for r in run.records] == [
        ("test_it.py::test_leaks", True),
        ("test_it.py::test_marked", True),
        ("test_it.py::test_passes_in_the_end", False),
        ("test_it.py::test_clean", False),
    ]


def test_asyncio_tests_are_judged_like_others(check: Check) -> None:
    result = check(
        """
        import asyncio

        import pytest
        import pytest_asyncio

        kept = []
        ups = []

        @pytest_asyncio.fixture(scope="module", loop_scope="module")
        async def wide():
            ups.append(1)
            yield
            ups.append(-1)

        @pytest_asyncio.fixture
        async def narrow():
            yield bytearray(100_000)

        async def test_clean(narrow):
            await asyncio.sleep(0)

        async def test_leaks(narrow):
            await asyncio.sleep(0)
            kept.append(narrow)

        @pytest.mark.asyncio(loop_scope="module")
        async def test_wide_loop_leaks(wide):
            kept.append(bytearray(100_000))
            assert ups == [1]

        def test_after():
            assert ups == [1]
        """,
        *QUICK,
        "-v",
        "-oasyncio_mode=auto",
        "-oasyncio_default_fixture_loop_scope=function",
        plugins=["pytest_asyncio.plugin"],
    )
    assert outcomes(result) == {
        "test_clean": "PASSED",
        "test_leaks": "FAILED",
        "test_wide_loop_leaks": "FAILED",
        "test_after": "PASSED",
    }


def test_coverage_is_measured_all_the_same(check: Check) -> None:
    result = check(
        """
        kept = []

        def test_leaks():
            kept.append(bytearray(100_000))

        def test_does_not():
            bytearray(100_000)
        """,
        *QUICK,
        "-v",
        "--cov=test_it",
        "--cov-report=term",
        plugins=["pytest_cov.plugin"],
    )
    assert outcomes(result) == {"test_leaks": "FAILED", "test_does_not": "PASSED"}
    result.stdout.fnmatch_lines(["test_it.py * 100%"])


def test_random_order_is_the_same_for_each_run(check: Check) -> None:
    result = check(
        """
        import random

        kept = []
        seen = set()

        def test_leaks():
            seen.add(random.random())
            kept.append(bytearray(100_000))

        def test_does_not():
            assert len(seen) < 2
        """,
        *QUICK,
        "-v",
        "--randomly-seed=7",
        plugins=["pytest_randomly"],
    )
    assert outcomes(result) == {"test_leaks": "FAILED", "test_does_not": "PASSED"}


def test_sessions_inside_a_checked_session_are_left_alone(check: Check) -> None:
    result = check(
        """
        import pytest

        pytest_plugins = ["pytester"]

        def test_plain_inside(pytester):
            pytester.makepyfile(
                "kept = []\\ndef test_inner(): kept.append(bytearray(100_000))"
            )
            pytester.runpytest_inprocess("-ppytest_veo.plugin").assert_outcomes(passed=1)

        @pytest.mark.veo_leak(level="off")
        def test_checked_inside(pytester):
            pytester.makepyfile(
                "kept = []\\ndef test_inner(): kept.append(bytearray(100_000))"
            )
            result = pytester.runpytest_inprocess(
                "-ppytest_veo.plugin",
                "--veo-leak-check",
                "--veo-reruns=5",
                "--veo-evidence=off",
            )
            result.assert_outcomes(failed=1)
        """,
        *QUICK,
        "-v",
    )
    assert outcomes(result) == {
        "test_plain_inside": "PASSED",
        "test_checked_inside": "PASSED",
    }


@pytest.mark.parametrize("only", ["", "--only-rerun=ValueError"])
def test_rerunfailures_sets_wider_fixtures_up_once_whatever_leaks(
    check: Check, pytester: pytest.Pytester, only: str
) -> None:
    pytester.makeconftest(
        """
        import pytest

        ups = {"session": 0, "module": 0}

        @pytest.fixture(scope="session", autouse=True)
        def whole():
            ups["session"] += 1
            yield
            assert ups["session"] == 1

        @pytest.fixture(scope="module", autouse=True)
        def wide(request):
            ups[request.module.__name__] = ups.get(request.module.__name__, 0) + 1
            yield
            assert ups[request.module.__name__] == 1
        """
    )
    source = """
        kept = []

        def test_clean():
            pass

        def test_leaks():
            kept.append(bytearray(100_000))
        """
    pytester.makepyfile(test_other=source)
    result = check(
        source,
        *QUICK,
        "--reruns=1",
        *filter(None, [only]),
        plugins=["pytest_rerunfailures"],
    )
    result.assert_outcomes(failed=2, passed=2)
    result.stdout.fnmatch_lines(["leaks: 2"])


def test_a_leaking_doctest_is_named_when_rerunfailures_runs_it_again(
    check: Check,
) -> None:
    result = check(
        '''
        kept = []

        def leaks():
            """
            >>> kept.append(bytearray(1_572_832))
            """
        ''',
        *QUICK,
        "--doctest-modules",
        "--reruns=1",
        plugins=["pytest_rerunfailures"],
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["  test_it.py::test_it.leaks: leaked 1.5 MiB a run (host.heap)"]
    )


def test_what_reporting_plugins_note_of_each_run_is_taken_back(
    check: Check, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(
        """
        import types

        import pytest

        class Listener:
            noted = []

            @pytest.hookimpl(wrapper=True)
            def pytest_fixture_setup(self, fixturedef, request):
                self.noted.append([fixturedef.argname, object()])
                return (yield)

            @pytest.hookimpl(wrapper=True)
            def pytest_runtest_setup(self, item):
                self.noted.append([item.nodeid, object()] * 50)
                return (yield)

        def pytest_configure(config):
            config._benchmarksession = types.SimpleNamespace(benchmarks=[])
            config._syrupy = types.SimpleNamespace(_assertions=[])
            config.pluginmanager.register(Listener(), "allure_listener")

        @pytest.fixture
        def measured(request):
            request.config._benchmarksession.benchmarks.append(bytearray(100_000))
            request.config._syrupy._assertions.append(bytearray(100_000))
            yield bytearray(100_000)

        def pytest_unconfigure(config):
            assert len(Listener.noted) == 4
            assert len(config._benchmarksession.benchmarks) == 2
            print("all was taken back")
        """
    )
    result = check(
        """
        kept = []

        def test_clean(measured):
            pass

        def test_leaks(measured):
            kept.append(measured)
        """,
        *QUICK,
        "-v",
        level="deep",
    )
    assert outcomes(result) == {"test_clean": "PASSED", "test_leaks": "FAILED"}
    result.stdout.fnmatch_lines(["all was taken back"])


def test_runners_of_asyncio_tests_leave_nothing_on_wider_fixtures(check: Check) -> None:
    """The plugin asks for its runner by name while the test runs."""
    result = check(
        """
        import asyncio

        async def test_it():
            await asyncio.sleep(0)
        """,
        "-oasyncio_mode=auto",
        "-oasyncio_default_fixture_loop_scope=function",
        plugins=["pytest_asyncio.plugin"],
        level="deep",
    )
    result.assert_outcomes(passed=1)


SUBTESTS_OF_ITS_OWN = () if hasattr(pytest, "Subtests") else ("pytest_subtests.plugin",)


def test_all_companions_at_once_name_the_leaks_and_set_wide_fixtures_up_once(
    check: Check, pytester: pytest.Pytester
) -> None:
    if SUBTESTS_OF_ITS_OWN:
        pytest.importorskip("pytest_subtests")
    result = check(
        '''
        import asyncio
        import pathlib
        import unittest

        import pytest

        kept = []

        def note(word):
            with pathlib.Path("ups").open("a") as ups:
                ups.write(word + " ")

        @pytest.fixture(scope="session")
        def wide():
            note("session")
            yield bytearray(200_000)
            note("session-down")

        @pytest.fixture(scope="module")
        def mid(wide):
            note("module")
            yield bytearray(200_000)
            note("module-down")

        class TestCase(unittest.TestCase):
            def test_clean(self):
                with self.subTest(number=1):
                    bytearray(100_000)

            def test_leaks(self):
                with self.subTest(number=1):
                    kept.append(bytearray(100_000))

        @pytest.mark.parametrize("count", [0, 100_000], ids=["clean", "leaks"])
        def test_sized(count, mid):
            if count:
                kept.append(bytearray(count))

        @pytest.mark.asyncio
        async def test_async_clean(mid):
            await asyncio.sleep(0)

        @pytest.mark.asyncio
        async def test_async_leaks(mid):
            kept.append(bytearray(100_000))

        def test_parts_clean(subtests, mid):
            with subtests.test(number=1):
                bytearray(100_000)

        def test_parts_leaks(subtests, mid):
            with subtests.test(number=1):
                kept.append(bytearray(100_000))

        def clean():
            """
            >>> len(bytearray(100_000))
            100000
            """

        def leaks():
            """
            >>> kept.append(bytearray(100_000))
            """
        ''',
        *QUICK,
        "-n1",
        "--reruns=1",
        "--timeout=60",
        "--cov=test_it",
        "--randomly-seed=7",
        "--doctest-modules",
        "-rA",
        plugins=[
            "xdist",  # by this name pytest-randomly knows it
            "pytest_rerunfailures",
            "pytest_asyncio.plugin",
            "pytest_timeout",
            "pytest_cov.plugin",
            "pytest_randomly",
            *SUBTESTS_OF_ITS_OWN,
        ],
        level="deep",
    )
    names = [
        "TestCase::test_{}",
        "test_sized[{}]",
        "test_async_{}",
        "test_parts_{}",
        "test_it.{}",
    ]
    ends = dict(line.split()[1::-1] for line in result.outlines if "::" in line[:30])
    told = {name: word for name, word in ends.items() if word in ("PASSED", "FAILED")}
    assert told == {
        f"test_it.py::{name.format(kind)}": word
        for name in names
        for kind, word in (("clean", "PASSED"), ("leaks", "FAILED"))
    }
    result.stdout.fnmatch_lines(["leaks: 5", "*5 failed, 5 passed, 5 rerun in *"])
    ups = (pytester.path / "ups").read_text().split()
    assert ups == ["session", "module", "module-down", "session-down"]
