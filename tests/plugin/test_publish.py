"""The page, annotations and step summary of a session."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from pathlib import Path

    from tests.plugin.conftest import Check


LEAKS = """
    import pytest

    kept = []

    def test_clean():
        pass

    def test_leaks():
        kept.append(bytearray(100_000))

    def test_fails():
        assert False
"""
QUICK = ("--veo-reruns=5", "--veo-evidence=off")
FRAMES = """
    import pytest

    @pytest.mark.veo_jitter(max_ms=20.0)
    def test_stutters(veo_frames):
        for number in range(400):
            veo_frames.add(number * 16_000_000 + (number > 200) * 60_000_000)

    def test_plain():
        pass
"""


def data_of(page: Path) -> dict[str, object]:
    found = re.search(
        r'<script type="application/json" id="veo-tests">(.*?)</script>',
        page.read_text(),
    )
    assert found is not None
    tests: dict[str, object] = json.loads(found[1])
    return tests


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch, pytester: pytest.Pytester) -> Path:
    """As on GitHub Actions; the step's summary."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(pytester.path.parent))
    summary = pytester.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    return summary


def test_a_page_has_every_test_without_an_archive(
    check: Check, pytester: pytest.Pytester
) -> None:
    result = check(LEAKS, "--veo-html=out/page.html", "--veo-reruns=5")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["page: out/page.html"])
    page = pytester.path / "out" / "page.html"
    assert data_of(page)["id"] == [
        "test_it.py::test_clean",
        "test_it.py::test_leaks",
        "test_it.py::test_fails",
    ]
    text = page.read_text()
    assert '<h1 class="bad">1 test leaks</h1>' in text
    assert "test_it.py:9" in text


def test_a_page_beside_an_archive_has_the_runs_before(
    check: Check, pytester: pytest.Pytester
) -> None:
    both = ("--veo-html=page.html", "--veo-archive=kept", "--veo-reruns=5")
    check("def test_it(): pass\n", *both)
    assert data_of(pytester.path / "page.html")["past"] == 0
    check(None, *both)
    assert data_of(pytester.path / "page.html")["past"] == 1


def test_a_page_under_xdist_is_written_once_with_all_workers(
    check: Check, pytester: pytest.Pytester
) -> None:
    check(
        """
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_it(number):
            pass
        """,
        "--veo-html=page.html",
        "-n2",
        plugins=["xdist.plugin"],
    )
    data = data_of(pytester.path / "page.html")
    assert sorted(data["id"]) == [f"test_it.py::test_it[{n}]" for n in range(4)]  # type: ignore[call-overload]


def test_without_a_leak_check_frames_are_still_shown(
    check: Check, pytester: pytest.Pytester
) -> None:
    result = check(
        FRAMES,
        "--veo-html=page.html",
        plugins=["pytest_veo.frames_plugin"],
        level="",
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = (pytester.path / "page.html").read_text()
    assert '<h1 class="bad">1 test breaks' not in text
    assert "1 breaks its frame budget" in text
    assert "max_ms 76 ms, limit 20 ms, in frames" in text


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("--veo-html=.", "--veo-html: '*' is a folder, name a file"),
        ("--veo-code-quality=.", "--veo-code-quality: '*' is a folder, name a file"),
        (
            "--veo-annotate=gitlab",
            "--veo-annotate: 'gitlab' is none of auto, github, off",
        ),
    ],
)
def test_an_option_without_meaning_is_refused(
    check: Check, where: str, said: str
) -> None:
    result = check("def test_it(): pass\n", where, inprocess=True)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {said}"])


def test_without_jinja2_it_is_said_before_the_first_test(
    check: Check, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(
        hide="""
        import importlib.util

        real = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *rest: (
            None if name == "jinja2" else real(name, *rest)
        )
        """
    )
    result = check("def test_it(): pass\n", "--veo-html=page.html", plugins=["hide"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: --veo-html needs jinja2, which is not installed: "
            "pip install 'pytest-veo[[]html]'"
        ]
    )


def test_a_page_that_cannot_be_written_fails_no_test(
    check: Check, pytester: pytest.Pytester
) -> None:
    (pytester.path / "taken").write_text("a file")
    result = check("def test_it(): pass\n", "--veo-html=taken/page.html")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["page: cannot write 'taken/page.html': *"])


def test_collecting_writes_no_page(check: Check, pytester: pytest.Pytester) -> None:
    check("def test_it(): pass\n", "--veo-html=page.html", "--collect-only")
    assert not (pytester.path / "page.html").exists()


def test_on_github_leaks_are_annotated_and_the_step_has_a_summary(
    check: Check, pytester: pytest.Pytester, github: Path
) -> None:
    result = check(LEAKS, "--veo-reruns=5")
    folder = pytester.path.name
    (line,) = [each for each in result.outlines if each.startswith("::")]
    assert line.startswith(
        f"::error file={folder}/test_it.py,line=8,title=leak%3A test_leaks::leaked "
    )
    assert "test_it.py%3A9" not in line
    assert "test_it.py:9" in line
    text = github.read_text()
    assert text.startswith("## pytest-veo: 1 found ❌\n\n**1** clean, **1** leak, ")
    assert "**1** not judged" in text


def test_elsewhere_nothing_is_annotated(
    check: Check, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))
    result = check(LEAKS, *QUICK)
    assert not [each for each in result.outlines if each.startswith("::")]
    assert not (pytester.path / "summary.md").exists()


@pytest.mark.parametrize("how", ["off", "github"])
def test_annotating_can_be_asked_for_and_declined(
    check: Check, github: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "github":
        monkeypatch.delenv("GITHUB_ACTIONS")
    result = check(LEAKS, *QUICK, f"--veo-annotate={how}")
    found = [each for each in result.outlines if each.startswith("::error")]
    assert len(found) == (how == "github")
    assert github.exists() == (how == "github")


def test_what_another_plugin_annotates_is_not_annotated_twice(
    check: Check, pytester: pytest.Pytester, github: Path
) -> None:
    pytester.makepyfile(pytest_github_actions_annotate_failures="")
    result = check(
        LEAKS,
        *QUICK,
        plugins=["pytest_github_actions_annotate_failures"],
    )
    assert not [each for each in result.outlines if each.startswith("::")]
    assert "1 found" in github.read_text()


def test_gitlab_gets_a_code_quality_report_with_paths_of_the_repository(
    check: Check, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_PROJECT_DIR", str(pytester.path.parent))
    result = check(LEAKS, *QUICK, "--veo-code-quality=out/quality.json")
    result.stdout.fnmatch_lines(["code quality: out/quality.json"])
    (issue,) = json.loads((pytester.path / "out" / "quality.json").read_text())
    assert issue["severity"] == "major"
    assert issue["location"] == {
        "path": f"{pytester.path.name}/test_it.py",
        "lines": {"begin": 8},
    }


def test_a_code_quality_report_that_cannot_be_written_fails_no_test(
    check: Check, pytester: pytest.Pytester
) -> None:
    (pytester.path / "taken").write_text("a file")
    result = check("def test_it(): pass\n", "--veo-code-quality=taken/quality.json")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["code quality: cannot write 'taken/quality.json': *"])


def test_a_summary_is_added_to_what_other_steps_wrote(
    check: Check, github: Path
) -> None:
    github.write_text("# mine\n")
    check("def test_it(): pass\n")
    assert github.read_text().startswith("# mine\n## pytest-veo: nothing found")


def test_a_summary_that_cannot_be_written_fails_no_test(
    check: Check, github: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(github.parent / "no" / "summary.md"))
    result = check("def test_it(): pass\n")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["step summary: cannot write *: No such file*"])
