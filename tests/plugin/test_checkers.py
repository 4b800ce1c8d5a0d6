"""Every figure of the host: an injected leak is found, its clean twin is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugin.test_companions import outcomes


if TYPE_CHECKING:
    from tests.plugin.conftest import Check


LEAKS = """
    import ctypes
    import mmap
    import os
    import subprocess
    import sys
    import threading

    import pytest

    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    kept = []
    go_on = threading.Event()

    def python_objects():
        return [[i] for i in range(2_000)]

    def native():
        return libc.malloc(70_000)

    def mapped():
        return mmap.mmap(-1, 4_000_000, flags=mmap.MAP_PRIVATE)

    def shared():
        return mmap.mmap(-1, 4_000_000)

    def descriptor():
        return open(os.devnull)

    def thread():
        made = threading.Thread(target=go_on.wait, daemon=True)
        made.start()
        return made

    def child():
        return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(90)"])
    """
HANDLES = ("descriptor", "thread", "child")
TESTS = """
    def give_back(made):
        if isinstance(made, int):
            libc.free(made)
        elif isinstance(made, subprocess.Popen):
            made.kill()
            made.wait()
        elif isinstance(made, threading.Thread):
            go_on.set()
            made.join()
            go_on.clear()
        elif not isinstance(made, list):
            made.close()

    @pytest.fixture(scope="module", autouse=True)
    def end():
        yield
        for made in kept:
            give_back(made)

    def test_twin():
        give_back(WHAT())

    def test_leaks():
        kept.append(WHAT())
    """


@pytest.mark.parametrize(
    ("what", "figure"),
    [
        ("python_objects", "leaked 1[56]* KiB a run (host.heap)"),
        ("native", "leaked 68.* KiB a run (host.heap)"),
        ("mapped", "leaked 3.8 MiB a run (host.mapped)"),
        ("shared", "leaked 3.8 MiB a run (host.shared)"),
        ("descriptor", "leaked 1 descriptor a run (host.descriptors)"),
        ("thread", "leaked 1 thread a run (host.threads)"),
        ("child", "leaked 1 child process a run (host.children)"),
    ],
)
def test_a_leak_of_this_kind_is_found_and_its_twin_is_clean(
    check: Check, what: str, figure: str
) -> None:
    result = check(
        LEAKS + TESTS.replace("WHAT", what),
        "-v",
        "--veo-evidence=off",
        f"--veo-reruns={12 if what in HANDLES else 5}",
    )
    assert outcomes(result) == {"test_twin": "PASSED", "test_leaks": "FAILED"}
    result.stdout.fnmatch_lines([figure, f"  test_it.py::test_leaks: {figure}"])


def test_a_leak_on_every_second_run_is_found(check: Check) -> None:
    result = check(
        """
        kept = []
        runs = []

        def test_leaks():
            if not runs:
                runs.append(0)
            runs[0] += 1
            if runs[0] % 2:
                kept.append(bytearray(100_000))
        """,
        "--veo-evidence=off",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["leaked 4*.* KiB a run (host.heap)"])


SETTINGS = """
    import pytest

    kept = []

    @pytest.mark.veo_leak(tolerance="host.heap=200 KiB,host.python_blocks=64 B")
    def test_within_its_tolerance():
        kept.append(bytearray(100_000))

    @pytest.mark.veo_leak(tolerance="host.heap=50 KiB")
    def test_above_its_tolerance():
        kept.append(bytearray(100_000))

    @pytest.mark.veo_leak(counters=["host.descriptors", "torch.*"])
    def test_other_counters():
        kept.append(bytearray(100_000))

    @pytest.mark.veo_leak(counters=["host.descriptors"], reruns=0)
    def test_other_counters_without_re_runs():
        kept.append(bytearray(100_000))

    @pytest.mark.veo_leak(counters="host.heap")
    def test_these_counters():
        kept.append(bytearray(100_000))

    @pytest.mark.veo_leak(level="off")
    def test_off():
        kept.append(bytearray(100_000))

    @pytest.mark.veo_leak(reruns=0)
    def test_without_re_runs():
        kept.append(bytearray(100_000))

    @pytest.mark.veo_leak(allow=True, reason="upstream #12")
    def test_allowed():
        kept.append(bytearray(100_000))

    @pytest.mark.veo_leak(allow=True, reason="only if it leaks")
    def test_allowed_and_clean():
        pass
    """


def test_markers_decide_how_each_test_is_judged(check: Check) -> None:
    result = check(SETTINGS, "--veo-reruns=5", "--veo-evidence=off", "-v")
    assert outcomes(result) == {
        "test_within_its_tolerance": "PASSED",
        "test_above_its_tolerance": "FAILED",
        "test_other_counters": "PASSED",
        "test_other_counters_without_re_runs": "PASSED",
        "test_these_counters": "FAILED",
        "test_off": "PASSED",
        "test_without_re_runs": "PASSED",
        "test_allowed": "PASSED",
        "test_allowed_and_clean": "PASSED",
    }
    result.stdout.fnmatch_lines(
        ["leaks: 2", "allowed leaks: 1", "*, allowed: upstream*"]
    )


def test_two_re_runs_are_too_few_to_call_it_a_leak(check: Check) -> None:
    result = check(
        "kept = []\ndef test_leaks(): kept.append(bytearray(100_000))",
        "--veo-reruns=2",
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["suspected, not confirmed: 1"])


def test_the_command_line_s_tolerance_holds_for_all(check: Check) -> None:
    result = check(
        "kept = []\ndef test_leaks(): kept.append(bytearray(100_000))",
        "--veo-reruns=5",
        "--veo-tolerance=1 MiB",
    )
    result.assert_outcomes(passed=1)
    text = result.stdout.str()
    for word in ("leaks:", "retention", "suspected"):
        assert word not in text


RETAINS = """
    kept = []

    def test_first_use():
        if not kept:
            kept.append(bytearray(5_000_000))

    def test_clean():
        pass
    """


def test_growth_once_is_retention_and_passes(check: Check) -> None:
    result = check(RETAINS)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "retention: 1",
            "  test_it.py::test_first_use: kept 4.8 MiB (host.*), it grew once and "
            "not again",
        ]
    )


def test_retention_above_its_limit_fails(check: Check) -> None:
    result = check(RETAINS, "--veo-retention-limit=1 MiB")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        ["4.8 MiB, over the limit of 1 MiB (host.*)", "over budget: 1"]
    )
    check(None, "--veo-retention-limit=8 MiB").assert_outcomes(passed=2)


def test_a_bounded_cache_that_fills_is_retention(check: Check) -> None:
    result = check("""
        import functools
        import itertools

        numbers = itertools.count()

        @functools.lru_cache(maxsize=10_000)
        def made(number):
            return bytearray(100_000)

        def test_fills():
            made(next(numbers))
    """)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["retention: 1", "*it fills a bounded place: *"])


def test_deep_re_runs_every_test_and_finds_small_leaks(check: Check) -> None:
    result = check(
        """
        import pytest

        kept = []

        def test_leaks_a_block():
            kept.append(object())

        @pytest.mark.veo_leak(level="fast")
        def test_clean():
            pass
        """,
        "-v",
        "--veo-evidence=off",
        level="deep",
    )
    assert outcomes(result) == {
        "test_leaks_a_block": "FAILED",
        "test_clean": "PASSED",
    }


def test_a_required_source_that_was_not_read_fails_the_run(check: Check) -> None:
    result = check(
        "def test_it(): pass", "--veo-probes=host,torch", "--veo-require=host,torch"
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["REQUIRED BUT NOT READ: torch (--veo-require)"])
    assert check(None, "--veo-require=host").ret == pytest.ExitCode.OK


def test_a_run_in_which_nothing_was_measured_says_so(check: Check) -> None:
    result = check("import pytest\ndef test_it(): pytest.skip('not here')")
    result.stdout.fnmatch_lines(["NOTHING WAS MEASURED"])


def test_a_probe_that_fails_midway_is_told_once_and_the_session_goes_on(
    check: Check, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest("""
        from pytest_veo.memory.snapshot import Counter
        from pytest_veo.memory.snapshot import Reading
        from pytest_veo.units import Unit

        class Engine:
            name = "engine"
            counters = (Counter("engine", "textures", Unit.COUNT, gate=0, always=True),)
            troubles = ()
            glances = 0

            def open(self): pass
            def is_active(self): return True
            def settle(self): pass
            def close(self): pass

            def glance(self):
                self.glances += 1
                if self.glances > 4:
                    raise RuntimeError("device lost")
                return (7,)

            def read(self):
                return (Reading(self.counters[0], 7),)

        def pytest_veo_probes():
            return [Engine()]
    """)
    result = check(
        "import pytest\n@pytest.mark.parametrize('n', range(9))\ndef test_it(n): pass",
        "--veo-probes=host,engine",
    )
    result.assert_outcomes(passed=9)
    text = result.stdout.str()
    assert text.count("engine: error, RuntimeError: device lost") == 1
    result.stdout.fnmatch_lines(["veo: leak check fast, watching host, engine*"])
