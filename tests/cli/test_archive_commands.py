"""`veo compact`, `veo prune` and `veo merge`."""

from __future__ import annotations

import io
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from pytest_veo.archive.store import run_ids
from pytest_veo.cli import main
from pytest_veo.cli import progress
from tests.archive.history import header
from tests.archive.history import record
from tests.archive.history import write
from tests.archive.history import write_history


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main(words) == status
    return capsys.readouterr().out


def document(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return json.loads(said(capsys, *words, "--json"))


def test_compact_tells_what_it_gathered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_history(tmp_path, runs=3)
    assert said(capsys, "compact", str(tmp_path)) == (
        "gathered 3 runs of 2026-09, 2026-10\n"
    )
    assert said(capsys, "compact", str(tmp_path)) == "gathered 0 runs\n"
    assert document(capsys, "compact", str(tmp_path)) == {
        "runs": 0,
        "months": [],
        "waiting": [],
        "unread": [],
    }


def test_prune_tells_what_goes_before_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = write_history(tmp_path, runs=3)
    trial = said(capsys, "prune", str(tmp_path), "--keep=2", "--dry-run")
    assert trial == f"would remove 1 run, kept 2\n  {runs[0]}\n"
    assert run_ids(tmp_path) == runs
    found = document(capsys, "prune", str(tmp_path), "--keep", "1")
    assert found == {"removed": runs[:2], "kept": 1, "unread": [], "dry_run": False}
    assert run_ids(tmp_path) == runs[2:]
    assert said(capsys, "prune", str(tmp_path), "--older-than=9999w") == (
        "removed 0 runs, kept 1\n"
    )


def test_merge_tells_what_came_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shards = [str(tmp_path / name) for name in ("a", "b")]
    for number, shard in enumerate(shards):
        write(shard, header(number), record("test_x"))
    target = str(tmp_path / "all")
    assert said(capsys, "merge", *shards, "-o", target) == (
        "2 added, 0 completed, 0 were there already\n"
    )
    assert document(capsys, "merge", *shards, "-o", target)["same"] == 2


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["compact", "nowhere"], "there is no archive at 'nowhere': no folder 'runs'"),
        (["merge", "nowhere", "-o", "x"], "there is no archive at 'nowhere'"),
        (["prune", "nowhere", "--keep=1"], "there is no archive at 'nowhere'"),
        (["prune", "."], "say what is kept: --keep N, --older-than AGE, or both"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    why: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"veo {words[0]}: {why}")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--keep=few"], "argument --keep: 'few' is no number of runs"),
        (["--older-than=9999999w"], "'9999999w' is more than any run's age"),
        (["--older-than=90"], "'90' is no age, write e.g. 90d or 12w"),
    ],
)
def test_limits_that_mean_nothing_are_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    with pytest.raises(SystemExit):
        main(["prune", "x", *words])
    assert why in capsys.readouterr().err


def test_what_could_not_be_read_is_counted_and_named_after_the_rest_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = write_history(tmp_path, runs=5)
    for run_id in runs[:4]:
        (tmp_path / "runs" / run_id / "run.json").write_text("{")
    assert main(["compact", str(tmp_path)]) == 2
    found = capsys.readouterr()
    assert found.out == "gathered 1 run of 2026-10\n"
    assert found.err.startswith(f"veo compact: 4 things could not be read: {runs[0]}: ")
    assert found.err.endswith("; and 1 more\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    items = ["a", "b"]
    assert progress.track(items, "doing") is items
    monkeypatch.setattr(progress, "sys", types.SimpleNamespace(stderr=Terminal()))
    shown = progress.track(items, "doing")
    assert shown is not items
    assert list(shown) == items
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert progress.track(items, "doing") is items
