"""A verdict on frames in words: what broke, how sure, and what else was seen."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pytest_veo.frames.noise import MachineNoise
from pytest_veo.frames.stats import FrameStats
from pytest_veo.frames.verdict import Finding
from pytest_veo.frames.verdict import FrameVerdict
from pytest_veo.frames.verdict import Measure
from pytest_veo.frames.verdict import Outcome
from pytest_veo.frames.verdict import overall
from pytest_veo.units import format_ns


MAX_LINES = 19
_MAX_FINDINGS = 8
_SEVERITY = (
    Outcome.FAIL,
    Outcome.INCONCLUSIVE,
    Outcome.NOT_ENOUGH_FRAMES,
    Outcome.PASS,
)


def headline(verdict: FrameVerdict) -> str:
    """One line for summaries: the figure first, then the limit and the series."""
    name = verdict.stats.name
    if verdict.outcome is Outcome.PASS:
        return f"within its budget: {name}"
    worst = _by_severity(verdict.findings)[0]
    said = f"{_figure(worst)}, limit {_amount(worst.limit, worst.measure)}"
    alike = [each for each in verdict.findings if each.outcome is worst.outcome]
    more = f" (+{len(alike) - 1} more)" if len(alike) > 1 else ""
    kind = "" if worst.outcome is Outcome.FAIL else f"{worst.outcome}: "
    return f"{kind}{said}, in {name}{more}"


def explain(verdict: FrameVerdict) -> str:
    """The whole verdict in under 20 lines."""
    lines = [headline(verdict), *_finding_lines(verdict.findings)]
    lines += [f"  {line}" for line in _context(verdict)]
    return "\n".join(lines[:MAX_LINES])


def _by_severity(findings: tuple[Finding, ...]) -> list[Finding]:
    return sorted(findings, key=lambda each: _SEVERITY.index(each.outcome))


def _finding_lines(findings: tuple[Finding, ...]) -> Iterator[str]:
    if not findings:
        return
    ordered = _by_severity(findings)
    shown = ordered[:_MAX_FINDINGS]
    rules = [each.rule for each in shown]
    figures = [_estimate(each) for each in shown]
    limits = [_limit(each) for each in shown]
    wide = [max(map(len, column)) for column in (rules, figures, limits)]
    for finding, rule, figure, limit in zip(shown, rules, figures, limits, strict=True):
        detail = "; ".join(filter(None, (finding.about, finding.reason)))
        yield (
            f"  {rule:<{wide[0]}}  {figure:<{wide[1]}}  {limit:<{wide[2]}}  "
            f"{finding.outcome}{': ' if detail else ''}{detail}"
        )
    rest = ordered[_MAX_FINDINGS:]
    if rest:
        yield f"  and {len(rest)} more, at worst: {overall(tuple(rest))}"


def _context(verdict: FrameVerdict) -> Iterator[str]:
    stats = verdict.stats
    yield _what(stats)
    if stats.spread is not None:
        spread = stats.spread
        yield (
            f"median {format_ns(spread.p50_ns)}, p99 {format_ns(spread.p99_ns)}, "
            f"longest {format_ns(spread.max_ns)}, MAD {format_ns(spread.mad_ns)}, "
            f"lag-1 {spread.lag1:+.2f}"
        )
        yield verdict.strip
        yield "worst frames: " + ", ".join(
            f"#{slow.index}{'' if slow.row is None else f' (row {slow.row})'} "
            f"{format_ns(slow.interval_ns)} at {slow.at_ns / 1e9:.3f} s"
            for slow in stats.worst
        )
    yield from _rhythm(stats)
    if stats.drops:
        yield "drops: " + ", ".join(map(str, stats.drops))
    if verdict.noise is not None:
        yield _machine(verdict.noise)
    yield from verdict.notes


def _what(stats: FrameStats) -> str:
    warmup = f" after {stats.warmup} for warm-up" if stats.warmup else ""
    source = "" if stats.source in ("", "recorder") else f" of {stats.source}"
    return (
        f"{stats.frames} frames{warmup} in {format_ns(stats.span_ns)}: {stats.event} "
        f"stamps{source}, clock {stats.clock}, step {format_ns(stats.quantum_ns)}"
    )


def _rhythm(stats: FrameStats) -> Iterator[str]:
    stutter, swing, pace = stats.stutter, stats.swing, stats.pace
    if stutter is not None:
        yield (
            f"periodic stutter: every {stutter.period_ns / 1e6:.4g} ms a frame is "
            f"{format_ns(stutter.excess_ns)} longer ({stutter.share_of_beats:.0%} of "
            f"{stutter.beats} beats)"
        )
    if swing is not None:
        yield (
            f"frame times swing by {format_ns(swing.amplitude_ns)} every "
            f"{swing.period_frames:.3g} frames ({format_ns(swing.period_ns)})"
        )
    if pace is not None:
        yield (
            f"target {format_ns(pace.target_ns)}: period off by "
            f"{pace.period_error_ppm:+.0f} ppm, phase by up to "
            f"{format_ns(pace.phase_error_ns)}, jitter {pace.jitter_frames:.2g} frames"
        )


def _machine(noise: MachineNoise) -> str:
    parts = []
    if noise.frames:
        parts.append(
            f"an empty loop was {format_ns(noise.p99_ns)} late at p99, "
            f"{format_ns(noise.max_ns)} at most ({noise.frames} frames)"
        )
    if noise.waited_ns is not None:
        parts.append(f"waited {format_ns(noise.waited_ns)} for a CPU")
    if noise.stolen_ns:
        parts.append(f"host took up to {format_ns(noise.stolen_ns)}")
    if noise.pressure is not None:
        parts.append(f"CPU pressure {noise.pressure:.0%}")
    return "machine: " + (", ".join(parts) or "nothing is known of its noise")


def _figure(finding: Finding) -> str:
    about = f" ({finding.about})" if finding.about else ""
    return f"{finding.rule} {_amount(finding.estimate, finding.measure)}{about}"


def _estimate(finding: Finding) -> str:
    estimate = _amount(finding.estimate, finding.measure)
    if finding.low == finding.high:
        return estimate
    low = "-" if math.isinf(finding.low) else _number(finding.low, finding.measure)
    high = "-" if math.isinf(finding.high) else _number(finding.high, finding.measure)
    return f"{estimate} [{low}, {high}]"


def _limit(finding: Finding) -> str:
    sign = ">=" if finding.measure is Measure.SCALE else "<="
    return f"{sign} {_amount(finding.limit, finding.measure)}"


def _amount(value: float, measure: Measure) -> str:
    number = _number(value, measure)
    if measure is Measure.SHARE:
        return f"{number} %"
    if measure in (Measure.SCALE, Measure.FRAMES):
        return number
    return {
        Measure.MS: f"{number} ms",
        Measure.PER_MINUTE: f"{number}/min",
        Measure.PER_SECOND: f"{number}/s",
    }[measure]


def _number(value: float, measure: Measure) -> str:
    scaled = 100 * value if measure is Measure.SHARE else value
    return f"{scaled:.4g}"
