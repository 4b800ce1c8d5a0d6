"""Where a run comes from: commit, branch, CI job and shard.

Read from the variables of the CI system and from git's own files. Nothing asks a
network, and nothing needs a git that trusts the folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Origin(NamedTuple):
    """What is known of a run's origin; empty text where nothing is."""

    commit: str = ""
    """The full hash."""
    branch: str = ""
    ci: str = ""
    """The CI system."""
    ci_job: str = ""
    """Name and number of the job."""
    ci_url: str = ""
    shard: str = ""
    """`2/8`: the second of eight."""


class _System(NamedTuple):
    """The variables of one CI system; the first that is set holds."""

    name: str
    told_by: str
    commit: tuple[str, ...]
    branch: tuple[str, ...]
    job: tuple[str, ...]
    number: tuple[str, ...]
    url: tuple[str, ...] = ()
    shard: tuple[str, str] = ("", "")
    counts_from: int = 1


# Names as each system documents them among its predefined variables.
_SYSTEMS = (
    _System(
        name="github",
        told_by="GITHUB_ACTIONS",
        commit=("GITHUB_SHA",),
        branch=("GITHUB_HEAD_REF", "GITHUB_REF_NAME"),
        job=("GITHUB_JOB",),
        number=("GITHUB_RUN_ID",),
    ),
    _System(
        name="gitlab",
        told_by="GITLAB_CI",
        commit=("CI_COMMIT_SHA",),
        branch=("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_REF_NAME"),
        job=("CI_JOB_NAME",),
        # The job's own number would tell the shards of one pipeline apart.
        number=("CI_PIPELINE_ID",),
        url=("CI_JOB_URL",),
        shard=("CI_NODE_INDEX", "CI_NODE_TOTAL"),
    ),
    _System(
        name="jenkins",
        told_by="JENKINS_URL",
        commit=("GIT_COMMIT",),
        branch=("CHANGE_BRANCH", "BRANCH_NAME", "GIT_BRANCH"),
        job=("JOB_NAME",),
        number=("BUILD_NUMBER",),
        url=("BUILD_URL",),
    ),
    _System(
        name="buildkite",
        told_by="BUILDKITE",
        commit=("BUILDKITE_COMMIT",),
        branch=("BUILDKITE_BRANCH",),
        job=("BUILDKITE_STEP_KEY", "BUILDKITE_LABEL", "BUILDKITE_PIPELINE_SLUG"),
        number=("BUILDKITE_BUILD_NUMBER",),
        url=("BUILDKITE_BUILD_URL",),
        shard=("BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT"),
        counts_from=0,
    ),
    _System(
        name="circleci",
        told_by="CIRCLECI",
        commit=("CIRCLE_SHA1",),
        branch=("CIRCLE_BRANCH",),
        job=("CIRCLE_JOB",),
        number=("CIRCLE_BUILD_NUM",),
        url=("CIRCLE_BUILD_URL",),
        shard=("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL"),
        counts_from=0,
    ),
    _System(
        name="azure",
        told_by="TF_BUILD",
        commit=("BUILD_SOURCEVERSION",),
        branch=("SYSTEM_PULLREQUEST_SOURCEBRANCH", "BUILD_SOURCEBRANCH"),
        job=("AGENT_JOBNAME",),
        number=("BUILD_BUILDID",),
        shard=("SYSTEM_JOBPOSITIONINPHASE", "SYSTEM_TOTALJOBSINPHASE"),
    ),
    _System(
        name="bitbucket",
        told_by="BITBUCKET_BUILD_NUMBER",
        commit=("BITBUCKET_COMMIT",),
        branch=("BITBUCKET_BRANCH",),
        job=("BITBUCKET_REPO_SLUG",),
        number=("BITBUCKET_BUILD_NUMBER",),
        shard=("BITBUCKET_PARALLEL_STEP", "BITBUCKET_PARALLEL_STEP_COUNT"),
        counts_from=0,
    ),
    _System(
        name="teamcity",
        told_by="TEAMCITY_VERSION",
        commit=("BUILD_VCS_NUMBER",),
        branch=(),
        job=("TEAMCITY_BUILDCONF_NAME",),
        number=("BUILD_NUMBER",),
    ),
    _System(
        name="drone",
        told_by="DRONE",
        commit=("DRONE_COMMIT_SHA",),
        branch=("DRONE_SOURCE_BRANCH", "DRONE_BRANCH"),
        job=("DRONE_STEP_NAME",),
        number=("DRONE_BUILD_NUMBER",),
        url=("DRONE_BUILD_LINK",),
    ),
    _System(
        name="travis",
        told_by="TRAVIS",
        commit=("TRAVIS_PULL_REQUEST_SHA", "TRAVIS_COMMIT"),
        branch=("TRAVIS_PULL_REQUEST_BRANCH", "TRAVIS_BRANCH"),
        job=("TRAVIS_JOB_NAME",),
        number=("TRAVIS_JOB_NUMBER",),
        url=("TRAVIS_JOB_WEB_URL",),
    ),
)
_OWN = {
    "commit": "VEO_COMMIT",
    "branch": "VEO_BRANCH",
    "ci_job": "VEO_CI_JOB",
    "shard": "VEO_SHARD",
}
"""What a person may set where nothing else knows; it comes before all else."""
_GIT_TIME_S = 5.0


