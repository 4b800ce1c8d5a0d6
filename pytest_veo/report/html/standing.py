"""Where a test stands on the page: memory and frames in one word, worst first."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from pytest_veo.verdict import Outcome


if TYPE_CHECKING:
    from pytest_veo.archive.record import Record


class Tone(enum.Enum):
    """How a standing is coloured."""

    BAD = "bad"
    WARN = "warn"
    NOTE = "note"
    GOOD = "good"


class Standing(enum.Enum):
    """One word for a test; in the order of the page."""

    LEAK = "leak"
    OVER_BUDGET = "over budget"
    FRAMES = "frames over budget"
    FAILED = "failed by itself"
    COLLECTABLE = "collectable"
    FRAMES_OPEN = "frames not proved"
    UNCONFIRMED = "unconfirmed"
    RETENTION = "retention"
    ALLOWED = "allowed"
    NOT_JUDGED = "not judged"
    FRAMES_KEPT = "frames in budget"
    CLEAN = "clean"

    @property
    def tone(self) -> Tone:
        """How it is coloured."""
        return _TONES.get(self, Tone.NOTE)

    @property
    def meaning(self) -> str:
        """One sentence for readers who meet the word for the first time."""
        return _MEANINGS[self]


_TONES = {
    Standing.LEAK: Tone.BAD,
    Standing.OVER_BUDGET: Tone.BAD,
    Standing.FRAMES: Tone.BAD,
    Standing.FAILED: Tone.WARN,
    Standing.COLLECTABLE: Tone.WARN,
    Standing.FRAMES_OPEN: Tone.WARN,
    Standing.FRAMES_KEPT: Tone.GOOD,
    Standing.CLEAN: Tone.GOOD,
}
_MEANINGS = {
    Standing.LEAK: "growth that repeats with every run",
    Standing.OVER_BUDGET: "a peak, growth or retention above its limit",
    Standing.FRAMES: "frames that break their budget",
    Standing.FAILED: "failed without us, so its memory was not judged",
    Standing.COLLECTABLE: "memory that only the cyclic collector freed",
    Standing.FRAMES_OPEN: "too few frames, or too much noise, to prove either side",
    Standing.UNCONFIRMED: "growth that could not be confirmed by running again",
    Standing.RETENTION: "growth once, then flat",
    Standing.ALLOWED: "a known leak that a marker allows",
    Standing.NOT_JUDGED: "skipped, xfailed, or run where it could not be measured",
    Standing.FRAMES_KEPT: "frames keep their budget; memory was not judged",
    Standing.CLEAN: "gave everything back",
}
_OF_MEMORY = {
    Outcome.LEAK: Standing.LEAK,
    Outcome.OVER_BUDGET: Standing.OVER_BUDGET,
    Outcome.COLLECTABLE: Standing.COLLECTABLE,
    Outcome.UNCONFIRMED: Standing.UNCONFIRMED,
    Outcome.RETENTION: Standing.RETENTION,
    Outcome.ALLOWED: Standing.ALLOWED,
    Outcome.NOT_JUDGED: Standing.NOT_JUDGED,
    Outcome.CLEAN: Standing.CLEAN,
}
_OF_FRAMES = {
    "pass": Standing.FRAMES_KEPT,
    "fail": Standing.FRAMES,
    "inconclusive": Standing.FRAMES_OPEN,
    "not enough frames": Standing.FRAMES_OPEN,
}
_ORDER = list(Standing)


def standing_of(record: Record) -> Standing:
    """The worst of what is said of a test's memory and of its frames."""
    found = [_OF_MEMORY[record.verdict.outcome]]
    for series in record.frames:
        outcome = series.get("outcome")
        if outcome in _OF_FRAMES:
            found.append(_OF_FRAMES[outcome])
    if found[0] is Standing.NOT_JUDGED:
        # A test that failed over its frames did not fail by itself.
        is_own = record.test_outcome == "failed" and Standing.FRAMES not in found
        found[0] = Standing.FAILED if is_own else found[-1]
    return min(found, key=_ORDER.index)
