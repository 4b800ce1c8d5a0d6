"""OBS Studio's log: three counts of lost frames, and no frame."""

from __future__ import annotations

import re
from typing import ClassVar

from pytest_veo.frames.series import DropCounter
from pytest_veo.readers.capture import Capture
from pytest_veo.readers.source import Source


_STAMPED = re.compile(r"\d\d:\d\d:\d\d\.\d{3}: ")
_COUNT = r"([0-9]{1,15})\b"
_TOTAL = re.compile(
    rf"Output '([^']*)': Total frames output: {_COUNT}(?: \({_COUNT} attempted)?"
)
_DRAWN = re.compile(
    rf"Output '([^']*)': Total drawn frames: {_COUNT}(?: \({_COUNT} attempted)?"
)
_LAGGED = re.compile(
    rf"Output '([^']*)': Number of lagged frames due to rendering lag/stalls: {_COUNT}"
)
_NETWORK = re.compile(
    rf"Output '([^']*)': Number of dropped frames due to insufficient "
    rf"bandwidth/connection stalls: {_COUNT}"
)
_ENCODER = re.compile(
    rf"Video stopped, number of skipped frames due to encoding lag: {_COUNT}/{_COUNT}"
)
_ANY = re.compile(
    r"Total frames output: |Total drawn frames: |lagged frames due to rendering lag|"
    r"skipped frames due to encoding lag|dropped frames due to insufficient"
)


class ObsReader:
    """`obs-studio/logs/*.txt`."""

    name: ClassVar[str] = "obs"

    def claims(self, source: Source) -> bool:
        """Stamped lines of OBS, or one of its counts."""
        if not source.is_text:
            return False
        text = "\n".join(source.head)
        stamped = any(_STAMPED.match(line) for line in source.head[:20])
        return bool(_ANY.search(text)) or (stamped and "OBS " in text)

    def read(self, source: Source) -> Capture:
        """Counts of rendering, encoding and network losses.

        OBS leaves a line out when its count is 0; beside a total that is told as 0.
        """
        counts = _Counts()
        version = ""
        notes = [
            "OBS writes no frames, only counts: drop rates can be told, jitter not"
        ]
        for _, line, lacks_end in source.numbered_lines():
            if lacks_end and _ANY.search(line):
                notes.append("the last line has no end and may be cut: it is left out")
                continue
            counts.take(line)
            if not version and (found := re.search(r"\bOBS (\d+[\w.\-]*)", line)):
                version = found[1]
        counters = counts.counters(notes)
        if not counters:
            raise source.error(
                "an OBS log without counts: they are written when an output stops"
            )
        return Capture(
            file=source.name,
            format=self.name,
            version=version,
            counters=counters,
            notes=tuple(notes),
        )


class _Counts:
    """The counts of a log, added up as outputs stop."""

    def __init__(self) -> None:
        self.drawn: dict[str, tuple[int, int]] = {}
        self.lagged: dict[str, int] = {}
        self.output: dict[str, tuple[int, int]] = {}
        self.network: dict[str, int] = {}
        self.encoder: list[tuple[int, int]] = []

    def take(self, line: str) -> None:
        """Look for a count in one line."""
        for pattern, place in ((_DRAWN, self.drawn), (_TOTAL, self.output)):
            if found := pattern.search(line):
                done, tried = int(found[2]), int(found[3] or found[2])
                before = place.get(found[1], (0, 0))
                place[found[1]] = (before[0] + done, before[1] + max(done, tried))
        for pattern, lost in ((_LAGGED, self.lagged), (_NETWORK, self.network)):
            if found := pattern.search(line):
                lost[found[1]] = lost.get(found[1], 0) + int(found[2])
        if found := _ENCODER.search(line):
            self.encoder.append((int(found[1]), int(found[2])))

    def counters(self, notes: list[str]) -> tuple[DropCounter, ...]:
        """One counter for each kind of loss and output.

        What was lost of nobody knows how many is no rate: it is left out and told.
        """
        made = []
        # Where OBS says nothing of frames drawn, it drew those that it put out.
        for kind, losses, totals in (
            ("lagged", self.lagged, {**self.output, **self.drawn}),
            ("network", self.network, self.output),
        ):
            told = self.drawn if kind == "lagged" else self.output
            for name in dict.fromkeys((*told, *losses)):
                lost = losses.get(name, 0)
                if name not in totals:
                    notes.append(
                        f"{kind} ({name}): {lost} frames, but not of how many: left out"
                    )
                    continue
                total = max(*totals[name], lost)
                made.append(_counter(f"{kind} ({name})", lost, total))
        if self.encoder:
            skipped = sum(lost for lost, _ in self.encoder)
            total = sum(max(pair) for pair in self.encoder)
            made.append(_counter("encoder skipped", skipped, total))
        return tuple(made)


def _counter(name: str, dropped: int, total: int) -> DropCounter:
    return DropCounter(name=name, dropped=dropped, total=total)


READER = ObsReader()
