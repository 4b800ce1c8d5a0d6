from __future__ import annotations

from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from tests.plugin.conftest import Check


@pytest.mark.parametrize(
    ("chosen", "status"),
    [
        pytest.param("test_it", 0, id="a test ran"),
        pytest.param("nothing", 5, id="none was chosen"),
    ],
)
def test_the_collector_sees_the_whole_heap_again_after_the_session(
    pytester: pytest.Pytester, chosen: str, status: int
) -> None:
    pytester.makepyfile(
        test_it="""
        def test_it():
            pass
        """,
        outer="""
        import gc
        import pytest

        before = gc.get_freeze_count()
        status = pytest.main(["-q", "test_it.py", "--veo-leak-check", *ARGS])
        left = gc.get_freeze_count() - before > 10_000  # some are CPython 3.12's own
        print("status", int(status), "left frozen", left)
        """.replace("*ARGS", f'"-p", "no:randomly", "-k", "{chosen}"'),
    )
    result = pytester.runpython(pytester.path / "outer.py")
    result.stdout.fnmatch_lines([f"status {status} left frozen False"])


def test_re_runs_leave_a_freeze_of_the_user_in_force(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it="""
        import gc

        kept = []

        def test_freezes():
            gc.collect()
            gc.freeze()

        def test_leaks():
            kept.append(bytearray(100_000))

        def test_is_frozen_still():
            assert gc.get_freeze_count() > 10_000

        def test_thaws():
            gc.unfreeze()

        def test_leaks_again():
            kept.append(bytearray(100_000))

        def test_is_thawed_still():
            assert gc.get_freeze_count() < 10_000
        """
    )
    result = pytester.runpytest_subprocess(
        "-p", "no:randomly", "--veo-leak-check=deep", "--veo-gc=plain", "--veo-reruns=5"
    )
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(["leaks: 2"])


def test_where_nothing_is_put_aside_the_credit_pays_for_each_look(check: Check) -> None:
    result = check(
        """
        import pytest

        from pytest_veo.measure import gate, suspects

        suspects.DEAR_NS = 0
        gate.Credit.earn = lambda self, test_ns: setattr(self, "left_ns", 0)
        kept = []

        @pytest.mark.parametrize("n", range(30))
        def test_keeps_a_little(n):
            kept.append([bytes(100) for _ in range(60)])

        def test_leaks():
            kept.append(bytearray(100_000))
        """,
        "--veo-gc=plain",
    )
    result.assert_outcomes(passed=30, failed=1)
    result.stdout.fnmatch_lines(
        [
            "FAILED test_it.py::test_leaks - Failed: leaked 97.7 KiB a run *",
        ]
    )
    result.stdout.re_match_lines(
        [r"suspected, small and not followed up \(confirm-share\): \d+"]
    )
