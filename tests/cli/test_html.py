from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_veo.archive.store import Run
from pytest_veo.archive.store import RunWriter
from pytest_veo.cli import main
from pytest_veo.verdict import CLEAN
from tests.report.html import runs


RUN = "20260301T120000.000000Z-1a2b3c"
EARLIER = "20260228T120000.000000Z-0a0b0c"


def archived(archive: Path, run_id: str = RUN, run: Run | None = None) -> Path:
    run = run or runs.small()
    writer = RunWriter(archive, run.header._replace(run_id=run_id))
    for record in run.records:
        writer.add(record)
    writer.finish(run.header._replace(run_id=run_id))
    return archive


def test_the_last_run_becomes_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = archived(archived(tmp_path / "kept", EARLIER))
    page = tmp_path / "out" / "page.html"
    assert main(["html", str(archive), "-o", str(page)]) == 0
    assert capsys.readouterr().out == f"{page}: 8 tests of {RUN}\n"
    text = page.read_text()
    assert "2 tests leak, 1 breaks its frame budget" in text
    assert ">Last 2 runs<" in text


@pytest.mark.parametrize("by_folder", [True, False], ids=["folder", "id"])
def test_a_run_is_named_by_its_id_or_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], by_folder: bool
) -> None:
    archive = archived(archived(tmp_path / "kept", EARLIER))
    page = tmp_path / "page.html"
    named = [str(archive / "runs" / EARLIER)] if by_folder else [str(archive), EARLIER]
    assert main(["html", *named, "-o", str(page)]) == 0
    assert capsys.readouterr().out.endswith(f"8 tests of {EARLIER}\n")


def test_earlier_runs_can_be_left_out(tmp_path: Path) -> None:
    archive = archived(archived(tmp_path / "kept", EARLIER))
    page = tmp_path / "page.html"
    main(["html", str(archive), "-o", str(page), "--past", "0"])
    assert not re.search(r'id="veo-past-', page.read_text())
    main(["html", str(archive), "-o", str(page)])
    assert re.search(r'id="veo-past-', page.read_text())


def test_what_could_not_be_read_is_told_beside_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = archived(archived(tmp_path / "kept", EARLIER))
    for run_id in (RUN, EARLIER):
        with (archive / "runs" / run_id / "records.jsonl").open("a") as lines:
            lines.write("half a li")
    page = tmp_path / "page.html"
    assert main(["html", str(archive), "-o", str(page)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("veo html: 2 things could not be read: records.jsonl:9: ")
    assert f"; {EARLIER}/records.jsonl:9: " in error
    assert "2 lines could not be read." in page.read_text()


def test_a_page_can_be_compared_with_the_run_before(tmp_path: Path) -> None:
    archive = tmp_path / "kept"
    run = runs.small()
    less = [each for each in run.records if "GPU-1a2b" not in str(each.counters)]
    calm = [each._replace(verdict=CLEAN, test_outcome="passed") for each in less]
    calm = [
        each._replace(counters=tuple(row._replace(growth=0) for row in each.counters))
        for each in calm
    ]
    archived(archive, EARLIER, run._replace(records=tuple(calm)))
    archived(archive)
    page = tmp_path / "page.html"
    assert main(["html", str(archive), "-o", str(page), "--baseline", "last"]) == 0
    text = page.read_text()
    assert f"<bdi>{EARLIER}</bdi>" in text
    found = re.findall(
        r'<td class="standing"><span class="badge (\w+)">([^<]*)</span>', text
    )
    assert ("bad", "grew") in found
    assert ("note", "new") in found
    assert "the same within their limits" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{archive}", "nonsense"], "there is no run 'nonsense' in '{archive}'"),
        (["{root}/none"], "there is no archive at '{root}/none': no folder 'runs'"),
        (
            ["{archive}", "--past", "-1"],
            "--past: -1 is no number of runs, write 0 or more",
        ),
        (["{archive}", "-o", "{root}"], "cannot write '{root}': Is a directory"),
    ],
    ids=["run", "archive", "past", "output"],
)
def test_bad_input_is_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    archive = archived(tmp_path / "kept")
    places = {"archive": str(archive), "root": str(tmp_path)}
    assert main(["html", *(word.format(**places) for word in words)]) == 2
    assert capsys.readouterr().err == f"veo html: {said.format(**places)}\n"
