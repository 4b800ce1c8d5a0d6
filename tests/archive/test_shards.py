"""Shards of one suite as one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pytest_veo
from pytest_veo.archive.compact import compact
from pytest_veo.archive.merge import merge
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.store import load_run
from pytest_veo.archive.store import run_ids
from pytest_veo.cli import main
from tests.archive.history import NOW
from tests.archive.history import header
from tests.archive.history import record
from tests.archive.history import write


def shard(number: int, total: int = 3, **given: Any) -> RunHeader:
    """As a job of GitLab's, which has its shard in its name."""
    head = header(0, days=number)
    return head._replace(
        run_id=f"2026092{number}T120000.000000Z-c-main-{number}of{total}-00{number}",
        commit="c",
        ci="gitlab",
        ci_job=f"gpu {number}/{total}-77",
        shard=f"{number}/{total}",
        totals=(("clean", number),),
        watched=("host.heap host", f"c{number} host"),
    )._replace(**given)


JOINED = "20260921T120000.000000Z-c-main-3shards-001"


def suite(folder: Path, *heads: RunHeader) -> list[Path]:
    """An archive for each shard, as artifacts of CI jobs are."""
    folders = [folder / head.run_id for head in heads]
    for place, head in zip(folders, heads, strict=True):
        number = head.shard.partition("/")[0]
        write(place, head, record(f"test_{number}"), record(f"test_{number}b"))
    return folders


def test_shards_of_one_suite_become_one_run(tmp_path: Path) -> None:
    sources = suite(tmp_path, *(shard(number) for number in (2, 1, 3)))
    target = tmp_path / "all"
    found = merge(sources, target, joins_shards=True)
    assert (found.added, found.joined) == ((JOINED,), (JOINED,))
    assert found.refused == found.apart == ()
    assert run_ids(target) == [JOINED]
    run = load_run(target, JOINED)
    assert run.header == shard(1)._replace(
        run_id=JOINED,
        shard="1-3/3",
        ci_job="gpu-77",
        finished_at=shard(3).finished_at,
        totals=(("clean", 6),),
        watched=("c1 host", "c2 host", "c3 host", "host.heap host"),
    )
    assert [(each.worker, each.nodeid) for each in run.records] == [
        (f"{number}/3", f"test_a.py::test_{number}{letter}")
        for number in (1, 2, 3)
        for letter in ("", "b")
    ]
    assert len(pytest_veo.load(target, "records")) == 6


def test_joining_once_more_adds_nothing_and_later_shards_are_added(
    tmp_path: Path,
) -> None:
    sources = suite(tmp_path, *(shard(number) for number in (1, 2, 3)))
    target = tmp_path / "all"
    merge([sources[0], sources[2]], target, joins_shards=True)
    assert load_run(target, JOINED).header.shard == "1,3/3"
    compact(target, now=NOW)
    found = merge(sources, target, joins_shards=True)
    assert (found.added, found.completed) == ((), (JOINED,))
    assert merge(sources, target, joins_shards=True).same == 1
    assert load_run(target, JOINED).header.shard == "1-3/3"
    assert sorted(pytest_veo.load(target, "records")["nodeid"]) == [
        f"test_a.py::test_{number}{letter}"
        for number in (1, 2, 3)
        for letter in ("", "b")
    ]


def test_a_killed_shard_leaves_the_run_without_an_end(tmp_path: Path) -> None:
    sources = suite(tmp_path, shard(1), shard(2, finished_at=""))
    with (sources[1] / "runs" / shard(2).run_id / "records.jsonl").open("a") as lines:
        lines.write('{"schema": 2, "no')
    merge(sources, tmp_path / "all", joins_shards=True)
    run = load_run(tmp_path / "all", JOINED)
    assert (run.header.finished_at, len(run.records)) == ("", 4)
    assert [line.partition(": ")[0] for line in run.unread] == ["records.jsonl:5"]


ALONE: dict[str, dict[str, Any]] = {
    "another commit": {"commit": "d"},
    "another branch": {"branch": "topic"},
    "another job": {"ci_job": "cpu 2/3-77"},
    "another pipeline": {"ci_job": "gpu 2/3-78"},
    "another number of shards": {"shard": "2/4"},
    "no shard": {"shard": ""},
    "nothing known": {"commit": "", "ci_job": ""},
}


@pytest.mark.parametrize("given", ALONE.values(), ids=ALONE)
def test_what_belongs_to_no_other_stays_a_run_of_its_own(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    heads = [shard(1), shard(2, **given)]
    found = merge(suite(tmp_path, *heads), tmp_path / "all", joins_shards=True)
    assert found.joined == found.apart == ()
    assert run_ids(tmp_path / "all") == [head.run_id for head in heads]


def test_without_the_option_shards_stay_runs_of_their_own(tmp_path: Path) -> None:
    heads = [shard(1), shard(2)]
    merge(suite(tmp_path, *heads), tmp_path / "all")
    assert run_ids(tmp_path / "all") == [head.run_id for head in heads]


def test_of_a_shard_that_ran_again_the_later_run_counts_and_the_other_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = shard(2, run_id="20260925T120000.000000Z-again", started_at="2026-09-25")
    sources = suite(tmp_path, shard(1), shard(2), again)
    words = [*map(str, sources), "-o", str(tmp_path / "all"), "--join-shards"]
    assert main(["merge", *words]) == 0
    assert capsys.readouterr().out == (
        "2 added, 0 completed, 0 were there already\n"
        f"joined of shards: {JOINED}\n"
        f"not joined: {shard(2).run_id}: shard 2/3 ran again: {again.run_id}\n"
    )
    assert run_ids(tmp_path / "all") == [JOINED, shard(2).run_id]


def test_a_shard_of_another_gpu_stays_apart_and_is_named(tmp_path: Path) -> None:
    sources = suite(tmp_path, shard(1, gpu="H100"), shard(2, gpu="A10"), shard(3))
    sources += suite(tmp_path / "more", shard(3, gpu="H100", started_at="2026-09-29"))
    found = merge(sources, tmp_path / "all", joins_shards=True)
    assert found.joined == (JOINED,)
    assert found.apart == (
        f"{shard(2).run_id}: not made where shard 1/3 was: gpu H100, now A10",
    )
    assert load_run(tmp_path / "all", JOINED).header.shard == "1,3/3"


def test_shards_that_are_there_already_are_not_doubled(tmp_path: Path) -> None:
    sources = suite(tmp_path, shard(1), shard(2))
    merge(sources[:1], tmp_path / "all")
    found = merge(sources, tmp_path / "all", joins_shards=True)
    assert found.apart == (f"{shard(1).run_id}: is a run of its own there already",)
    assert len(pytest_veo.load(tmp_path / "all", "records")) == 4


def test_a_record_keeps_the_environment_that_its_shard_was_made_in(
    tmp_path: Path,
) -> None:
    other = (("module.torch", "2.14.1"), ("python", "3.11.7"))
    sources = suite(tmp_path, shard(1), shard(2, environment=other))
    merge(sources, tmp_path / "all", joins_shards=True)
    run = load_run(tmp_path / "all", JOINED)
    assert [run.environment_of(each) for each in run.records] == [
        dict(shard(1).environment),
        dict(shard(1).environment),
        dict(other),
        dict(other),
    ]
