from __future__ import annotations

import re

import hypothesis
import hypothesis.strategies as st
import pytest

from pytest_veo.report.annotations import SHOWN
from pytest_veo.report.annotations import github
from pytest_veo.report.problems import Problem
from pytest_veo.report.problems import Severity
from pytest_veo.report.visible import visible


LEAK = Problem(
    severity=Severity.ERROR,
    check="leak",
    subject="tests/test_a.py::TestIt::test_it[1,2]",
    headline="leaked 144 KiB a run (host.heap)",
    detail="leaked 144 KiB a run (host.heap)\n\n  100% sure",
    path="tests/test_a.py",
    line=33,
)


def test_an_error_stands_at_the_line_of_its_test() -> None:
    assert list(github([LEAK])) == [
        "::error file=tests/test_a.py,line=33,"
        "title=leak%3A TestIt%3A%3Atest_it[1%2C2]::"
        "leaked 144 KiB a run (host.heap)%0A%0A  100%25 sure"
    ]


@pytest.mark.parametrize(
    ("prefix", "path"),
    [
        ("", "tests/test_a.py"),
        (".", "tests/test_a.py"),
        ("engine/python", "engine/python/tests/test_a.py"),
    ],
)
def test_paths_are_those_of_the_repository(prefix: str, path: str) -> None:
    (line,) = github([LEAK], prefix)
    assert f"file={path}," in line


def test_a_problem_without_a_place_is_told_without_one() -> None:
    fixture = LEAK._replace(subject="model (module)", path="", line=0, detail="")
    assert list(github([fixture])) == [
        "::error title=leak%3A model (module)::leaked 144 KiB a run (host.heap)"
    ]


def test_notices_are_left_to_the_summary() -> None:
    warning = LEAK._replace(severity=Severity.WARNING)
    notice = LEAK._replace(severity=Severity.NOTICE)
    (line,) = github([warning, notice])
    assert line.startswith("::warning file=")


@pytest.mark.parametrize("count", [SHOWN, SHOWN + 1, 500])
def test_no_more_than_github_shows_and_the_last_tells_of_the_rest(count: int) -> None:
    lines = list(github([LEAK] * count))
    assert len(lines) == SHOWN
    if count > SHOWN:
        more = count - SHOWN + 1
        assert (
            lines[-1] == f"::error title=veo::{more} more, see the summary of this step"
        )


@hypothesis.given(subject=st.text(), headline=st.text(), path=st.text())
def test_no_text_begins_a_command_of_its_own(
    subject: str, headline: str, path: str
) -> None:
    problem = LEAK._replace(subject=subject, headline=headline, path=path, detail="")
    (line,) = github([problem])
    assert len(re.split(r"[\r\n]", line)) == 1
    head, _, text = line.removeprefix("::error ").partition("::")
    assert ":" not in head
    plain = text.replace("%0A", "\n").replace("%25", "%")
    assert plain == visible(headline, keep="\n").rstrip()
