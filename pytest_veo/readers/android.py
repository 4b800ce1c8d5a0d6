"""Android's `dumpsys gfxinfo PACKAGE framestats`.

Blocks between `---PROFILEDATA---`, one a window, each with its own header: columns
came with the releases. Rows whose flags are not 0 are no ordinary frames.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from dataclasses import field
from typing import Any
from typing import ClassVar

import numpy as np

from pytest_veo.frames.figures import Figure
from pytest_veo.frames.series import MISSING_NS
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import StageStamps
from pytest_veo.readers.capture import Capture
from pytest_veo.readers.capture import CapturedSeries
from pytest_veo.readers.capture import whole
from pytest_veo.readers.present_checks import LONGEST_FRAME_NS
from pytest_veo.readers.source import Source


_FENCE = "---PROFILEDATA---"
_NEEDED = ("Flags", "IntendedVsync", "FrameCompleted")
_TOTAL = re.compile(
    r"(Total frames rendered|Janky frames|\d\dth percentile): (\d{1,15}(?:ms)?)"
    r"(?: \((\d{1,3}\.\d+)%\))?"
)
_SHOWN = ("DisplayPresentTime",)
_MOST_NS = 1 << 62
_IDLE_NS = 10**9


@dataclass(slots=True)
class _Window:
    """The frames of one block, or of several blocks of one window."""

    name: str
    frames: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """By intended vsync and completion: displayed (0 when not told), line."""
    flagged: int = 0
    repeated: int = 0
    unfinished: int = 0
    cut: int = 0
    """Rows at the end of the file that lost theirs: 0 or 1."""


class AndroidReader:
    """Frame statistics of one Android process."""

    name: ClassVar[str] = "android"

    def claims(self, source: Source) -> bool:
        """A fence around profile data, its header alone, or the totals above it."""
        if not source.is_text:
            return False
        lines = [line.strip() for line in source.head]
        return any(line == _FENCE or _TOTAL.fullmatch(line) for line in lines) or (
            _is_header(lines[0])
        )

    def read(self, source: Source) -> Capture:
        """A series for each window: when frames were completed.

        The frame times (`frame_times_ns`) are Android's: from the vsync a frame was
        meant for to its completion.
        """
        notes: list[str] = []
        windows = [w for w in _windows(source) if w.frames or w.flagged]
        series = [made for w in windows for made in _series(source, w, notes)]
        summary = _totals(source)
        if summary and not windows:
            notes.append(
                "totals only: add `framestats` to the command to have frames as well"
            )
        elif not series:
            flagged = sum(window.flagged for window in windows)
            raise source.error(
                f"no ordinary frame ({flagged} with flags are not counted)"
            )
        return Capture(
            file=source.name,
            format=self.name,
            series=tuple(series),
            summary=summary,
            notes=tuple(notes),
        )


def _is_header(text: str) -> bool:
    return text.startswith("Flags,") and all(name in text for name in _NEEDED)


def _totals(source: Source) -> tuple[Figure, ...]:
    """What Android counted itself, for the whole process."""
    found: dict[str, Figure] = {}
    for line in source.lines():
        if match := _TOTAL.fullmatch(line.strip()):
            name, value, percent = match.groups()
            unit = "ms" if value.endswith("ms") else "frames"
            amount = float(value.removesuffix("ms"))
            found.setdefault(name, Figure(name, amount, unit))
            if percent:
                share = Figure(f"{name} share", float(percent), "%")
                found.setdefault(share.name, share)
    return tuple(found.values())


def _windows(source: Source) -> list[_Window]:
    windows: dict[str, _Window] = {}
    inside, columns, commas = False, None, False
    name, blocks = "", 0
    for number, line, lacks_end in source.numbered_lines():
        text = line.strip()
        if text == _FENCE:
            inside, columns = not inside, None
            blocks += inside
            continue
        if not inside and not blocks and _is_header(text):
            inside, blocks = True, 1
        if not inside:
            name = _window_name(text) or name
            continue
        if not text:
            continue
        if columns is None:
            commas = text.endswith(",")
            columns = _columns(source, text, number)
            key = name or f"window {blocks}"
            window = windows.setdefault(key, _Window(key))
            continue
        if lacks_end and commas and not text.endswith(","):
            # Every row ends with a comma, as the header does: this one was cut.
            window.cut += 1
            continue
        _take_row(source, window, columns, text, number)
    return list(windows.values())


def _window_name(text: str) -> str:
    found = re.match(r"(?:Window: )?([\w.$]+/[\w.$/@#]+)", text)
    return found[1] if found else ""


def _columns(source: Source, text: str, line: int) -> dict[str, int]:
    columns = {name: place for place, name in enumerate(text.rstrip(",").split(","))}
    for name in _NEEDED:
        if name not in columns:
            raise source.error(
                "profile data without this column", line=line, column=name
            )
    return columns


def _take_row(
    source: Source, window: _Window, columns: dict[str, int], text: str, line: int
) -> None:
    cells = text.rstrip(",").split(",")
    if len(cells) != len(columns):
        raise source.error(
            f"{len(cells)} cells under a header of {len(columns)} names", line=line
        )

    def number(name: str) -> int:
        cell = cells[columns[name]].strip()
        if not cell.isascii() or not cell.isdigit() or len(cell) > 19:
            raise source.error(f"{cell[:40]!r} is no number", line=line, column=name)
        return int(cell)

    if number("Flags") != 0:
        window.flagged += 1
        return
    vsync, completed = number("IntendedVsync"), number("FrameCompleted")
    if completed == 0 or completed > _MOST_NS:
        window.unfinished += 1
        return
    if completed < vsync:
        raise source.error(
            "completed before the vsync it was meant for",
            line=line,
            column="FrameCompleted",
        )
    if completed - vsync >= LONGEST_FRAME_NS:
        hours = (completed - vsync) / 3.6e12
        raise source.error(
            f"a frame of {hours:.1f} hours", line=line, column="FrameCompleted"
        )
    shown = next((number(n) for n in _SHOWN if n in columns), 0)
    window.repeated += (vsync, completed) in window.frames
    window.frames[vsync, completed] = (shown if shown < _MOST_NS else 0, line)


def _series(source: Source, window: _Window, notes: list[str]) -> list[CapturedSeries]:
    for count, what in (
        (window.flagged, "rows with flags are no ordinary frames and left out"),
        (window.repeated, "frames appear in two dumps and count once"),
        (window.unfinished, "frames were not yet completed and are left out"),
        (window.cut, "rows end early and are left out"),
    ):
        if count:
            notes.append(f"{window.name}: {count} {what}")
    if not window.frames:
        return []
    # The buffer is a ring: rows of a dump are in order, dumps may overlap.
    ordered = sorted(window.frames.items())
    vsync = whole(v for (v, _), _ in ordered)
    completed = whole(c for (_, c), _ in ordered)
    shown = whole(s for _, (s, _) in ordered)
    lines = whole(line for _, (_, line) in ordered)
    durations = completed - vsync
    order = np.argsort(completed, kind="stable")
    vsync, completed, shown = vsync[order], completed[order], shown[order]
    lines, durations = lines[order], durations[order]
    idle = int((np.diff(completed) > _IDLE_NS).sum())
    if idle:
        notes.append(
            f"{window.name}: {idle} gaps of over a second: Android draws on demand, so "
            f"judge the frame times, not the pace"
        )
    stages = [StageStamps(event=Event.VSYNC, t_ns=vsync)]
    display = np.where(shown == 0, MISSING_NS, shown)
    if (shown != 0).any():
        stages.append(StageStamps(event=Event.DISPLAY, t_ns=display))
    fields: dict[str, Any] = {
        "clock": Clock.MONOTONIC,
        "name": window.name,
        "source": source.name,
        "tool": "android",
        "rows": lines,
    }
    made = [
        CapturedSeries(
            t_ns=completed,
            event=Event.GPU_END,
            frame_times_ns=durations,
            stages=tuple(stages),
            **fields,
        )
    ]
    if (shown != 0).sum() > 1 and not (np.diff(shown[shown != 0]) < 0).any():
        made.append(
            CapturedSeries(
                t_ns=display, event=Event.DISPLAY, dropped=shown == 0, **fields
            )
        )
    return made


READER = AndroidReader()
