from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import pytest

from pytest_veo.report.problems import problems
from pytest_veo.report.step_summary import escaped
from pytest_veo.report.step_summary import markdown
from tests.report.html import runs


def test_a_summary_has_the_result_the_tally_a_table_and_the_evidence() -> None:
    text = markdown(
        problems(runs.small().records),
        {"leak": 2, "clean": 1204, "retention": 1},
        not_watched=["nvml: unavailable, no NVML library"],
    )
    assert text.startswith("## pytest-veo: 3 found ❌\n")
    assert "**1,204** clean, **2** leak, **1** retention" in text
    row = next(line for line in text.splitlines() if line.startswith("| ❌ leak"))
    assert row.count("|") == 4
    assert "leaked 144 KiB a run (host&#46;heap)" in row
    assert "thumbnails.py:16" in text
    assert "- nvml&#58; unavailable, no NVML library" in text


def test_a_clean_run_says_so_in_one_line() -> None:
    assert markdown([], {"clean": 3}) == (
        "## pytest-veo: nothing found ✅\n\n**3** clean\n\n"
    )


def test_nothing_measured_is_not_nothing_found_in_silence() -> None:
    assert "**No test was measured.**" in markdown([], {})


@pytest.mark.parametrize(
    ("gpu", "said"), [("Simulated GPU", True), ("NVIDIA H200", False), ("", False)]
)
def test_a_simulated_gpu_is_told_at_the_top(gpu: str, said: bool) -> None:
    text = markdown([], {"clean": 1}, gpu=gpu)
    assert ("> **Simulated GPU.**" in text) == said


@hypothesis.given(st.text())
def test_no_text_is_markup(text: str) -> None:
    found = escaped(text)
    assert not set(found) & set("<>|`*_[]!\\\"'\n\r~@$^{}.:")
    assert found.isascii()
    assert found.replace("&#", "").count("&") == 0


def test_many_problems_are_counted_and_the_summary_stays_short() -> None:
    found = problems(runs.large(tests=6000).records)
    text = markdown(found, {"leak": 60})
    assert "| | | and 10 more |" in text
    assert len(text) < 100_000


def test_hostile_text_neither_ends_a_block_nor_begins_a_tag() -> None:
    text = markdown(problems(runs.hostile().records), {"leak": 5})
    assert "<script" not in text
    assert "\u202e" not in text
    inside = text.partition("<pre>")[2].partition("</pre>")[0]
    assert "" not in [line.strip() for line in inside.splitlines()]
