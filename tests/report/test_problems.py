from __future__ import annotations

import pytest

from pytest_veo.report.problems import Severity
from pytest_veo.report.problems import problems
from pytest_veo.verdict import CLEAN
from pytest_veo.verdict import Outcome
from pytest_veo.verdict import Verdict
from tests.report.html.runs import EVIDENCE
from tests.report.html.runs import frames
from tests.report.html.runs import leak
from tests.report.html.runs import record


TEST = "tests/test_a.py::TestIt::test_it[1]"


@pytest.mark.parametrize(
    ("outcome", "severity"),
    [
        (Outcome.LEAK, Severity.ERROR),
        (Outcome.OVER_BUDGET, Severity.ERROR),
        (Outcome.COLLECTABLE, Severity.WARNING),
        (Outcome.RETENTION, Severity.NOTICE),
        (Outcome.UNCONFIRMED, Severity.NOTICE),
        (Outcome.ALLOWED, Severity.NOTICE),
    ],
    ids=str,
)
def test_what_fails_is_an_error_and_what_is_known_a_notice(
    outcome: Outcome, severity: Severity
) -> None:
    (found,) = problems([record(TEST, leak(outcome=outcome))])
    assert found.severity is severity
    assert found.check == outcome.value
    assert (found.path, found.about) == ("tests/test_a.py", "host.heap")


@pytest.mark.parametrize(
    "verdict", [CLEAN, Verdict(Outcome.NOT_JUDGED, reason="it failed")], ids=str
)
def test_what_is_clean_or_not_judged_is_no_problem(verdict: Verdict) -> None:
    assert problems([record(TEST, verdict)]) == []


def test_a_leak_is_told_in_a_line_and_in_full() -> None:
    (found,) = problems([record(TEST, leak(evidence=EVIDENCE))], lines={TEST: 33})
    assert found.headline == "leaked 144 KiB a run (host.heap)"
    assert found.detail.splitlines()[0] == found.headline
    assert "thumbnails.py:16" in found.detail
    assert found.line == 33


def test_frames_over_their_budget_are_a_problem_and_those_within_are_none() -> None:
    found = problems(
        [record(TEST, frames=(frames(freeze_ms=80.0), frames(name="encode")))]
    )
    assert [(each.check, each.about, each.severity) for each in found] == [
        ("frames", "decode", Severity.ERROR)
    ]
    assert found[0].headline == "max_ms 80 ms, limit 33.4 ms, in decode"


def test_the_worst_come_first_else_the_order_of_the_tests_stands() -> None:
    retained = leak(outcome=Outcome.RETENTION)
    found = problems(
        [
            record("a.py::test_1", retained),
            record("a.py::test_2", leak()),
            record("a.py::test_3", leak()),
        ],
        fixtures=[("model (module, a.py)", leak())],
        worse=[("a.py::test_9", "host.heap", "host.heap 2 MiB, baseline 1 MiB")],
    )
    assert [each.subject for each in found] == [
        "a.py::test_2",
        "a.py::test_3",
        "model (module, a.py)",
        "a.py::test_9",
        "a.py::test_1",
    ]
    assert found[3].check == "worse than the baseline"
    assert found[3].path == "a.py"
