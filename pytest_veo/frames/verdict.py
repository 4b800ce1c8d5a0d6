"""What judging a series says."""

from __future__ import annotations

import dataclasses
import enum
import math

from pytest_veo.frames.noise import MachineNoise
from pytest_veo.frames.stats import FrameStats


class Outcome(enum.StrEnum):
    """The four answers."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    """The frames, or the machine, prove neither side."""
    NOT_ENOUGH_FRAMES = "not enough frames"


class Measure(enum.StrEnum):
    """What a finding's figures count."""

    MS = "ms"
    SHARE = "share"
    PER_MINUTE = "per minute"
    PER_SECOND = "per second"
    FRAMES = "frames"
    SCALE = "scale"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One limit held against one series."""

    rule: str
    """The limit's name: `p99_ms`, `max_drop_rate`."""
    outcome: Outcome
    measure: Measure
    estimate: float
    limit: float
    low: float = -math.inf
    high: float = math.inf
    """The interval; both equal the estimate for what is counted exactly."""
    about: str = ""
    """What of, where the rule leaves it open: a kind of drop."""
    reason: str = ""
    """Why the outcome is not what the figures alone say, or what is lacking."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FrameVerdict:
    """The judgement on one series."""

    outcome: Outcome
    findings: tuple[Finding, ...]
    stats: FrameStats
    strip: str
    """The frame times in a line of block characters."""
    notes: tuple[str, ...] = ()
    """What is not judged and still worth a word."""
    noise: MachineNoise | None = None


def overall(findings: tuple[Finding, ...]) -> Outcome:
    """The worst that one of the findings says."""
    found = {finding.outcome for finding in findings}
    for outcome in (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.NOT_ENOUGH_FRAMES):
        if outcome in found:
            return outcome
    return Outcome.PASS
