"""The failures in docs/evidence.md are what the examples print."""

from __future__ import annotations

import sys

import pytest

from tests.examples import failures
from tests.simgpu import fixtures


MOST_LINES = 25
HOST = (
    *("test_basket_total", "test_refused_card_is_noted", "test_audit_is_written"),
    *("test_stock_is_watched", "test_log_in"),
)
GPU = ("test_frame_is_kept_for_later", "test_hook_of_a_head_stays")


@pytest.fixture(scope="module")
def host() -> dict[str, str]:
    return failures.failures(failures.on_the_host())


@pytest.fixture(scope="module")
def gpu() -> dict[str, str]:
    environment = fixtures.environment("torch")
    return failures.failures(failures.on_the_simulator(environment))


def is_as_told(printed: str, told: str) -> None:
    """Held against the docs; how a chain is told depends on the Python version."""
    wanted, found = failures.steady(told), failures.steady(printed)
    assert found[0] == wanted[0]
    if sys.version_info[:2] == (3, 11):
        assert found == wanted
    labels = [line[:12].strip() for line in wanted if line[:12].strip()]
    assert [line[:12].strip() for line in found if line[:12].strip()] == labels


def test_the_docs_have_each_of_them() -> None:
    assert tuple(failures.told("evidence_host")) == HOST
    assert tuple(failures.told("evidence_gpu")) == GPU


@pytest.mark.parametrize("name", HOST)
def test_a_leak_on_the_host_is_explained_as_the_docs_have_it(
    host: dict[str, str], name: str
) -> None:
    is_as_told(host[name], failures.told("evidence_host")[name])


def test_clean_twins_are_not_among_them(host: dict[str, str]) -> None:
    assert tuple(host) == HOST


@pytest.mark.sim
@pytest.mark.parametrize("name", GPU)
def test_a_leak_on_a_device_is_explained_as_the_docs_have_it(
    gpu: dict[str, str], name: str
) -> None:
    assert tuple(gpu) == GPU
    is_as_told(gpu[name], failures.told("evidence_gpu")[name])


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        *(pytest.param("evidence_host", name, id=name) for name in HOST),
        *(pytest.param("evidence_gpu", name, id=name) for name in GPU),
    ],
)
def test_a_failure_is_short_and_its_first_three_lines_are_enough(
    suite: str, name: str
) -> None:
    lines = failures.told(suite)[name].splitlines()
    assert len(lines) <= MOST_LINES
    assert lines[0].startswith("leaked ")
    assert lines[0].endswith(")")
    assert lines[1].startswith("  allocated  ")
    assert ".py:" in lines[1]
    assert lines[2].startswith("  held by    ")
