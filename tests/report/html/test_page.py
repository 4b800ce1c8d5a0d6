"""The page's text: what is said, and that nothing in it can be mistaken for markup."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import re
from importlib import resources
from pathlib import Path

import pytest

from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.store import Run
from pytest_veo.report.html.page import render
from pytest_veo.report.html.page import write
from pytest_veo.report.html.past import Past
from pytest_veo.report.html.standing import Standing
from pytest_veo.report.html.standing import standing_of
from pytest_veo.verdict import CLEAN
from pytest_veo.verdict import Outcome
from pytest_veo.verdict import Verdict
from tests.report.html import runs


class Tags(html.parser.HTMLParser):
    """Every tag of a page, and the text of its blocks of data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.blocks: dict[str, str] = {}
        self._block = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.found.append((tag, known))
        if known.get("type") == "application/json":
            self._block = str(known["id"])

    def handle_endtag(self, tag: str) -> None:
        self._block = ""

    def handle_data(self, data: str) -> None:
        if self._block:
            self.blocks[self._block] = self.blocks.get(self._block, "") + data


def headline(run: Run) -> str:
    found = re.search(r"<h1[^>]*>(.*?)</h1>", render(run))
    assert found is not None
    return found[1]


FAILED = Verdict(Outcome.NOT_JUDGED, reason="it failed")


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ((), "No test has finished"),
        ((runs.record("a.py::test_1"),), "No leak in 1 test"),
        (
            (runs.record("a.py::test_1"), runs.record("a.py::test_2")),
            "No leak in 2 tests",
        ),
        ((runs.record("a.py::test_1", runs.leak()),), "1 test leaks"),
        ((runs.record("a.py::test_1", FAILED),), "Nothing was measured"),
        (
            (runs.record("a.py::test_1", FAILED, frames=(runs.frames(),)),),
            "Frames in budget in 1 test",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_first_sentence_is_the_result(
    records: tuple[Record, ...], said: str
) -> None:
    assert headline(Run(runs.header(), records)) == said


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (runs.header(gpu="Simulated GPU"), "Simulated GPU."),
        (
            runs.header(environment=(("gpu.0", "Simulated GPU (8 GiB)"),)),
            "Simulated GPU.",
        ),
        (runs.header(finished_at=""), "This run never finished."),
        (runs.header(watched=()), "Nothing was watched."),
    ],
    ids=["gpu", "environment", "killed", "blind"],
)
def test_what_makes_figures_doubtful_stands_above_the_result(
    header: RunHeader, said: str
) -> None:
    text = render(Run(header, (runs.record("a.py::test_1"),)))
    assert 0 < text.index(f"<strong>{said}</strong>") < text.index("<h1")
    assert said not in render(Run(runs.header(), (runs.record("a.py::test_1"),)))


def test_lines_that_could_not_be_read_are_counted_and_named() -> None:
    run = runs.small()._replace(unread=("records.jsonl:9: no JSON object",))
    text = render(run, past=Past(unread=("run-1/records.jsonl:2: half",)))
    assert "<strong>2 lines could not be read.</strong>" in text
    assert "<li>records.jsonl:9: no JSON object</li>" in text
    assert "<li>run-1/records.jsonl:2: half</li>" in text


def test_a_real_card_is_not_called_simulated() -> None:
    assert (
        "simulated"
        not in render(
            Run(runs.header(gpu="NVIDIA H200"), (runs.record("a.py::test_1"),))
        ).lower()
    )


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome.LEAK, '<h1 class="bad">1 fixture leaks</h1>'),
        (Outcome.RETENTION, '<h1 class="good">No leak in 1 test</h1>'),
    ],
)
def test_a_fixture_that_kept_something_once_is_listed_and_no_leak(
    outcome: Outcome, said: str
) -> None:
    run = Run(runs.header(), (runs.record("a.py::test_1"),))
    text = render(run, fixtures=[("model (module)", runs.leak(outcome=outcome))])
    assert said in text
    assert "<bdi>model (module)</bdi>" in text


