from __future__ import annotations

import subprocess

import pytest

from tests.examples import quickstart


@pytest.fixture(scope="module")
def said() -> subprocess.CompletedProcess[str]:
    return quickstart.run()


def test_it_ends_with_the_status_of_a_failed_test(
    said: subprocess.CompletedProcess[str],
) -> None:
    assert said.returncode == pytest.ExitCode.TESTS_FAILED


def test_it_prints_what_is_written_down(
    said: subprocess.CompletedProcess[str],
) -> None:
    expected = quickstart.EXPECTED.read_text(encoding="utf-8")
    assert quickstart.steady(said.stdout) == quickstart.steady(expected)
    assert said.stderr == ""


@pytest.mark.parametrize(
    "told",
    [
        pytest.param("thumbnails.py:16  return bytearray(zlib", id="the-image"),
        pytest.param("thumbnails.py:40  return bytes(self", id="the-thumbnail"),
        pytest.param("thumbnails.Thumbnailer.thumbnail (lru_cache", id="the-cache"),
        pytest.param("functools cache on a method", id="the-hint"),
    ],
)
def test_it_names_the_lines_the_holder_and_the_way_out(
    said: subprocess.CompletedProcess[str], told: str
) -> None:
    assert told in "\n".join(quickstart.evidence(said.stdout))


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        pytest.param("+36.1 KiB a run", "+52 B a run", True, id="sizes"),
        pytest.param("in 1.9 s", "in 624 ms", True, id="times"),
        pytest.param("166,578 -> 166,262", "9 -> 10", True, id="counts"),
        pytest.param("_____ test_a _____", "___ test_a ___", True, id="rules"),
        pytest.param("platform linux", "platform darwin", True, id="machine"),
        pytest.param("leaks: 1", "retention: 1", False, id="verdicts"),
        pytest.param("host.heap", "host.mapped", False, id="counters"),
        pytest.param(".F.", "...", False, id="outcomes"),
    ],
)
def test_numbers_may_differ_and_words_may_not(
    one: str, other: str, is_same: bool
) -> None:
    assert (quickstart.steady(one) == quickstart.steady(other)) == is_same
