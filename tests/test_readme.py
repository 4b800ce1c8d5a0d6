"""The README says what the code does: the same options, words, probes and output."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_veo import hookspec
from pytest_veo.cli import COMMANDS
from pytest_veo.options import PROBES
from tests.examples import quickstart


ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/*.md")),
    ROOT / "examples/README.md",
]


def first_cells(header: str) -> list[str]:
    """The first column of the table with this first header, every table of it."""
    cells = []
    for table in re.findall(rf"\n\n\| {header} \|.*\n\|.*\n((?:\|.*\n)+)", README):
        cells += [line.split("|")[1].strip() for line in table.splitlines()]
    return cells


@pytest.fixture(scope="module")
def help_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    said = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "pytest_veo.plugin", "--help"],
        cwd=tmp_path_factory.mktemp("help"),
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=True,
    )
    return said.stdout


def leak_options(text: str) -> set[str]:
    names = set(re.findall(r"^\s+(--veo-[a-z-]+)", text, re.M))
    return {name for name in names if not name.startswith("--veo-jitter")}


def leak_ini_keys(text: str) -> set[str]:
    names = set(re.findall(r"^\s+(veo_[a-z_]+) \(", text, re.M))
    return {name for name in names if not name.startswith("veo_jitter")}


def test_every_option_is_in_the_table(help_text: str) -> None:
    told = {
        cell.strip("`").split("=")[0].split("[")[0] for cell in first_cells("option")
    }
    assert told == leak_options(help_text)


def test_every_ini_key_is_in_the_table(help_text: str) -> None:
    told = set(re.findall(r"^\| `--veo-.*? \| `(veo_[a-z_]+)` \|", README, re.M))
    assert told == leak_ini_keys(help_text)


@pytest.mark.parametrize(
    ("option", "default"),
    [
        ("--veo-confirm-share=PERCENT", "10%"),
        ("--veo-confirm-start=TIME", "2 s"),
        ("--veo-confirm-time=TIME", "30 s"),
        ("--veo-gc=MODE", "freeze"),
        ("--veo-leak-check[=LEVEL]", "off"),
    ],
)
def test_defaults_are_the_ones_of_the_ini_keys(
    pytestconfig: pytest.Config, option: str, default: str
) -> None:
    (row,) = [line for line in README.splitlines() if line.startswith(f"| `{option}")]
    key, told = (cell.strip().strip("`") for cell in row.split("|")[2:4])
    assert told == default
    assert pytestconfig.getini(key) == default


def test_every_marker_of_the_leak_check_is_told_with_its_arguments(
    pytestconfig: pytest.Config,
) -> None:
    told = {cell.strip("`") for cell in first_cells("marker")}
    declared = {line.partition(":")[0] for line in pytestconfig.getini("markers")}
    assert told
    assert told <= declared


def test_every_hook_is_in_the_table() -> None:
    told = {cell.strip("`").partition("(")[0] for cell in first_cells("hook")}
    assert told == {name for name in vars(hookspec) if name.startswith("pytest_veo_")}


def test_every_probe_is_in_the_table() -> None:
    assert tuple(cell.strip("`") for cell in first_cells("probe")) == PROBES


def test_every_command_is_told() -> None:
    for name in COMMANDS:
        assert re.search(rf"^veo {name}\b", README, re.M), name


def test_the_output_it_shows_is_the_quickstarts() -> None:
    assert quickstart.in_readme(README) == quickstart.EXPECTED.read_text(
        encoding="utf-8"
    )


def test_the_failure_that_the_guide_explains_is_the_quickstarts() -> None:
    guide = (ROOT / "docs/leak-check.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"^```\n(leaked .*?)^```$", guide, re.M | re.S)
    expected = quickstart.EXPECTED.read_text(encoding="utf-8")
    assert quickstart.steady(told) in quickstart.steady(expected)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        there = page.parent / name if name else page
        assert there.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in headings(there), f"{page.name} links to {target}"


@pytest.mark.parametrize(
    ("folder", "index"),
    [("docs", ROOT / "docs/index.md"), ("examples", ROOT / "examples/README.md")],
)
def test_every_page_and_example_is_listed(folder: str, index: Path) -> None:
    listed = set(re.findall(r"\]\(([\w-]+(?:\.md)?)\)", index.read_text("utf-8")))
    there = {
        path.name
        for path in (ROOT / folder).iterdir()
        if path != index and (path.is_dir() or path.suffix == ".md")
    }
    assert there - {"__pycache__"} <= listed


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in found}
