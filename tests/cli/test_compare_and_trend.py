"""`veo compare` and `veo trend` over archives with a planted history."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_veo.archive.compact import compact
from pytest_veo.archive.record import CounterRecord
from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.store import RunWriter
from pytest_veo.cli import main
from tests.archive.histories import MIB
from tests.archive.histories import START
from tests.archive.histories import Plant
from tests.archive.histories import commit_of
from tests.archive.histories import planted
from tests.archive.histories import write_run


ONE, TWO = "test_a.py::test_one", "test_a.py::test_two[x]"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_trend_names_the_three_commits_and_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tmp_path / "kept"
    plants = (Plant(120, MIB), Plant(260, 2 * MIB), Plant(411, MIB))
    planted(archive, 500, plants, seed=7)
    compact(archive, now=START.replace(year=2027))
    assert main(["trend", ONE, "--archive=kept", "--json"]) == 0
    (trend,) = json.loads(capsys.readouterr().out)["trends"]
    assert [step["commit"] for step in trend["steps"]] == [
        commit_of(plant.run) for plant in plants
    ]
    assert len(trend["points"]) == 500


def test_trend_tells_people_what_changed_with_a_step(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for run in range(20):
        version = "2.14.1" if run >= 12 else "2.13.0"
        write_run(
            tmp_path / "kept",
            run,
            {ONE: 3 * MIB if run >= 12 else MIB, TWO: MIB},
            environment=(("module.torch", version), ("python", "3.12.1")),
        )
    write_run(tmp_path / "kept", 21, {ONE: 9 * MIB}, branch="topic")
    assert main(["trend", "test_a*", "--archive=kept"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "branch main",
        "1 runs are on other branches (--branch)",
        "test_a.py::test_one host.heap: 20 runs",
        "  ▁▁▁▁▁▁▁▁▁▁▁▁████████",
        f"  +2 MiB at commit {commit_of(12)[:12]}: 1 MiB -> 3 MiB (noise 0 B)",
        "    first run 20260101T120000.000000Z-00000c",
        "    with it changed: module.torch 2.13.0, now 2.14.1",
        "no step: 1 figure",
        "  test_a.py::test_two[x] host.heap: always 1 MiB, 20 runs",
    ]


def test_a_step_within_a_commits_runs_is_not_the_commits(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for run in range(12):
        size = 2 * MIB if run >= 6 else MIB
        write_run(tmp_path / "kept", run, {ONE: size}, commit="c" * 40)
    assert main(["trend", ONE, "--archive=kept"]) == 0
    assert "at no commit, within the runs of cccccccccccc" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nope"], "'kept' has no figures of the test 'nope' on branch 'main'"),
        (
            [ONE, "--counter=torch.allocated"],
            f"'kept' has no figures of the test {ONE!r} and counter "
            "'torch.allocated' on branch 'main'",
        ),
        ([ONE, "--branch=x"], "'kept' has no run on branch 'x', it has main"),
        ([ONE, "--limit=p95"], "--limit: 'p95' is not one percentage or size"),
    ],
)
def test_trend_refuses_what_is_not_there(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_run(tmp_path / "kept", 1, {ONE: MIB})
    assert main(["trend", *words, "--archive=kept"]) == 2
    assert capsys.readouterr().err == f"veo trend: {said}\n"


def test_trend_of_an_empty_archive_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "kept" / "runs").mkdir(parents=True)
    assert main(["trend", ONE, "--archive=kept"]) == 2
    said = capsys.readouterr().err
    assert said == "veo trend: the archive 'kept' has no runs yet\n"


def test_compare_tells_what_grew_shrank_is_new_and_gone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    archive = tmp_path / "kept"
    first = write_run(
        archive, 1, {ONE: 2 * MIB, TWO: 4 * MIB, "test_a.py::test_old": 9}
    )
    last = write_run(
        archive, 2, {ONE: 8 * MIB, TWO: 3 * MIB, "test_b.py::test_new": 5 * MIB}
    )
    assert main(["compare", first, "last", "--archive=kept"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{first} -> {last}",
        "grew: 1",
        "  test_a.py::test_one: host.heap 8 MiB, baseline 2 MiB (1 run), "
        "allowed 2.2 MiB",
        "shrank: 1",
        "  test_a.py::test_two[x]: host.heap 3 MiB, baseline 4 MiB (1 run), "
        "allowed 4.4 MiB",
        "new: 1 test",
        "  test_b.py::test_new",
        "gone: 1 test",
        "  test_a.py::test_old",
        "the same within their limits: 0 figures",
    ]


def test_what_only_moved_between_tests_is_no_growth(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_run(tmp_path / "kept", 1, {ONE: 9 * MIB, TWO: 0})
    write_run(tmp_path / "kept", 2, {ONE: 0, TWO: 9 * MIB})
    first = f"{START:%Y%m%d}T010000.000000Z-000001"
    assert main(["compare", first, "last", "--archive=kept", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["grew"] == []
    assert [row["nodeid"] for row in found["moved"]] == [TWO]


def test_the_spread_of_earlier_runs_is_no_growth(tmp_path: Path) -> None:
    for run, size in enumerate((4, 6, 5, 7, 4, 6, 5, 7, 5, 6)):
        write_run(tmp_path / "kept", run, {ONE: size * MIB})
    last = write_run(tmp_path / "other", 1, {ONE: 8 * MIB})
    after = f"other#{last}"
    assert main(["compare", "kept#median:10", after]) == 0
    assert main(["compare", "kept#last", after]) == 1
    limited = ["--limit=host.heap=p90"]
    assert main(["compare", "kept#median:10", after, *limited]) == 0


def test_a_run_is_no_part_of_the_branch_that_it_is_held_against(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["compare", "branch:main", "last", "--archive=kept"]
    only = write_run(tmp_path / "kept", 1, {ONE: MIB})
    assert main(words) == 2
    assert capsys.readouterr().err == (
        "veo compare: 'branch:main': 'kept' has no finished run on branch 'main' "
        f"beside {only}\n"
    )
    for run in range(2, 6):
        write_run(tmp_path / "kept", run, {ONE: MIB})
    assert main(words) == 0
    write_run(tmp_path / "kept", 6, {ONE: 9 * MIB})
    assert main(words) == 1
    assert "baseline 1 MiB (5 runs" in capsys.readouterr().out


def test_a_quantile_is_a_limit(tmp_path: Path) -> None:
    for run in range(20):
        wild = 30 * MIB if run == 5 else MIB
        write_run(tmp_path / "kept", run, {ONE: wild})
    write_run(tmp_path / "other", 1, {ONE: 20 * MIB})
    words = ["compare", "kept#median:20", "other#last"]
    assert main(words) == 0
    assert main([*words, "--limit=p90"]) == 1


def test_runs_of_two_cards_are_said_to_be(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_run(tmp_path / "kept", 1, {ONE: MIB}, gpu="H200")
    write_run(tmp_path / "other", 2, {ONE: MIB}, gpu="A10")
    assert main(["compare", "kept#last", "other#last"]) == 0
    said = capsys.readouterr().out
    assert "not made in the same place: gpu H200, now A10\n" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["last", "last"],
            "A: 'last' is looked up in an archive, and none is named: add "
            "--veo-archive (veo: --archive) or write ARCHIVE#REF",
        ),
        (["none#last", "kept#last"], "there is no archive at 'none': no folder 'runs'"),
        (
            ["kept#branch:x", "kept#last"],
            "'kept#branch:x': 'kept' has no finished run on branch 'x' beside "
            f"{START:%Y%m%d}T010000.000000Z-000001",
        ),
        (
            ["kept#20200101T000000", "kept#last"],
            "there is no run '20200101T000000' in 'kept'",
        ),
        (
            ["kept#median:0", "kept#last"],
            "A: '0' is no number of runs, write e.g. median:20",
        ),
        (
            ["kept#last", "kept#last", "--counter=host.hep"],
            "neither side has a figure of 'host.hep', they have host.heap, "
            "test.duration",
        ),
        (
            ["no.json", "kept#last"],
            "cannot read the baseline 'no.json': No such file or directory",
        ),
    ],
)
def test_compare_refuses_what_is_not_there(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_run(tmp_path / "kept", 1, {ONE: MIB})
    assert main(["compare", *words]) == 2
    assert capsys.readouterr().err == f"veo compare: {said}\n"


def test_devices_go_by_their_place_not_their_serial_number(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for folder, card, size in (("kept", "GPU-1a", MIB), ("other", "GPU-9f", 4 * MIB)):
        header = RunHeader(
            run_id="20260101T000000.000000Z-000001",
            started_at=START.isoformat(),
            finished_at=START.isoformat(),
        )
        writer = RunWriter(tmp_path / folder, header)
        row = CounterRecord("torch.allocated", card, "bytes", 0, size, size)
        writer.add(Record(nodeid=ONE, test_outcome="passed", counters=(row,)))
        writer.finish(header)
    assert main(["compare", "kept#last", "other#last"]) == 1
    said = capsys.readouterr().out
    assert f"{ONE}: torch.allocated on gpu 4 MiB, baseline 1 MiB" in said
