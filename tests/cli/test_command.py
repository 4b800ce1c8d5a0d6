from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_veo import __version__
from pytest_veo.cli import COMMANDS
from pytest_veo.cli import _exists
from pytest_veo.cli import main
from pytest_veo.cli import show
from pytest_veo.errors import ArchiveError
from pytest_veo.errors import CommandError
from tests.archive.history import header
from tests.archive.history import record
from tests.archive.history import write


HERE = [name for name, module in COMMANDS.items() if _exists(module)]


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    listed = capsys.readouterr().out
    assert all(f"\n    {name} " in listed for name in HERE)


@pytest.mark.parametrize("name", HERE)
def test_every_command_has_a_help_of_its_own(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: veo {name} ")


def test_the_version_is_the_distributions(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"veo {__version__}\n"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        pytest.param([], "the following arguments are required: COMMAND", id="none"),
        pytest.param(["shw"], "argument COMMAND: invalid choice: 'shw'", id="unknown"),
        pytest.param(
            ["show"], "the following arguments are required: ARCHIVE", id="bare"
        ),
        pytest.param(
            ["show", "a", "b", "c"], "unrecognized arguments: c", id="too-many"
        ),
    ],
)
def test_bad_usage_is_refused(
    capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(CommandError("no such thing", 3), 3, id="its-own-status"),
        pytest.param(ArchiveError("no such thing"), 2, id="bad-input"),
    ],
)
def test_an_error_is_one_line_and_an_exit_status(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    status: int,
) -> None:
    def fail(_args: object) -> int:
        raise error

    monkeypatch.setattr(show, "run", fail)
    assert main(["show", "DIR"]) == status
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "veo show: no such thing\n")


HOSTILE = "test_a.py::test_\u2603[\u202e\x1b[31m]"


@pytest.fixture
def archive(tmp_path: Path) -> str:
    write(tmp_path, header(1), record("test_a", 512)._replace(nodeid=HOSTILE))
    return str(tmp_path)


def told(archive: str, *words: str, output: int | None = None) -> tuple[int, str, str]:
    """Status, output and errors of `veo` where the locale knows ASCII only."""
    only_ascii = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest_veo", words[0], archive, *words[1:]],
        stdout=subprocess.PIPE if output is None else output,
        stderr=subprocess.PIPE,
        env=os.environ | only_ascii | {"PYTHONIOENCODING": "ascii"},
        timeout=60,
        check=False,
    )
    return ended.returncode, (ended.stdout or b"").decode(), ended.stderr.decode()


def test_what_the_terminal_cannot_show_or_would_obey_is_shown_as_codes(
    archive: str,
) -> None:
    status, said, errors = told(archive, "show")
    assert (status, errors) == (0, "")
    assert r"test_a.py::test_\u2603[\u202e\u001b[31m]" in said


def test_a_table_on_the_standard_output_is_utf_8_whatever_the_locale(
    archive: str,
) -> None:
    status, said, errors = told(archive, "export", "--format=csv", "--table=records")
    assert (status, errors) == (0, "")
    assert HOSTILE in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_an_output_that_is_full_is_told_in_a_line(archive: str) -> None:
    with Path("/dev/full").open("wb") as full:
        status, _, errors = told(archive, "show", output=full.fileno())
    assert (status, errors) == (2, "veo show: [Errno 28] No space left on device\n")


def test_a_command_that_is_asked_for_leaves_the_others_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, COMMANDS["doctor"], None)
    assert main(["show", "/nowhere"]) == 2
    assert "no archive" in capsys.readouterr().err
