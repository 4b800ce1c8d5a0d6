"""The page: everything about one run in one file that loads nothing.

Jinja2 writes what can be read without scripts, and escapes it; all else is data that
the page's own scripts turn into text nodes and plots. The scripts are named in the
page's content security policy by their hash, so that no other runs.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.metadata
import re
from collections import Counter as Tally
from importlib import resources
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

from pytest_veo.archive.place import replace_file
from pytest_veo.errors import MissingDependency
from pytest_veo.report.html.cards import Card
from pytest_veo.report.html.cards import card_of
from pytest_veo.report.html.cards import verdict_card
from pytest_veo.report.html.embedded import blocks
from pytest_veo.report.html.embedded import counters_of
from pytest_veo.report.html.naming import hash_of
from pytest_veo.report.html.naming import name_of
from pytest_veo.report.html.naming import path_of
from pytest_veo.report.html.naming import shorten
from pytest_veo.report.html.past import Past
from pytest_veo.report.html.standing import Standing
from pytest_veo.report.html.standing import Tone
from pytest_veo.report.html.standing import standing_of
from pytest_veo.report.visible import visible
from pytest_veo.units import counted
from pytest_veo.units import format_ns
from pytest_veo.verdict import Outcome


if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Sequence
    from pathlib import Path

    import jinja2

    from pytest_veo.archive.record import Record
    from pytest_veo.archive.store import Run
    from pytest_veo.verdict import Verdict


_CARDS = 12
_SCRIPTS = (
    "vendor/uplot/uPlot.iife.min.js",
    "static/format.js",
    "static/blocks.js",
    "static/plots.js",
    "static/timeline.js",
    "static/details.js",
    "static/table.js",
    "static/page.js",
)
_STYLES = ("vendor/uplot/uPlot.min.css", "static/page.css")
_ICON_COLOURS = {Tone.BAD: "#d1242f", Tone.WARN: "#bf8700", Tone.GOOD: "#1a7f37"}
SIMULATED = "simulated gpu"
"""In the name of a device that is none."""
EXTRA = "html"


class Notice(NamedTuple):
    """Something to know before anything is believed."""

    tone: str
    title: str
    text: str


class Tile(NamedTuple):
    """How many tests stand somewhere."""

    number: int
    name: str
    tone: str
    tests: int
    meaning: str


class Changed(NamedTuple):
    """One figure that is not what it was."""

    change: str
    """Such as `grew`, `shrank`, `new`, `gone`."""
    tone: str
    nodeid: str
    figure: str
    before: str
    now: str
    known: bool = True
    """Whether this run has the test."""


class Compared(NamedTuple):
    """The run against a baseline."""

    baseline: str
    """What it is called; nothing where there is none."""
    rows: tuple[Changed, ...] = ()
    summary: str = ""
    """How many figures were compared, and what of them is no row."""
    doubts: tuple[str, ...] = ()
    """What could not be compared, or only with care."""
    more: int = 0
    """Rows that are left out."""


def render(
    run: Run,
    *,
    past: Past | None = None,
    fixtures: Sequence[tuple[str, Verdict]] = (),
    compared: Compared | None = None,
) -> str:
    """The whole page.

    Args:
        run: what is shown.
        past: earlier runs of the same archive.
        fixtures: those that did not give back, by name.
        compared: the comparison with a baseline, if there is one.

    Raises:
        MissingDependency: jinja2 is not installed.
    """
    earlier = Past() if past is None else past
    environment = _environment()
    cards = [
        card_of(number, record, _compared_with(record, compared))
        for number, record in enumerate(run.records)
    ]
    style, script = _asset(_STYLES), _asset(_SCRIPTS)
    tone, result = _result(run.records, fixtures)
    shown = [card for card in _by_weight(cards, run.records) if card.tone == "bad"]
    return environment.get_template("page.html").render(
        policy=_policy(script, style),
        style=_trusted(style),
        script=_trusted(script),
        version=_version(),
        header=run.header,
        notices=list(_notices(run, earlier)),
        result=result,
        tone=tone,
        icon=_icon(tone),
        facts=list(_facts(run)),
        tiles=_tiles(run.records),
        cards=shown[:_CARDS],
        more_cards=max(0, len(shown) - _CARDS),
        fixtures=[(name, verdict_card(name, verdict)) for name, verdict in fixtures],
        timeline_counter=_timeline_counter(run.records),
        compared=compared,
        past_runs=len(earlier.run_ids),
        environment=run.header.environment,
        unread=[*run.unread, *earlier.unread],
        blocks=blocks(run.records, earlier, _details_of(environment, cards)),
    )


def _compared_with(record: Record, compared: Compared | None) -> str:
    if compared is None:
        return ""
    rows = [row for row in compared.rows if row.nodeid == record.nodeid]
    return "; ".join(
        f"{row.figure} {row.change}, {row.before} before, {row.now} now" for row in rows
    )


def _by_weight(cards: Sequence[Card], records: Sequence[Record]) -> list[Card]:
    order = [standing.value for standing in Standing]

    def weight(card: Card) -> tuple[int, int, int]:
        findings = records[card.number].verdict.findings
        growth = max((finding.growth for finding in findings), default=0)
        return order.index(card.standing), -growth, card.number

    return sorted(cards, key=weight)


def _details_of(
    environment: jinja2.Environment, cards: Sequence[Card]
) -> dict[int, str]:
    """The text of every test that has something to tell, as HTML."""
    template = environment.get_template("detail.html")
    detail = template.module.detail  # type: ignore[attr-defined]
    return {
        card.number: str(detail(card, True))
        for card in cards
        if card.rows or card.reason or card.evidence or card.frames or card.compared
    }


# ---------------------------------------------------------------- what is said


def _result(
    records: Sequence[Record], fixtures: Sequence[tuple[str, Verdict]]
) -> tuple[str, str]:
    """The tone and the sentence at the top."""
    if not records:
        return Tone.WARN.value, "No test has finished"
    tally = Tally(standing_of(record) for record in records)
    parts = [
        counted(tally[standing], one, many)
        for standing, one, many in (
            (Standing.LEAK, "test leaks", "tests leak"),
            (Standing.OVER_BUDGET, "is over its budget", "are over their budget"),
            (Standing.FRAMES, "breaks its frame budget", "break their frame budget"),
        )
        if tally[standing]
    ]
    failing = sum(verdict.outcome.fails for _, verdict in fixtures)
    if failing:
        parts.append(counted(failing, "fixture leaks", "fixtures leak"))
    if parts:
        return Tone.BAD.value, ", ".join(parts)
    outcomes = Tally(record.verdict.outcome for record in records)
    judged = outcomes.total() - outcomes[Outcome.NOT_JUDGED]
    if judged:
        return Tone.GOOD.value, f"No leak in {counted(judged, 'test')}"
    kept = tally[Standing.FRAMES_KEPT]
    if kept:
        return Tone.GOOD.value, f"Frames in budget in {counted(kept, 'test')}"
    return Tone.WARN.value, "Nothing was measured"


def _notices(run: Run, past: Past) -> Iterator[Notice]:
    header = run.header
    told = " ".join((header.gpu, *(value for _, value in header.environment)))
    if SIMULATED in told.lower():
        yield Notice(
            "warn", "Simulated GPU.", "No figure on this page is of a real device."
        )
    if not header.finished_at:
        text = "It was ended from outside or still goes on: tests may be missing."
        yield Notice("warn", "This run never finished.", text)
    elif run.records and not header.watched:
        yield Notice("bad", "Nothing was watched.", "No counter could be read.")
    unread = len(run.unread) + len(past.unread)
    if unread:
        text = "What is missing is named under Environment."
        yield Notice("warn", counted(unread, "line") + " could not be read.", text)


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    header = run.header
    yield "started", _moment(header.started_at)
    for name, value in (
        ("commit", header.commit[:12]),
        ("branch", header.branch),
        ("job", " ".join(filter(None, (header.ci, header.ci_job)))),
        ("shard", header.shard),
        ("GPU", header.gpu),
        ("driver", header.driver),
        ("Python", dict(header.environment).get("python", "")),
    ):
        if value:
            yield name, value
    yield "tests", f"{len(run.records):,}"
    total = sum(record.duration_ns for record in run.records)
    yield "tests took", format_ns(total)


def _moment(iso: str) -> str:
    """A time stamp as people write it; milliseconds tell nobody anything here."""
    return re.sub(r"\.\d+", "", iso.replace("T", " ")).replace("+00:00", " UTC")


def _tiles(records: Sequence[Record]) -> list[Tile]:
    tally = Tally(standing_of(record) for record in records)
    return [
        Tile(number, each.value, each.tone.value, tally[each], each.meaning)
        for number, each in enumerate(Standing)
        if tally[each]
    ]


def _timeline_counter(records: Sequence[Record]) -> int:
    """The counter that is shown first: one that moves, of a device if there is one."""
    counters = counters_of(records)
    moving = {
        (row.counter, row.device, row.unit)
        for record in records
        for row in record.counters
        if row.growth and row.unit == "bytes"
    }
    return next((i for i, each in enumerate(counters) if each in moving), 0)


# ------------------------------------------------------------------ how it is made


def _version() -> str:
    try:
        return importlib.metadata.version("pytest-veo")
    except importlib.metadata.PackageNotFoundError:
        return "of a checkout"  # imported from a folder that is not installed


@functools.cache
def _asset(names: tuple[str, ...]) -> str:
    root = resources.files("pytest_veo.report.html")
    texts = [root.joinpath(name).read_text(encoding="utf-8") for name in names]
    return "\n".join(texts)


def _policy(script: str, style: str) -> str:
    def of(text: str) -> str:
        digest = hashlib.sha256(text.encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"

    return (
        f"default-src 'none'; script-src {of(script)}; style-src {of(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _environment() -> jinja2.Environment:
    try:
        import jinja2
    except ImportError:
        raise MissingDependency("jinja2", EXTRA, "the page of a run") from None
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pytest_veo.report.html"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shorten"] = shorten
    environment.filters["path"] = path_of
    environment.filters["name"] = name_of
    environment.filters["hash"] = hash_of
    return environment


def _shown(value: Any) -> Any:
    """Every value that a template writes."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return visible(value, keep="\n\t")
    return value


def _icon(tone: str) -> str:
    """A dot in the colour of the result, by which tabs are told apart."""
    colour = _ICON_COLOURS[Tone(tone)]
    dot = f"<circle cx='8' cy='8' r='7' fill='{colour}'/>"
    image = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>{dot}</svg>"
    return f"data:image/svg+xml;base64,{base64.b64encode(image.encode()).decode()}"


def _trusted(text: str) -> Any:
    """Our own scripts and styles, which are written as they are."""
    import markupsafe

    return markupsafe.Markup(text)


def write(path: Path, text: str) -> None:
    """Put the page into a file, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    content = text.encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)
