"""Tables of results that tools write beside their captures: no frames, only figures.

FrameView's `FrameView_Summary.csv` (its `Time (ms)` holds seconds), MangoHud's
`*_summary.csv`, OCAT's `perf_summary.csv`, the Capture Application's `*-stats.csv`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pytest_veo.frames.figures import Figure
from pytest_veo.readers.capture import Capture
from pytest_veo.readers.numbers import parse_unusual
from pytest_veo.readers.source import Source
from pytest_veo.readers.table import guess_delimiter
from pytest_veo.readers.table import split_line


_SIGNS = (
    ("frameview", ("TimeStamp", "Application", "Avg FPS")),
    ("mangohud", ("0.1% Min FPS", "97% Percentile FPS")),
    ("ocat", ("Average FPS (Application)",)),
    ("ocat", ("Average FPS", "99th percentile frame time")),
    ("presentmon", ("Total Frames", "Average FPS")),
    ("presentmon", ("Average FPS", "1st Percentile FPS")),
)
_MOST_RUNS = 10_000


def _tool_of(source: Source) -> str | None:
    names = {name.lower() for name in _cells(source.head[0])}
    for tool, signs in _SIGNS:
        if all(sign.lower() in names for sign in signs):
            return tool
    return None


def _cells(line: str) -> list[str]:
    return split_line(line, guess_delimiter(line))


class SummaryReader:
    """One-row results of several tools, told apart by their column names."""

    name: ClassVar[str] = "summary"

    def claims(self, source: Source) -> bool:
        """A first line that names figures instead of frames."""
        return source.is_text and _tool_of(source) is not None

    def read(self, source: Source) -> Capture:
        """The figures as the tool printed them; several runs are numbered."""
        tool = _tool_of(source)
        assert tool is not None
        delimiter = guess_delimiter(source.head[0])
        header = split_line(source.head[0], delimiter)
        notes: list[str] = []
        runs: list[list[str]] = []
        for number, line in enumerate(source.lines()):
            if number == 0 or not line.strip():
                continue
            if len(runs) >= _MOST_RUNS:
                raise source.error("too many runs for a summary", line=number + 1)
            cells = split_line(line, delimiter)
            if len(cells) != len(header):
                notes.append(
                    f"line {number + 1}: {len(cells)} cells under {len(header)} names"
                    f"; cells are taken from the left"
                )
            runs.append(cells)
        if not runs:
            raise source.error("a header and no results", line=1)
        figures: list[Figure] = []
        facts: list[tuple[str, str]] = []
        for number, cells in enumerate(runs, 1):
            prefix = "" if len(runs) == 1 else f"run {number}: "
            pairs = zip(header, cells, strict=False)
            _take(pairs, prefix, "." if delimiter == "," else ",", figures, facts)
        if not source.is_ended():
            notes.append("the last line has no end: its last value may be cut")
        if tool == "frameview":
            notes.append("FrameView's `Time (ms)` holds seconds; it is told as seconds")
        return Capture(
            file=source.name,
            format=tool,
            version="summary",
            summary=tuple(figures),
            notes=tuple(notes),
            facts=tuple(facts),
        )


def _take(
    pairs: Iterable[tuple[str, str]],
    prefix: str,
    point: str,
    figures: list[Figure],
    facts: list[tuple[str, str]],
) -> None:
    for name, cell in pairs:
        if not name or not cell or cell in ("NA", "N/A", "-"):
            continue
        read = parse_unusual(cell.replace(point, ".").encode("utf-8"))
        if read is None:
            facts.append((prefix + name, cell))
            continue
        unit = _unit_of(name)
        if name == "Time (ms)":
            name, unit = "Time", "s"
        figures.append(Figure(prefix + name, read[0] / 10 ** read[1], unit))


def _unit_of(name: str) -> str:
    lower = name.lower()
    if "fps" in lower:
        return "fps"
    if "(ms)" in lower or "frame time" in lower:
        return "ms"
    return "%" if "%" in lower or "load" in lower else ""


READER = SummaryReader()