def origin(folder: Path, environ: Mapping[str, str] = os.environ) -> Origin:
    """All that is known of a run that is started in this folder.

    Args:
        folder: in a git checkout, or not.
        environ: the variables to look at.
    """
    found = _of_ci(environ)
    if not found.commit:
        commit, branch = _of_git(folder)
        found = found._replace(commit=commit, branch=found.branch or branch)
    own = {field: environ[name] for field, name in _OWN.items() if environ.get(name)}
    return found._replace(**own)


def _of_ci(environ: Mapping[str, str]) -> Origin:
    for system in _SYSTEMS:
        if not environ.get(system.told_by):
            continue
        job = [_first(environ, system.job), _first(environ, system.number)]
        found = Origin(
            commit=_first(environ, system.commit),
            branch=_short(_first(environ, system.branch)),
            ci=system.name,
            ci_job="-".join(part for part in job if part),
            ci_url=_first(environ, system.url),
            shard=_shard(environ, system),
        )
        return _of_github(found, environ) if system.name == "github" else found
    return Origin()


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((environ[name] for name in names if environ.get(name)), "")


def _short(branch: str) -> str:
    for prefix in ("refs/heads/", "origin/"):
        branch = branch.removeprefix(prefix)
    return branch


def _shard(environ: Mapping[str, str], system: _System) -> str:
    index, total = (environ.get(name, "") for name in system.shard)
    if not index.isdecimal() or not total.isdecimal() or int(total) < 2:
        return ""
    return f"{int(index) + 1 - system.counts_from}/{total}"


def _of_github(found: Origin, environ: Mapping[str, str]) -> Origin:
    attempt = environ.get("GITHUB_RUN_ATTEMPT", "1")
    server, repository = (
        environ.get("GITHUB_SERVER_URL", ""),
        environ.get("GITHUB_REPOSITORY", ""),
    )
    if server and repository:
        run = environ.get("GITHUB_RUN_ID", "")
        found = found._replace(ci_url=f"{server}/{repository}/actions/runs/{run}")
    if attempt != "1":
        found = found._replace(ci_job=f"{found.ci_job}.{attempt}")
    # What is checked out for a pull request is a merge that no history holds.
    try:
        event = json.loads(Path(environ["GITHUB_EVENT_PATH"]).read_text("utf-8"))
        commit = event["pull_request"]["head"]["sha"]
    except (KeyError, TypeError, OSError, ValueError):
        return found
    return found._replace(commit=str(commit))


def _of_git(folder: Path) -> tuple[str, str]:
    """Commit and branch of the checkout that the folder lies in."""
    git = _git_folder(folder)
    if git is None:
        return "", ""
    try:
        head = (git / "HEAD").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return "", ""
    if not head.startswith("ref: "):
        return head, ""
    ref = head.removeprefix("ref: ")
    branch = ref.removeprefix("refs/heads/")
    if branch == ".invalid":  # references are in tables of git's own
        return _ask_git(folder, "rev-parse", "HEAD"), _ask_git(
            folder, "symbolic-ref", "--short", "HEAD"
        )
    return _commit_of(git, ref), branch


def _git_folder(folder: Path) -> Path | None:
    for parent in (folder, *folder.parents):
        git = parent / ".git"
        if git.is_dir():
            return git
        try:
            text = git.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        # A worktree or a submodule: the file says where.
        return parent / text.removeprefix("gitdir:").strip()
    return None


def _commit_of(git: Path, ref: str) -> str:
    shared = git
    with contextlib.suppress(OSError, UnicodeDecodeError):  # no worktree: one folder
        shared = git / (git / "commondir").read_text("utf-8").strip()
    for place in (git, shared):
        try:
            return (place / ref).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            continue
    try:
        packed = (shared / "packed-refs").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    return next(
        (line[: -len(ref) - 1] for line in packed if line.endswith(f" {ref}")), ""
    )


def _ask_git(folder: Path, *words: str) -> str:
    try:
        said = subprocess.run(
            ["git", *words],
            cwd=folder,
            capture_output=True,
            check=True,
            text=True,
            timeout=_GIT_TIME_S,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""  # no git, or one that refuses: the run has no commit
    return said.stdout.strip()
