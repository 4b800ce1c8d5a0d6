"""`ci/system` on machines that lack something, made of stand-ins for their commands."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


SCRIPT = Path(__file__).parents[2] / "ci" / "system"
APT = """#!/bin/sh
echo "$@" >>"{folder}/asked"
case "$*" in
*" update") exit 0 ;;
*) {install} ;;
esac
"""


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A folder of commands without a browser."""
    for name in ("sh", "ls", "grep", "sed", "cat", "touch", "chmod"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    return tmp_path


def script(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def run(commands: Path, user: int, *names: str) -> subprocess.CompletedProcess[str]:
    script(commands / "id", f"#!/bin/sh\necho {user}\n")
    return subprocess.run(
        [SCRIPT, *names],
        env={"PATH": str(commands)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_is_missing_is_told_to_a_person(commands: Path) -> None:
    said = run(commands, 1000, "chromium")
    assert said.returncode == 1
    assert said.stderr == (
        "ci/system: missing: chromium (as root: apt-get install chromium)\n"
    )


def test_what_is_there_is_left_alone(commands: Path) -> None:
    script(commands / "chromium", "#!/bin/sh\n")
    script(commands / "apt-get", APT.format(folder=commands, install="exit 1"))
    said = run(commands, 0, "chromium")
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")
    assert not (commands / "asked").exists()


def test_root_gets_what_is_missing_installed(commands: Path) -> None:
    browser = commands / "chromium"
    install = f'touch "{browser}"; chmod +x "{browser}"'
    script(commands / "apt-get", APT.format(folder=commands, install=install))
    said = run(commands, 0, "chromium")
    assert (said.returncode, said.stderr) == (0, "")
    asked = (commands / "asked").read_text(encoding="utf-8").splitlines()
    assert asked[1].endswith("install -y --no-install-recommends chromium")


def test_an_installation_that_fails_fails(commands: Path) -> None:
    script(commands / "apt-get", APT.format(folder=commands, install="exit 100"))
    said = run(commands, 0, "chromium")
    assert said.returncode == 1
    assert "ci/system: apt-get could not install chromium" in said.stderr
    assert "ci/system: missing: chromium" in said.stderr


def test_a_name_that_it_does_not_know_is_refused(commands: Path) -> None:
    said = run(commands, 1000, "firefox")
    assert said.returncode == 2
    assert "ci/system [vulkan] [chromium]" in said.stderr
