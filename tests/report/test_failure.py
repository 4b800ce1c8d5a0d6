"""The first line of a failure: the figure, its unit, its counter."""

from __future__ import annotations

import pytest

from pytest_veo.report.failure import headline
from pytest_veo.units import Unit
from pytest_veo.verdict import Finding
from pytest_veo.verdict import Outcome
from pytest_veo.verdict import Verdict


@pytest.mark.parametrize(
    ("counter", "per_run", "text"),
    [
        ("host.python_blocks", 1.004, "leaked 1 Python block a run"),
        ("host.python_blocks", 1.5, "leaked 1.5 Python blocks a run"),
        ("host.descriptors", 1.0, "leaked 1 descriptor a run"),
        ("host.children", 12.0, "leaked 12 child processes a run"),
    ],
)
def test_a_count_has_its_noun(counter: str, per_run: float, text: str) -> None:
    finding = Finding(counter, "host", Unit.COUNT, 0, 1, per_run=per_run)
    verdict = Verdict(Outcome.LEAK, findings=(finding,))
    assert headline(verdict) == f"{text} ({counter})"
