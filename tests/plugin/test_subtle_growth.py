"""Growth that is easily mistaken: for a leak, or for none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugin.test_companions import outcomes


if TYPE_CHECKING:
    from tests.plugin.conftest import Check


LIGHT = ("-v", "--veo-evidence=off")


LATE = """
    import threading

    go_on = threading.Event()

    def test_ends_late():
        threading.Timer(0.25, str).start()
    """
NEVER = """
    def test_never_ends():
        threading.Thread(target=go_on.wait, daemon=True).start()
    """


def test_threads_that_end_late_are_no_leak(check: Check) -> None:
    assert outcomes(check(LATE, *LIGHT)) == {"test_ends_late": "PASSED"}


def test_at_deep_threads_that_end_late_are_no_leak_and_those_that_do_not_are(
    check: Check,
) -> None:
    result = check(LATE + NEVER, *LIGHT, level="deep")
    assert outcomes(result) == {"test_ends_late": "PASSED", "test_never_ends": "FAILED"}
    result.stdout.fnmatch_lines(
        ["  test_it.py::test_never_ends: leaked 1 thread a run (host.threads)"]
    )


def test_what_stays_beside_threads_that_end_late_is_a_leak(check: Check) -> None:
    result = check(
        """
        import threading
        import time

        kept = []

        def test_keeps_nothing():
            threading.Thread(target=time.sleep, args=(0.2,)).start()

        def test_keeps_a_buffer():
            threading.Thread(target=time.sleep, args=(0.2,)).start()
            kept.append(bytearray(100_000))
        """,
        *LIGHT,
        level="fast",
    )
    assert outcomes(result) == {
        "test_keeps_nothing": "PASSED",
        "test_keeps_a_buffer": "FAILED",
    }
    result.stdout.fnmatch_lines(
        ["  test_it.py::test_keeps_a_buffer: leaked 9?* KiB a run (host.heap)"]
    )


def test_a_cache_whose_entries_expire_is_no_leak(
    check: Check, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(
        """
        import time

        from pytest_veo.evidence.places import Places

        grown = Places.grown

        def slowly(*args):  # as in a heap of a million objects: all expires meanwhile
            time.sleep(0.35)
            return grown(*args)

        Places.grown = slowly
        """
    )
    result = check(
        """
        import itertools
        import time

        turns = itertools.count()
        cache = {}

        def test_expiring():
            now = time.monotonic()
            for key in [key for key, (at, _) in cache.items() if now - at > 0.3]:
                del cache[key]
            cache[next(turns)] = now, bytes(200)
        """,
        "-v",
        "--veo-evidence=light",
    )
    assert outcomes(result) == {"test_expiring": "PASSED"}
    result.stdout.fnmatch_lines(["1 tests judged, 1 run again in *"])


def test_rare_and_tiny_leaks_are_found_at_deep_and_their_twins_are_clean(
    check: Check,
) -> None:
    result = check(
        """
        import ctypes
        import itertools

        libc = ctypes.CDLL(None)
        libc.strdup.restype = libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p] + 5 * [ctypes.c_long]
        libc.free.argtypes = [ctypes.c_void_p]
        runs = itertools.count(1)
        kept = []
        log = bytearray()

        def test_leaks_on_every_fifth_run():
            if next(runs) % 5 == 0:
                kept.append([object() for _ in range(60)])

        def test_buffer_that_only_grows():
            log.extend(b"x" * 640)

        def test_buffer_that_is_emptied():
            bytearray().extend(b"x" * 640)

        def test_native_string():
            assert libc.strdup(b"x" * 100)

        def test_native_string_that_is_freed():
            libc.free(libc.strdup(b"x" * 100))

        def test_raw_mapping():
            assert libc.mmap(None, 16_384, 3, 0x22, -1, 0)
        """,
        *LIGHT,
        level="deep",
    )
    assert outcomes(result) == {
        "test_leaks_on_every_fifth_run": "FAILED",
        "test_buffer_that_only_grows": "FAILED",
        "test_buffer_that_is_emptied": "PASSED",
        "test_native_string": "FAILED",
        "test_native_string_that_is_freed": "PASSED",
        "test_raw_mapping": "FAILED",
    }


BOUNDED = """
    import ctypes
    import functools
    import hashlib
    import itertools
    import sqlite3
    import typing

    T = typing.TypeVar("T")
    turns = itertools.count()
    kept = []

    class Box(typing.Generic[T]):
        pass

    class Shop:
        MAXCACHE = 5_000
        cache = {}
        tags = {}

    def made():
        class Local:
            pass

        return Local

    def look_up(turn):
        if len(Shop.cache) >= Shop.MAXCACHE:
            Shop.cache.clear()
            Shop.tags.clear()
        Shop.cache[turn] = "shop" * 20
        Shop.tags[turn] = frozenset((turn, "tag"))

    @functools.lru_cache(maxsize=200)
    def hashed(turn):
        return hashlib.blake2b(b"%d" % turn)

    @functools.lru_cache(maxsize=200)
    def digest(turn):
        return hashlib.sha256(b"%d" % turn)

    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p

    @functools.lru_cache(maxsize=300)
    def connect(turn):
        return sqlite3.connect(":memory:", check_same_thread=False)
    """


@pytest.mark.parametrize("level", ["fast", "deep"])
def test_bounded_places_of_every_kind_are_no_leak_and_a_list_beside_them_is(
    check: Check, level: str
) -> None:
    result = check(
        BOUNDED
        + """
    def test_classes_in_the_caches_of_typing():
        assert typing.List[made()] and Box[made()]

    def test_two_tables_that_are_emptied_together():
        look_up(next(turns))

    def test_a_list_beside_them():
        look_up(next(turns))
        kept.append([object() for _ in range(40)])

    def test_c_objects_that_cannot_be_weighed():
        assert hashed(next(turns))

    def test_memory_of_c_code_beside_them():
        assert digest(next(turns)) and libc.malloc(4_000)
    """,
        *LIGHT,
        level=level,
    )
    assert outcomes(result) == {
        "test_classes_in_the_caches_of_typing": "PASSED",
        "test_two_tables_that_are_emptied_together": "PASSED",
        "test_a_list_beside_them": "FAILED",
        "test_c_objects_that_cannot_be_weighed": "PASSED",
        "test_memory_of_c_code_beside_them": "FAILED",
    }


def test_memory_that_c_code_holds_in_a_bounded_cache_is_no_leak(check: Check) -> None:
    result = check(
        BOUNDED
        + """
    def test_connections_in_a_cache():
        connect(next(turns) % 60)

    def test_connections_in_a_list():
        kept.append(sqlite3.connect(":memory:"))
    """,
        *LIGHT,
    )
    assert outcomes(result) == {
        "test_connections_in_a_cache": "PASSED",
        "test_connections_in_a_list": "FAILED",
    }


@pytest.mark.parametrize(
    ("overdraft_ns", "is_followed"), [(8 * 10**9, True), (0, False)]
)
def test_what_grows_little_after_a_large_first_use_is_paid_by_the_credit(
    check: Check, pytester: pytest.Pytester, overdraft_ns: int, is_followed: bool
) -> None:
    pytester.makeconftest(
        f"""
        from pytest_veo.measure import gate, limits

        limits.LEAST_SMALL_NS = 0
        limits.OVERDRAFT_NS = {overdraft_ns}

        def pytest_collection_finish(session):
            gate.Credit.earn = lambda self, test_ns: setattr(self, "left_ns", 0)
        """
    )
    result = check(
        """
        warm, kept = [], []

        def test_leaks():
            if not warm:
                warm.append([bytes(100) for _ in range(2000)])
            kept.append([bytes(100) for _ in range(20)])
        """
    )
    if is_followed:
        result.stdout.fnmatch_lines(
            ["leaked 22* Python blocks a run (host.python_blocks)"]
        )
    else:
        result.stdout.fnmatch_lines(
            [
                "suspected, not confirmed: 1",
                "  test_it.py::test_leaks: kept * KiB (host.heap), "
                "confirming stopped after 4 runs: small, and the confirming credit is "
                "used up (confirm-share)",
            ]
        )
        result.assert_outcomes(passed=1)
