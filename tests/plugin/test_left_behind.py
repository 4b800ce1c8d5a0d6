"""A checked session leaves the process as a plain one does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from tests.plugin.conftest import Check


STATE = """
    import gc
    import os
    import signal
    import sys
    import threading
    import warnings

    HEAVY = (
        "cupy", "jax", "numba", "numpy", "onnxruntime", "pandas", "pynvml", "scipy",
        "torch", "tracemalloc_ext", "memray", "psutil",
    )

    def state():
        return {
            "heavy": [name for name in HEAVY if name in sys.modules],
            "gc": (gc.isenabled(), gc.get_threshold(), gc.get_debug()),
            "callbacks": len(gc.callbacks),
            "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook),
            "tracing": (sys.gettrace(), sys.getprofile()),
            "signals": [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGALRM)],
            "filters": list(warnings.filters),
            "threads": threading.active_count(),
            "environment": sorted(os.environ.keys() - {"PYTEST_CURRENT_TEST"}),
            "folder": os.getcwd(),
            "descriptors": sorted(os.listdir("/proc/self/fd")),
        }

    def pytest_collection_finish(session):
        session.config.state_before = state()

    def pytest_runtest_setup(item):
        item.config.state_inside = state()["heavy"]

    def pytest_sessionfinish(session):
        before, after = session.config.state_before, state()
        for name in before:
            if before[name] != after[name]:
                print("CHANGED", name, before[name], after[name])
        print("INSIDE", session.config.state_inside)
        print("LAST", [name for name in dir(sys) if name.startswith("last_")])
    """
SUITE = """
    import pytest

    @pytest.mark.parametrize("number", range(20))
    def test_empty(number):
        pass
    """


def test_nothing_is_imported_changed_or_left(
    check: Check, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(STATE)
    result = check(SUITE, "-s", "--veo-probes=")
    result.assert_outcomes(passed=20)
    text = result.stdout.str()
    assert "CHANGED" not in text
    result.stdout.fnmatch_lines(["*INSIDE []", "LAST []"])


def test_nothing_is_left_after_confirming_and_explaining_a_leak(
    check: Check, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(STATE)
    result = check(
        "kept = []\ndef test_leaks(): kept.append(bytearray(100_000))",
        "-s",
        "--veo-reruns=5",
    )
    result.assert_outcomes(failed=1)
    assert "CHANGED" not in result.stdout.str()
    result.stdout.fnmatch_lines(["*INSIDE []", "LAST []", "*allocated *test_it.py:2*"])


def test_a_collector_that_the_user_switched_off_stays_off(check: Check) -> None:
    result = check("""
        import gc

        kept = []

        def test_switches_off():
            gc.disable()

        def test_grows():
            assert not gc.isenabled()
            if not kept:
                kept.append(bytearray(5_000_000))

        def test_is_still_off():
            assert not gc.isenabled()
    """)
    result.assert_outcomes(passed=3)


def test_plain_mode_freezes_nothing(check: Check) -> None:
    result = check(
        """
        import gc

        kept = []

        def test_first():
            assert gc.get_freeze_count() == 0

        def test_grows():
            if not kept:
                kept.append(bytearray(5_000_000))

        def test_last():
            assert gc.get_freeze_count() == 0
        """,
        "--veo-gc=plain",
    )
    result.assert_outcomes(passed=3)


def test_a_plugin_that_is_loaded_but_not_asked_does_nothing(
    check: Check, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest("""
        import sys

        def pytest_sessionfinish():
            names = sorted(n for n in sys.modules if n.startswith("pytest_veo."))
            print("LOADED", *names)
    """)
    result = check("def test_it(): pass\n", "-s", level="")
    result.assert_outcomes(passed=1)
    (loaded,) = [line for line in result.stdout.lines if "LOADED" in line]
    assert "session" not in loaded
    assert "measure" not in loaded
    assert "probes" not in loaded


def test_pytest_s_runner_is_its_own_again(
    check: Check, pytester: pytest.Pytester
) -> None:
    result = check("def test_it(): pass\n", "--veo-reruns=0", inprocess=True)
    result.assert_outcomes(passed=1)
    pytester.makepyfile(
        test_it="kept = []\ndef test_it(): kept.append(bytearray(5_000_000))"
    )
    plain = check(None, inprocess=True, level="")
    plain.assert_outcomes(passed=1)
    assert "= veo =" not in plain.stdout.str()
