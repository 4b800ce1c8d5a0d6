"""What pytest prints on examples/quickstart, and what of it varies.

Run as a program, it writes `expected.txt` and the README's copy of it anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path


ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples" / "quickstart"
EXPECTED = QUICKSTART / "expected.txt"
README = ROOT / "README.md"
BEGIN = "<!-- examples/quickstart/expected.txt -->\n```text\n"
END = "```\n<!-- end -->\n"

_HEADER = ("platform ", "rootdir: ", "configfile: ", "plugins: ", "cachedir: ")
_EVIDENCE = (
    "  allocated  ",
    "  held by ",
    "  also  ",
    "  hint  ",
    "  note  ",
    "  created  ",
)
_NUMBER = re.compile(r"\d[\d,]*(\.\d+)?")
_TIME = re.compile(r"N (ns|us|ms|s)\b")
_CUT_OFF = re.compile(r"^(FAILED \S+).*\.\.\.$")
_DELTAS = re.compile(r"  then .*")
_RULE = re.compile(r"={3,}|_{3,}")


def run() -> subprocess.CompletedProcess[str]:
    """The main job on the quickstart, with no plugin but ours."""
    environment = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }
    for name in ("PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "CI", "FORCE_COLOR"):
        environment.pop(name, None)
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "pytest_veo.plugin"),
            *("-p", "no:cacheprovider", "--veo-leak-check"),
        ],
        cwd=QUICKSTART,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def evidence(said: str) -> list[str]:
    """The lines on what was allocated, by whom it is held, and what helps."""
    kept: list[str] = []
    for line in said.splitlines():
        goes_on = bool(kept) and line.startswith(" " * 13)
        if line.startswith(_EVIDENCE) or (goes_on and not line.startswith("=")):
            kept.append(line)
    return kept


def steady(said: str) -> str:
    """What is the same on every machine: numbers, times and evidence go, words stay.

    How a chain of holders is told depends on the Python version.
    """
    lines = []
    apart = set(evidence(said))
    for line in said.splitlines():
        if line.startswith(_HEADER) or line in apart:
            continue
        line = _DELTAS.sub("  then DELTAS", line)
        line = _NUMBER.sub("N", line)
        line = _TIME.sub("TIME", line)
        line = re.sub(r"\b(bytes|[KM]iB|B)\b", "BYTES", line)
        line = _CUT_OFF.sub(r"\1", line)
        lines.append(re.sub(" {2,}", "  ", _RULE.sub("===", line)).rstrip())
    return "\n".join(lines) + "\n"


def shown(said: str) -> str:
    """What the reader of the README needs: without the machine's own lines."""
    kept = [line for line in said.splitlines() if not line.startswith(_HEADER)]
    return "\n".join(kept) + "\n"


def in_readme(readme: str) -> str:
    """The README's copy.

    Raises:
        ValueError: the marks around it are not there.
    """
    start = readme.index(BEGIN) + len(BEGIN)
    return readme[start : readme.index(END, start)]


def main() -> None:
    """Write both copies anew."""
    text = shown(run().stdout)
    EXPECTED.write_text(text, encoding="utf-8")
    before, mark, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    README.write_text(before + mark + text + end + after, encoding="utf-8")


if __name__ == "__main__":
    main()
