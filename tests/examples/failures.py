"""The failures of examples/evidence_host and evidence_gpu, and their copies.

Run as a program, it writes the copies in docs/evidence.md anew: the second suite runs
over the simulated driver, in the environment that `ci/env torch` makes.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping

from tests.simgpu import build
from tests.simgpu import contract
from tests.simgpu import environments
from tests.simgpu.driver import Sim
from tests.simgpu.environments import Environment


ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs" / "evidence.md"
END = "```\n<!-- end -->\n"
COMMAND = ("-m", "pytest", "-p", "pytest_veo.plugin", "-p", "no:cacheprovider")

_TITLE = re.compile(r"^_+ (\w+) _+$")
_NUMBER = re.compile(r"\d[\d,]*(\.\d+)?")
_AMOUNT = re.compile(r"N ([KMG]iB|B)\b")
_PATH = re.compile(r"/\S+/(?=[\w.]+\b)")
_OTHER_RUNS = re.compile(
    r" of \w+ more| \(by \S+\)| \(deleted\)|, N blocks| in N blocks"
)


def begin(suite: str) -> str:
    """The mark before a suite's copy."""
    return f"<!-- examples/{suite} -->\n```text\n"


def on_the_host() -> str:
    """What pytest prints on examples/evidence_host."""
    return _run(sys.executable, "evidence_host", dict(os.environ))


def on_the_simulator(environment: Environment) -> str:
    """What it prints on examples/evidence_gpu, over the simulated driver."""
    libraries = build.build(environments.client(environment, "torch"))
    with tempfile.TemporaryDirectory() as folder:
        sim = Sim.create(pathlib.Path(folder) / "state", libraries, devices=1)
        try:
            variables = contract.child_environment(sim)
            return _run(str(environment.python), "evidence_gpu", variables)
        finally:
            sim.close()


def _run(python: str, suite: str, variables: dict[str, str]) -> str:
    ours = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }
    for name in ("PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "CI", "FORCE_COLOR"):
        variables.pop(name, None)
    done = subprocess.run(
        # No more than this is wanted of the confirming: what is told is the evidence.
        [python, *COMMAND, "--veo-leak-check"],
        cwd=ROOT / "examples" / suite,
        env={**variables, **ours},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode != 1:
        raise RuntimeError(f"{suite}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def failures(said: str) -> dict[str, str]:
    """The text of each failure, by its test, without the ruled title."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in said.splitlines():
        title = _TITLE.match(line)
        if title is not None:
            lines = found.setdefault(title[1], [])
        elif line.startswith("==="):
            lines = []
        else:
            lines.append(line)
    return {name: "\n".join(text) + "\n" for name, text in found.items()}


def shown(said: str) -> str:
    """The failures for the docs, each under its title; folders are left out."""
    return "\n".join(
        f"{f' {name} ':_^80}\n{_PATH.sub('.../', text)}"
        for name, text in failures(said).items()
    )


def told(suite: str, page: str | None = None) -> Mapping[str, str]:
    """The failures as the docs show them, by their test."""
    text = DOCS.read_text(encoding="utf-8") if page is None else page
    start = text.index(begin(suite)) + len(begin(suite))
    return {
        name: failure.rstrip("\n") + "\n"
        for name, failure in failures(text[start : text.index(END, start)]).items()
    }


def steady(failure: str) -> list[str]:
    """What is the same in every run: the headline and the evidence, without figures."""
    lines = []
    for line in failure.split("\n\n")[0].splitlines():
        line = _PATH.sub(".../", line)
        line = _AMOUNT.sub("AMOUNT", _NUMBER.sub("N", line))
        lines.append(_OTHER_RUNS.sub("", line))
    return lines


def main() -> None:
    """Write the copies anew."""
    page = DOCS.read_text(encoding="utf-8")
    for suite, said in (
        ("evidence_host", on_the_host()),
        ("evidence_gpu", on_the_simulator(environments.find("torch"))),
    ):
        before, mark, rest = page.partition(begin(suite))
        _, end, after = rest.partition(END)
        if not mark or not end:
            raise SystemExit(f"{DOCS}: no place for {suite}")
        page = before + mark + shown(said) + end + after
    DOCS.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
