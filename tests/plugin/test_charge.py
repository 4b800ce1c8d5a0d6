"""What wider fixtures take is theirs; what a test puts into them is the test's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from tests.plugin.conftest import Check


QUICK = ("--veo-reruns=5", "--veo-evidence=off")


@pytest.mark.parametrize("place", ["", "class TestIt:"], ids=["alone", "in a class"])
@pytest.mark.parametrize("scope", ["class", "session"])
def test_what_a_wider_fixture_takes_is_not_its_first_user_s(
    check: Check, scope: str, place: str
) -> None:
    me = "self, " if place else ""
    result = check(f"""
        import os

        import pytest

        @pytest.fixture(scope="{scope}")
        def wide():
            with open(os.devnull) as null:
                yield [bytearray(5_000_000), [[i] for i in range(10_000)], null]

        {place or "if True:"}
            def test_first({me}wide):
                pass

            def test_second({me}wide):
                pass
    """)
    result.assert_outcomes(passed=2)
    text = result.stdout.str()
    for word in ("retention", "leaks", "suspected", "did not give back"):
        assert word not in text
    result.stdout.fnmatch_lines(["2 tests judged, *"])


def test_what_a_wider_fixture_leaves_to_the_collector_hides_no_leak(
    check: Check,
) -> None:
    result = check(
        """
        import pytest

        kept = []

        @pytest.fixture(params="ab", scope="module")
        def wide():
            for _ in range(300):
                circle = [object()]
                circle.append(circle)

        @pytest.mark.parametrize("keeps", [False, True])
        def test_it(wide, keeps):
            if keeps:
                kept.append([{"a": number} for number in range(5)])
        """,
        "--veo-evidence=off",
        "-k",
        "a-True or b-False",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["  test_it.py::test_it[[]a-True]: leaked *"])


def test_what_a_test_puts_into_a_wider_fixture_is_its_leak(check: Check) -> None:
    result = check(
        """
        import pytest

        @pytest.fixture(scope="module")
        def wide():
            return []

        def test_leaks(wide):
            wide.append(bytearray(100_000))

        def test_clean(wide):
            assert wide
        """,
        *QUICK,
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        ["  test_it.py::test_leaks: leaked 97.7 KiB a run (host.heap)"]
    )


def test_a_fixture_that_does_not_give_back_is_reported_under_its_name(
    check: Check,
) -> None:
    source = """
        import pytest

        kept = []

        @pytest.fixture(scope="module")
        def keeping():
            kept.append(bytearray(5_000_000))

        @pytest.fixture(scope="module")
        def giving_back():
            yield bytearray(5_000_000)

        def test_one(keeping, giving_back):
            pass

        def test_two(keeping):
            pass
        """
    result = check(source, *QUICK)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "fixtures that did not give back: 1",
            "  keeping (module): kept 4.8 MiB (host.*), not given back when it was "
            "torn down",
        ]
    )
    assert check(None, *QUICK, "--veo-strict").ret == pytest.ExitCode.TESTS_FAILED


def test_a_fixture_that_leaks_at_each_teardown_is_an_error_of_the_teardown(
    check: Check,
) -> None:
    result = check(
        """
        import pytest

        kept = []
        ups = []

        @pytest.fixture(scope="class")
        def leaking():
            ups.append(1)
            kept.append(bytearray(1_572_832))

        @pytest.fixture(scope="class")
        def clean():
            yield bytearray(100_000)

        class TestOne:
            def test_it(self, leaking, clean):
                pass

        class TestTwo(TestOne):
            pass

        class TestThree(TestOne):
            pass

        class TestFour(TestOne):
            pass

        def test_ups():
            assert ups == [1, 1, 1, 1]
        """,
        *QUICK,
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=5, errors=1)
    result.stdout.fnmatch_lines(
        [
            "_* ERROR at teardown of TestThree.test_it _*",
            "fixture leaking (class): leaked 1.5 MiB a run (host.heap)",
            "*confirmed: not given back, again and again (3 teardowns)",
            "fixtures that did not give back: 1",
            "  leaking (class): leaked 1.5 MiB a run (host.heap)",
        ]
    )