def test_fixtures_that_do_not_give_back_are_told_with_their_evidence() -> None:
    text = render(
        runs.small(),
        fixtures=[("model (module, a.py)", runs.leak(evidence=runs.EVIDENCE))],
    )
    assert "fixture did not give back" in text
    assert "model (module, a.py)" in text


def test_only_the_pages_own_script_and_style_are_allowed() -> None:
    text = render(runs.hostile())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    allowed = policy[1].replace("&#39;", "'")
    assert "unsafe" not in allowed
    assert "default-src 'none'" in allowed
    for tag in ("script", "style"):
        bodies = re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)
        assert len(bodies) == 1
        digest = base64.b64encode(hashlib.sha256(bodies[0].encode()).digest())
        assert f"{tag}-src 'sha256-{digest.decode()}'" in allowed


def test_hostile_text_makes_no_tag_and_no_attribute() -> None:
    calm, hostile = Tags(render(runs.small())), Tags(render(runs.hostile()))
    assert {tag for tag, _ in hostile.found} <= {tag for tag, _ in calm.found} | {"ul"}
    names = {name for _, attrs in hostile.found for name in attrs}
    assert names <= {name for _, attrs in calm.found for name in attrs}
    assert not any(name.startswith("on") for name in names)
    addresses = {str(attrs["href"]) for _, attrs in hostile.found if "href" in attrs}
    (icon,) = (each for each in addresses if not each.startswith("#"))
    assert b"fill='#d1242f'" in base64.b64decode(
        icon.removeprefix("data:image/svg+xml;base64,")
    )


def test_every_block_of_data_is_json_and_ids_are_as_they_were() -> None:
    run = runs.hostile()
    page = Tags(render(run, past=Past()))
    blocks = {name: json.loads(text) for name, text in page.blocks.items()}
    assert blocks["veo-tests"]["id"] == [record.nodeid for record in run.records]
    assert "veo-counter-0" in blocks
    assert "<" not in "".join(page.blocks.values())


def test_the_page_loads_nothing() -> None:
    text = render(runs.small())
    body = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", text, flags=re.DOTALL)
    assert not re.search(r"https?:|//[a-z]|@import|url\(", body)
    assert not [tag for tag, attrs in Tags(text).found if "src" in attrs]


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        (
            "uPlot.iife.min.js",
            "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
        ),
        (
            "uPlot.min.css",
            "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
        ),
    ],
)
def test_the_plotting_library_is_as_version_1_6_32_of_its_package_has_it(
    name: str, digest: str
) -> None:
    folder = resources.files("pytest_veo.report.html") / "vendor" / "uplot"
    found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    assert found == digest
    assert "Leon Sorokin" in (folder / "LICENSE").read_text()


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "page.html"
    write(target, "first")
    with pytest.raises(UnicodeEncodeError):
        write(target, "half \ud800")
    assert target.read_text() == "first"
    assert [path.name for path in target.parent.iterdir()] == ["page.html"]


@pytest.mark.parametrize(
    ("record", "standing"),
    [
        (runs.record("a::t", CLEAN), Standing.CLEAN),
        (runs.record("a::t", runs.leak()), Standing.LEAK),
        (runs.record("a::t", FAILED, test_outcome="failed"), Standing.FAILED),
        (runs.record("a::t", FAILED, test_outcome="skipped"), Standing.NOT_JUDGED),
        (
            runs.record(
                "a::t",
                FAILED,
                test_outcome="failed",
                frames=(runs.frames(freeze_ms=80.0),),
            ),
            Standing.FRAMES,
        ),
        (
            runs.record("a::t", FAILED, test_outcome="failed", frames=(runs.frames(),)),
            Standing.FAILED,
        ),
        (runs.record("a::t", CLEAN, frames=(runs.frames(),)), Standing.FRAMES_KEPT),
        (
            runs.record("a::t", runs.leak(), frames=(runs.frames(freeze_ms=80.0),)),
            Standing.LEAK,
        ),
    ],
    ids=str,
)
def test_a_test_stands_where_its_worst_part_stands(
    record: Record, standing: Standing
) -> None:
    assert standing_of(record) is standing
