"""A session held to earlier runs: what fails it, what is said, what is written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest


if TYPE_CHECKING:
    from tests.plugin.conftest import Check


KEEPS = """
import os

kept = []

def test_keeps():
    if not kept:
        kept.append(bytearray(int(os.environ.get("KEPT", "1572832"))))

def test_clean():
    pass
"""
TEST = "test_it.py::test_keeps"


@pytest.fixture
def keeps(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """For `keeps.setenv("KEPT", ...)`: what the test keeps."""
    return monkeypatch


def lines_of(result: pytest.RunResult) -> list[str]:
    """The section on the baseline."""
    at = next(i for i, line in enumerate(result.outlines) if "= veo baseline =" in line)
    rest = result.outlines[at + 1 :]
    end = next(i for i, line in enumerate(rest) if line.startswith("="))
    return rest[:end]


def test_a_worse_test_fails_the_run_with_both_figures(
    check: Check, keeps: pytest.MonkeyPatch
) -> None:
    update = ("--veo-baseline=base.json", "--veo-update-baseline")
    assert check(KEEPS, *update).ret == 0
    assert check(None, "--veo-baseline=base.json").ret == 0
    keeps.setenv("KEPT", "4000000")
    result = check(None, "--veo-baseline=base.json")
    assert result.ret == 1
    result.assert_outcomes(passed=2)
    said = lines_of(result)
    assert said[:2] == ["compared with base.json", "worse than the baseline: 1"]
    # The same from malloc's heap and from a mapping of its own, to the printed digit.
    assert f"  {TEST}: host.heap 3.8 MiB, baseline 1.5 MiB (1 run), allowed" in said[2]
    assert said[-1] == "tests: 2 compared"


def test_workers_are_held_to_it_as_well(
    check: Check, keeps: pytest.MonkeyPatch
) -> None:
    check(KEEPS, "--veo-baseline=base.json", "--veo-update-baseline")
    keeps.setenv("KEPT", "4000000")
    result = check(None, "--veo-baseline=base.json", "-n2", plugins=["xdist"])
    assert result.ret == 1
    assert "worse than the baseline: 1" in lines_of(result)


def test_an_update_lowers_and_only_acceptance_raises(
    check: Check, keeps: pytest.MonkeyPatch, pytester: pytest.Pytester
) -> None:
    update = ("--veo-baseline=base.json", "--veo-update-baseline")
    check(KEEPS, *update)
    path = pytester.path / "base.json"
    first = path.read_text()
    keeps.setenv("KEPT", "4000000")
    refused = check(None, *update)
    assert refused.ret == 1
    assert lines_of(refused)[-1] == (
        "updated base.json: new tests 0, figures lowered 0, raised 0, not accepted 1"
    )
    assert path.read_text() == first
    accepted = check(None, *update, "--veo-accept")
    assert accepted.ret == 0
    assert path.read_text() != first
    keeps.setenv("KEPT", "10")
    assert check(None, *update).ret == 0
    rows = json.loads(path.read_text())["tests"][TEST]
    assert all(row["usual"] < 100_000 for row in rows.values())


def test_runs_of_the_archive_are_a_baseline(
    check: Check, keeps: pytest.MonkeyPatch, pytester: pytest.Pytester
) -> None:
    archive = "--veo-archive=kept"
    first = check(KEEPS, archive, "--veo-baseline=last", "--veo-strict")
    assert lines_of(first) == ["NO BASELINE: 'kept' has no finished run yet"]
    assert first.ret == 1  # strict: a comparison that was asked for did not happen
    assert check(None, archive).ret == 0
    (one, two) = sorted(p.name for p in (pytester.path / "kept" / "runs").iterdir())
    result = check(None, archive, "--veo-baseline=median:20")
    assert result.ret == 0
    assert lines_of(result)[0] == f"compared with median:20, 2 runs up to {two}"
    keeps.setenv("KEPT", "4000000")
    assert check(None, archive, f"--veo-baseline={one}").ret == 1


def test_another_allocator_setting_is_foreign(
    check: Check, keeps: pytest.MonkeyPatch
) -> None:
    check(KEEPS, "--veo-baseline=base.json", "--veo-update-baseline")
    keeps.setenv("MALLOC_ARENA_MAX", "2")
    keeps.setenv("KEPT", "4000000")
    result = check(None, "--veo-baseline=base.json")
    assert result.ret == 0
    assert lines_of(result) == [
        "FOREIGN BASELINE, nothing is compared: base.json: MALLOC_ARENA_MAX not set, "
        "now '2'"
    ]
    assert check(None, "--veo-baseline=base.json", "--veo-strict").ret == 1


def test_what_another_test_kept_first_has_only_moved(check: Check) -> None:
    source = """
    kept = []

    def use():
        if not kept:
            kept.append(bytearray(1_000_000))

    def test_one():
        use()

    def test_two():
        use()
    """
    check(source, "--veo-baseline=base.json", "--veo-update-baseline")
    result = check(None, "--veo-baseline=base.json", "-ktest_two")
    assert result.ret == 0
    said = lines_of(result)
    assert said[1] == "worse, or only moved here from tests that now keep less: 1"
    assert said[-1] == "tests: 1 compared, 1 of the baseline not run or not judged"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ["--veo-baseline=base.json"],
            "*--veo-baseline: there is no file '*base.json'; --veo-update-baseline "
            "makes it",
        ),
        (["--veo-baseline=lst"], "*--veo-baseline: 'lst' is no baseline, write a *"),
        (
            ["--veo-baseline=last"],
            "*--veo-baseline: 'last' is looked up in an archive, and none is named*",
        ),
        (
            ["--veo-archive=kept", "--veo-baseline=20200101T000000Z"],
            "*there is no *",
        ),
        (
            ["--veo-update-baseline"],
            "*--veo-update-baseline: name the file to update, --veo-baseline=FILE.json",
        ),
        (
            ["--veo-archive=kept", "--veo-baseline=last", "--veo-update-baseline"],
            "*--veo-baseline names runs of an archive, which stay as they are*",
        ),
        (
            ["--veo-accept"],
            "*--veo-accept: raises a baseline only with --veo-update-baseline",
        ),
        (
            ["--veo-baseline=b.json", "--veo-accept"],
            "*--veo-accept: raises a baseline only with --veo-update-baseline",
        ),
        (
            ["--veo-baseline=b.json", "--veo-baseline-limit=p95"],
            "*a quantile is taken from runs, and --veo-baseline names a file*",
        ),
        (
            ["--veo-baseline=b.json", "--veo-baseline-limit=5"],
            "*--veo-baseline: there is no file*",
        ),
        (
            ["--veo-baseline=last", "--veo-baseline-limit=lots"],
            "*--veo-baseline-limit: 'lots' is no limit, write a percentage*",
        ),
    ],
)
def test_bad_input_is_one_clear_error(args: list[str], said: str, check: Check) -> None:
    result = check("def test_one(): pass", *args, inprocess=True)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {said}"])


def test_without_a_leak_check_nothing_is_compared_and_it_says_so(check: Check) -> None:
    result = check(KEEPS, "--veo-baseline=base.json", level="", inprocess=True)
    result.stdout.fnmatch_lines(
        ["veo: NO memory is compared with --veo-baseline: no --veo-leak-check"]
    )


def test_a_file_that_cannot_be_written_fails_and_is_named(
    check: Check, pytester: pytest.Pytester
) -> None:
    (pytester.path / "file").write_text("")
    result = check(KEEPS, "--veo-baseline=file/b.json", "--veo-update-baseline")
    assert result.ret == 1
    assert "cannot write the baseline" in lines_of(result)[-1]


def test_junit_xml_has_the_figures(check: Check, pytester: pytest.Pytester) -> None:
    check(KEEPS, "--junitxml=all.xml")
    suite = ElementTree.parse(pytester.path / "all.xml").getroot()
    found = {
        case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")}
        for case in suite.iter("testcase")
    }
    assert found["test_clean"]["veo.verdict"] == "clean"
    assert found["test_keeps"]["veo.verdict"] == "retention"
    sizes = [
        v for n, v in found["test_keeps"].items() if str(n).endswith("growth_bytes")
    ]
    assert any(int(str(value)) >= 990_000 for value in sizes)
