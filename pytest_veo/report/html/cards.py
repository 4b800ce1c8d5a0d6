"""A test's findings and evidence as text, ready for the page's templates."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING
from typing import NamedTuple

from pytest_veo.memory.snapshot import HOST
from pytest_veo.report import failure
from pytest_veo.report.html.standing import Standing
from pytest_veo.report.html.standing import standing_of
from pytest_veo.units import format_value


if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_veo.archive.record import Record
    from pytest_veo.verdict import Finding
    from pytest_veo.verdict import Verdict


class Row(NamedTuple):
    """One counter of a finding."""

    counter: str
    before: str
    after: str
    growth: str
    runs: str
    """Growth of the confirming runs."""
    limit: str


class FrameText(NamedTuple):
    """What is said of one series."""

    name: str
    headline: str
    text: str


class Card(NamedTuple):
    """What there is to read of one test or fixture."""

    number: int
    """The test's, in the order of the page; -1 for a fixture."""
    nodeid: str
    standing: str
    tone: str
    headline: str
    rows: tuple[Row, ...]
    reason: str
    ruled_out: str
    evidence: tuple[tuple[str, tuple[str, ...]], ...]
    """Kind of evidence, and its lines."""
    frames: tuple[FrameText, ...] = ()
    compared: str = ""

    @property
    def has_runs(self) -> bool:
        """Whether it was run again."""
        return any(row.runs for row in self.rows)

    @property
    def has_limit(self) -> bool:
        """Whether a limit was broken."""
        return any(row.limit for row in self.rows)


def card_of(number: int, record: Record, compared: str = "") -> Card:
    """A test's card.

    Args:
        number: the test's in the order of the page.
        record: what is known of it.
        compared: how it differs from the baseline.
    """
    standing = standing_of(record)
    memory = verdict_card(record.nodeid, record.verdict)
    frames = tuple(_frames(record))
    first = next((each.headline for each in frames), "")
    is_frames = standing in (Standing.FRAMES, Standing.FRAMES_OPEN)
    return memory._replace(
        number=number,
        standing=standing.value,
        tone=standing.tone.value,
        headline=first if is_frames else memory.headline,
        frames=frames,
        compared=compared,
    )


def verdict_card(name: str, verdict: Verdict) -> Card:
    """The card of a test's memory, or of a fixture."""
    has_figure = bool(verdict.findings)
    return Card(
        number=-1,
        nodeid=name,
        standing=verdict.outcome.value,
        tone="bad" if verdict.outcome.fails else "warn",
        headline=failure.headline(verdict) if has_figure else verdict.reason,
        rows=tuple(_row(finding) for finding in verdict.findings),
        reason=verdict.reason if has_figure else "",
        ruled_out="; ".join(verdict.ruled_out),
        evidence=tuple(_evidence(verdict)),
    )


def _row(finding: Finding) -> Row:
    unit = finding.unit
    place = "" if finding.device == HOST else f" on {finding.device}"
    return Row(
        counter=finding.counter + place,
        before=format_value(finding.before, unit),
        after=format_value(finding.after, unit),
        growth=format_value(finding.growth, unit, signed=True),
        runs=_runs(finding),
        limit="" if finding.limit is None else format_value(finding.limit, unit),
    )


def _runs(finding: Finding) -> str:
    deltas = finding.deltas
    if not deltas:
        return ""
    if len(set(deltas)) == 1:
        each = format_value(deltas[0], finding.unit, signed=True)
        return f"{each} each time"
    mean = format_value(round(finding.per_run), finding.unit, signed=True)
    last = " ".join(format_value(d, finding.unit, signed=True) for d in deltas[-6:])
    return f"{mean} on average, lately {last}"


_LABEL = 10


def _evidence(verdict: Verdict) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Lines gathered under their kind: a line without one goes on."""
    kind, texts = "", list[str]()
    for line in verdict.evidence:
        is_labelled = len(line) > _LABEL and line[_LABEL] == " "
        label = line[:_LABEL].strip() if is_labelled else ""
        text = line[_LABEL + 1 :] if is_labelled else line
        if label and texts:
            yield kind, tuple(texts)
            texts = []
        kind = label or kind
        texts.append(text)
    if texts:
        yield kind, tuple(texts)


def _frames(record: Record) -> Iterator[FrameText]:
    for series in record.frames:
        text = str(series.get("text") or "")
        headline = str(series.get("headline") or "")
        # The text begins with the headline.
        rest = textwrap.dedent(text.removeprefix(headline).strip("\n"))
        if headline or rest:
            yield FrameText(str(series.get("series") or ""), headline, rest)
