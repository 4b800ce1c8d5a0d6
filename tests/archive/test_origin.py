"""Where a run comes from, and what it is called."""

from __future__ import annotations

import datetime
import json
import subprocess
from pathlib import Path

import pytest

from pytest_veo.archive.run_id import make_run_id
from pytest_veo.telemetry.ci import Origin
from pytest_veo.telemetry.ci import origin


SYSTEMS = {
    "github": (
        {
            "GITHUB_ACTIONS": "true",
            "GITHUB_SHA": "abc",
            "GITHUB_REF_NAME": "main",
            "GITHUB_JOB": "gpu",
            "GITHUB_RUN_ID": "42",
            "GITHUB_RUN_ATTEMPT": "2",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_REPOSITORY": "a/b",
        },
        Origin(
            "abc",
            "main",
            "github",
            "gpu-42.2",
            "https://github.com/a/b/actions/runs/42",
        ),
    ),
    "gitlab": (
        {
            "GITLAB_CI": "true",
            "CI_COMMIT_SHA": "abc",
            "CI_COMMIT_REF_NAME": "main",
            "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "topic",
            "CI_JOB_NAME": "gpu 2/8",
            "CI_PIPELINE_ID": "7",
            "CI_JOB_URL": "https://gitlab/7",
            "CI_NODE_INDEX": "2",
            "CI_NODE_TOTAL": "8",
        },
        Origin("abc", "topic", "gitlab", "gpu 2/8-7", "https://gitlab/7", "2/8"),
    ),
    "jenkins": (
        {
            "JENKINS_URL": "https://j",
            "GIT_COMMIT": "abc",
            "GIT_BRANCH": "origin/main",
            "JOB_NAME": "veo",
            "BUILD_NUMBER": "9",
            "BUILD_URL": "https://j/9",
        },
        Origin("abc", "main", "jenkins", "veo-9", "https://j/9"),
    ),
    "buildkite": (
        {
            "BUILDKITE": "true",
            "BUILDKITE_COMMIT": "abc",
            "BUILDKITE_BRANCH": "main",
            "BUILDKITE_LABEL": "gpu",
            "BUILDKITE_BUILD_NUMBER": "3",
            "BUILDKITE_PARALLEL_JOB": "0",
            "BUILDKITE_PARALLEL_JOB_COUNT": "4",
        },
        Origin("abc", "main", "buildkite", "gpu-3", "", "1/4"),
    ),
    "azure": (
        {
            "TF_BUILD": "True",
            "BUILD_SOURCEVERSION": "abc",
            "BUILD_SOURCEBRANCH": "refs/heads/feature/x",
            "AGENT_JOBNAME": "gpu",
            "BUILD_BUILDID": "3",
        },
        Origin("abc", "feature/x", "azure", "gpu-3"),
    ),
    "own": (
        {
            "GITLAB_CI": "true",
            "CI_COMMIT_SHA": "abc",
            "VEO_COMMIT": "def",
            "VEO_BRANCH": "mine",
            "VEO_CI_JOB": "hand",
            "VEO_SHARD": "1/2",
        },
        Origin("def", "mine", "gitlab", "hand", "", "1/2"),
    ),
}


@pytest.mark.parametrize(("environ", "known"), SYSTEMS.values(), ids=SYSTEMS)
def test_ci_systems_are_known_by_their_variables(
    tmp_path: Path, environ: dict[str, str], known: Origin
) -> None:
    assert origin(tmp_path, environ) == known


def test_a_pull_request_is_known_by_its_own_commit_not_by_the_merge(
    tmp_path: Path,
) -> None:
    event = tmp_path / "event.json"
    environ = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_SHA": "merge",
        "GITHUB_HEAD_REF": "topic",
        "GITHUB_EVENT_PATH": str(event),
    }
    assert origin(tmp_path, environ).commit == "merge"
    event.write_text(json.dumps({"pull_request": {"head": {"sha": "head"}}}))
    found = origin(tmp_path, environ)
    assert (found.commit, found.branch) == ("head", "topic")


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x@x", *words],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def test_commit_and_branch_are_read_from_git_in_every_shape_of_checkout(
    tmp_path: Path,
) -> None:
    top = tmp_path / "top"
    (top / "deep" / "er").mkdir(parents=True)
    assert origin(top, {}) == Origin()
    git(top, "init", "-q", "-b", "main")
    assert origin(top, {}) == Origin("", "main")
    git(top, "commit", "-q", "--allow-empty", "-m", "first")
    head = git(top, "rev-parse", "HEAD")
    assert origin(top / "deep" / "er", {}) == Origin(head, "main")
    git(top, "pack-refs", "--all")
    assert origin(top, {}) == Origin(head, "main")
    git(top, "worktree", "add", "-q", "-b", "feature/x", str(tmp_path / "tree"))
    assert origin(tmp_path / "tree", {}) == Origin(head, "feature/x")
    git(top, "checkout", "-q", "--detach")
    assert origin(top, {}) == Origin(head, "")
    environ = {"GITLAB_CI": "1", "CI_COMMIT_REF_NAME": "ci"}
    assert origin(top, environ) == Origin(head, "ci", "gitlab")


NOON = datetime.datetime(2026, 11, 30, 12, 0, 0, 1234, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("known", "name"),
    [
        (Origin(), "20261130T120000.001234Z-"),
        (
            Origin("1a2b3c4d5e6f", "main", "x", "unit 7", "", "2/8"),
            "20261130T120000.001234Z-1a2b3c4d5e-main-unit_7-2of8-",
        ),
        (
            Origin(branch="../../etc/passwd", ci_job="a\nb\0c" + "x" * 300),
            "20261130T120000.001234Z-etc_passwd-a_b_c" + "x" * 27 + "-",
        ),
        (Origin(branch="füß-bar"), "20261130T120000.001234Z-f_bar-"),
    ],
    ids=["nothing", "all", "hostile", "other letters"],
)
def test_a_run_is_named_by_all_that_is_known_and_nothing_that_no_path_may_hold(
    known: Origin, name: str
) -> None:
    found = make_run_id(NOON, known)
    assert found.startswith(name)
    assert len(found.removeprefix(name)) == 8


def test_runs_that_are_alike_in_all_else_have_names_of_their_own() -> None:
    names = {make_run_id(NOON, Origin("abc", "main")) for _ in range(1000)}
    assert len(names) == 1000


def test_names_sort_by_time_whatever_the_clock_of_the_place_says() -> None:
    east = datetime.timezone(datetime.timedelta(hours=9))
    later = (NOON + datetime.timedelta(seconds=1)).astimezone(east)
    assert make_run_id(NOON, Origin()) < make_run_id(later, Origin())
