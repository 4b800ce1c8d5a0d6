"""GitLab's report against the part of Code Climate's format that GitLab documents."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from pytest_veo.archive.store import Run
from pytest_veo.report.code_quality import report
from pytest_veo.report.problems import problems
from pytest_veo.verdict import Outcome
from tests.report.html import runs


# What GitLab reads of each issue, and all that it must have.
SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "required": [
            "description",
            "check_name",
            "fingerprint",
            "location",
            "severity",
        ],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "minLength": 1},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": "^(?!\\./|/).+"},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {"begin": {"type": "integer", "minimum": 1}},
                    },
                },
            },
        },
    },
}


def issues_of(run: Run, prefix: str = "") -> list[dict[str, Any]]:
    found = json.loads(report(problems(run.records), prefix))
    jsonschema.validate(found, SCHEMA)
    return list(found)


@pytest.mark.parametrize(
    "run", [runs.small(), runs.hostile()], ids=["small", "hostile"]
)
def test_a_report_is_as_gitlab_documents_it(run: Run) -> None:
    assert len(issues_of(run)) >= 4


def test_a_run_without_problems_has_an_empty_report() -> None:
    assert report([]) == "[]\n"


def test_fingerprints_are_the_same_whatever_the_figures() -> None:
    def prints(growth: int) -> list[str]:
        run = runs.small()._replace(
            records=(runs.record("a.py::test_it", runs.leak(growth)),)
        )
        return [issue["fingerprint"] for issue in issues_of(run)]

    assert prints(1000) == prints(99_999)


def test_fingerprints_tell_tests_kinds_and_repetitions_apart() -> None:
    records = (
        runs.record("a.py::test_1", runs.leak()),
        runs.record("a.py::test_2", runs.leak()),
        runs.record("a.py::test_2", runs.leak(outcome=Outcome.RETENTION)),
        runs.record("a.py::test_2", runs.leak()),
        runs.record("a.py::test_2", frames=(runs.frames(freeze_ms=80.0),)),
    )
    found = issues_of(runs.small()._replace(records=records))
    assert len({issue["fingerprint"] for issue in found}) == len(records)


def test_paths_are_those_of_the_repository() -> None:
    (first, *_) = issues_of(runs.small(), "engine")
    assert first["location"] == {
        "path": "engine/tests/test_a.py",
        "lines": {"begin": 1},
    }
