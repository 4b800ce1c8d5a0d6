from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_veo.evidence import stacks
from pytest_veo.evidence.allocations import Site
from pytest_veo.evidence.allocations import Tracing


KEPT: list[Any] = []
ONE = bytes([1])


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    KEPT.clear()
    tracemalloc.stop()


def keep_rows() -> None:
    KEPT.append(ONE * 5000)


def keep_parsed() -> None:
    KEPT.append(json.loads("[" + "1.5, " * 200 + "1]"))


def traced(step: Callable[[], object], runs: int = 4) -> tuple[Site, ...]:
    tracing = Tracing()
    tracing.begin()
    for _ in range(runs):
        step()
    gc.collect()
    return tracing.end(runs)


def test_the_line_that_allocated_what_stayed_is_named() -> None:
    first = traced(keep_rows)[0]
    assert first.source == "KEPT.append(ONE * 5000)"
    assert first.file == __file__
    assert 5000 <= first.bytes_per_run <= 5200
    assert 1 <= first.blocks_per_run <= 2
    assert str(first).endswith(f"test_allocations.py:{first.line}")


def test_the_users_line_is_named_with_the_library_line_that_did_it() -> None:
    first = traced(keep_parsed)[0]
    assert first.source.startswith("KEPT.append(json.loads(")
    assert first.via.startswith("json/decoder.py:")


def test_what_is_freed_again_is_no_site() -> None:
    assert not [site for site in traced(lambda: [ONE * 5000]) if "5000" in site.source]


def test_what_happens_once_in_all_runs_is_no_site() -> None:
    once = iter([True])
    sites = traced(
        lambda: KEPT.extend([ONE * 7000] if next(once, False) else []), runs=8
    )
    assert not [site for site in sites if site.bytes_per_run > 500]


def test_our_own_tracing_ends_with_the_runs() -> None:
    traced(keep_rows)
    assert not tracemalloc.is_tracing()


def test_a_tracing_of_the_users_goes_on_with_what_it_has() -> None:
    tracemalloc.start(7)
    mine = ONE * 123_456
    first = traced(keep_rows)[0]
    assert first.source == "KEPT.append(ONE * 5000)"
    assert tracemalloc.is_tracing()
    assert tracemalloc.get_traceback_limit() == 7
    assert tracemalloc.get_object_traceback(mine) is not None


def test_a_short_tracing_of_the_users_is_mentioned() -> None:
    tracemalloc.start(1)
    tracing = Tracing()
    tracing.begin()
    tracing.end(1)
    assert tracing.note == "tracemalloc was on already with 1 frame(s): lines only"


def test_an_abandoned_tracing_stops() -> None:
    tracing = Tracing()
    tracing.begin()
    tracing.abandon()
    assert not tracemalloc.is_tracing()


OURS = stacks.__file__
PYTEST = pytest.__file__


@pytest.mark.parametrize(
    ("frames", "kept"),
    [
        ([("app.py", 1), (PYTEST, 2), ("conftest.py", 3)], ["app.py:1"]),
        ([(OURS, 9), ("app.py", 1)], ["app.py:1"]),
        ([("app.py", 1), ("lib.py", 2)], ["app.py:1", "lib.py:2"]),
        ([(OURS, 9), (PYTEST, 2)], []),
    ],
    ids=["cut at pytest", "ours on top", "nothing to cut", "nothing left"],
)
def test_stacks_are_cut_to_the_users_part(
    frames: list[tuple[str, int]], kept: list[str]
) -> None:
    assert [str(line) for line in stacks.trimmed(frames)] == kept


def test_the_users_line_is_the_newest_outside_libraries() -> None:
    lines = stacks.trimmed(
        [(json.__file__, 5), ("/src/app.py", 1), ("/src/main.py", 2)]
    )
    assert str(stacks.users(lines)) == "/src/app.py:1"


def test_without_a_line_of_the_users_the_newest_is_taken() -> None:
    lines = stacks.trimmed([(json.__file__, 5)])
    assert str(stacks.users(lines)) == "json/__init__.py:5"
