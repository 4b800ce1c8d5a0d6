"""What failed, skipped or xfailed is not judged, let go of, and blamed on nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugin.test_companions import HAS_SUBTESTS


if TYPE_CHECKING:
    from tests.plugin.conftest import Check


BEHIND = """

    def test_behind():
        import gc
        assert gone() is None

    def test_last():
        pass
    """
START = """
    import unittest
    import weakref

    import pytest

    class Large(bytearray):
        pass

    gone = lambda: None

    def large():
        global gone
        made = Large(3_000_000)
        gone = weakref.ref(made)
        return made
    """
WAYS = {
    "call": """
    def test_before():
        held = large()
        assert len(held) == 0
    """,
    "deeper in the call": """
    def deeper(held):
        raise ValueError(len(held))

    def test_before():
        deeper(large())
    """,
    "chained": """
    def test_before():
        held = large()
        try:
            other = held
            raise KeyError("first")
        except KeyError as error:
            raise ValueError("second") from error
    """,
    "a group": """
    def one():
        held = large()
        raise ValueError(1)

    def test_before():
        errors = []
        try:
            one()
        except ValueError as error:
            errors.append(error)
        raise ExceptionGroup("both", errors)
    """,
    "setup": """
    @pytest.fixture
    def broken():
        held = large()
        raise ValueError(len(held))

    def test_before(broken):
        pass
    """,
    "teardown": """
    @pytest.fixture
    def broken():
        yield
        held = large()
        raise ValueError(len(held))

    def test_before(broken):
        pass
    """,
    "skip": """
    def test_before():
        held = large()
        pytest.skip("not here")
    """,
    "xfail": """
    @pytest.mark.xfail
    def test_before():
        held = large()
        assert len(held) == 0
    """,
    "xfail in setup": """
    @pytest.fixture
    def broken():
        held = large()
        raise ValueError(len(held))

    @pytest.mark.xfail
    def test_before(broken):
        pass
    """,
    "unittest": """
    class TestIt(unittest.TestCase):
        def test_before(self):
            self.held = large()
            self.assertEqual(len(self.held), 0)
    """,
    "subtest": """
    def test_before(subtests):
        with subtests.test():
            held = large()
            assert len(held) == 0
        del held
    """,
}


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(way, id=name, marks=[HAS_SUBTESTS] * (name == "subtest"))
        for name, way in WAYS.items()
    ],
)
def test_large_locals_are_gone_before_the_next_test(check: Check, way: str) -> None:
    result = check(START + way + BEHIND)
    counts = result.parseoutcomes()
    behind = 3 if "yield" in way else 2  # the call before a broken teardown passed
    assert counts["passed"] == behind
    text = result.stdout.str()
    assert "retention" not in text
    assert "leaks" not in text
    assert "suspected" not in text
    result.stdout.fnmatch_lines(["2 tests judged, 1 not judged (*), *"])


def test_an_xpassed_test_is_not_judged(check: Check) -> None:
    result = check("""
        import pytest

        kept = []

        @pytest.mark.xfail
        def test_leaks():
            kept.append(bytearray(100_000))
    """)
    result.assert_outcomes(xpassed=1)
    assert "leaks" not in result.stdout.str()
    result.stdout.fnmatch_lines(["NOTHING WAS MEASURED"])


def test_a_failure_s_own_text_and_locals_are_shown_as_ever(check: Check) -> None:
    result = check(
        """
        def test_fails():
            answer = 42
            assert answer == 41
        """,
        "--showlocals",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E       assert 42 == 41", "answer     = 42"])


def test_pdb_finds_the_frames_of_a_failure(
    check: Check, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest("""
        import sys

        def pytest_sessionfinish():
            frame = sys.last_value.__traceback__
            while frame.tb_next:
                frame = frame.tb_next
            print("ANSWER", frame.tb_frame.f_locals["answer"])
    """)
    pytester.makepyfile(
        quiet="class Pdb:\n"
        "    quitting = False\n"
        "    def __init__(self, **_): pass\n"
        "    def reset(self): pass\n"
        "    def interaction(self, *_): pass\n"
    )
    result = check(
        """
        def test_fails():
            answer = 42
            assert answer == 41
        """,
        "--pdb",
        "--pdbcls=quiet:Pdb",
        "-s",
    )
    result.stdout.fnmatch_lines(["*ANSWER 42"])


def test_level_off_leaves_a_test_alone(check: Check) -> None:
    result = check("""
        import pytest

        kept = []

        @pytest.mark.veo_leak(level="off")
        def test_leaks():
            kept.append(bytearray(100_000))

        def test_clean():
            assert len(kept) == 1
    """)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["1 tests judged, *"])
    assert "leaks" not in result.stdout.str()
