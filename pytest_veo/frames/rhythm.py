"""Periodic stutter: slow frames that come on a beat, and frame times that swing.

Sparse hitches are looked for in their times, not in the frame times, where their
power hides in harmonics. Rayleigh's statistic, summed over harmonics (de Jager's H),
finds the beat; most of its beats must have a hitch.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from pytest_veo.frames.series import Float64s
from pytest_veo.frames.series import Int64s


_HARMONICS = 8
_MAX_HZ = 10.0
_FFT_STEP = 5_760
_MIN_BEATS = 5
_MIN_HITCHES = 5
_MIN_SHARE_OF_BEATS = 0.5
_ALARM_P = 1e-4
_SAME_PEAK = 0.7
_CANDIDATES = 4
_TOP_SHARE = 0.45
# Of the beats that are left, when every second or third one is meant, and how often
# chance may leave the others as empty.
_FULL = 0.8
_EVERY_P = 2e-3
_QUANTILES = (0.98, 0.95)
_APART = 3
# Long series are looked at in parts: a beat that lasts shows in each.
_WINDOW_NS = 60e9
_WINDOWS = 3

_SWING_FRAMES = 16_384
_SWING_MIN_FRAMES = 256
_SWING_NOISE_BINS = 64
_SWING_SHARE = 0.4
_SWING_MIN_SIZE = 0.02


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stutter:
    """Hitches that come on a beat."""

    period_ns: float
    hitches: int
    """Long frames that were looked at."""
    beats: int
    """Beats in the stretch that was looked at."""
    share_of_beats: float
    """How many beats have a long frame."""
    excess_ns: float
    """Median of what those frames are longer than their surroundings."""
    p_value: float
    """How often chance alone makes such a beat anywhere in the range searched."""

    @property
    def hertz(self) -> float:
        """Beats a second."""
        return 1e9 / self.period_ns


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Swing:
    """Frame times that go up and down evenly."""

    period_frames: float
    """2 means that long and short frames take turns."""
    period_ns: float
    amplitude_ns: float
    share: float
    """Of the frame times' variance."""


def find_stutter(
    intervals_ns: Int64s, local_ns: Float64s, mad_ns: float, typical_ns: float
) -> Stutter | None:
    """The beat on which long frames come, or None.

    A long frame is longer than its surroundings by 10 % and by 6 MADs, or by 10 % and
    more than 98 % or 95 % of the others: less than a hitch, since chance makes no beat.

    Args:
        intervals_ns: frame times, shape (n,).
        local_ns: the usual frame time around each.
        mad_ns: unscaled median absolute deviation from `local_ns`.
        typical_ns: median frame time.
    """
    if intervals_ns.size < 64:
        return None
    ends = np.cumsum(intervals_ns)
    found = []
    parts = _windows(ends)
    for part in parts:
        times, local = intervals_ns[part], local_ns[part]
        begins = ends[part] - times
        found += _search(begins, times - local, local, mad_ns, typical_ns, len(parts))
    return min(found, key=lambda each: each.p_value, default=None)


def find_swing(intervals_ns: Int64s, local_ns: Float64s) -> Swing | None:
    """An even up and down of frame times, or None.

    The largest line of the periodogram over frames, where it stands out of the lines
    around it, carries two fifths of the variance and is above 2 % of a frame time.
    Hitches are clipped first.
    """
    frames = min(intervals_ns.size, _SWING_FRAMES)
    if frames < _SWING_MIN_FRAMES:
        return None
    residual = intervals_ns[:frames] - local_ns[:frames]
    limit = 6 * float(np.median(np.abs(residual)))
    if limit == 0:
        return None
    clipped = np.clip(residual, -limit, limit)
    power = np.square(np.abs(np.fft.rfft(clipped - clipped.mean())))
    power[-1] /= 2 if frames % 2 else 4
    power[0] = 0
    line = int(np.argmax(power))
    around = power[max(1, line - _SWING_NOISE_BINS) : line + _SWING_NOISE_BINS]
    # Exponential lines: the median is ln 2 of the mean.
    noise = float(np.median(around)) / math.log(2)
    chance = math.log(power.size / _ALARM_P)
    total = float(power.sum())
    beside = float(power[max(1, line - 1) : line + 2].sum())
    if power[line] < noise * chance or beside < _SWING_SHARE * total:
        return None
    mean_ns = float(np.mean(intervals_ns[:frames]))
    amplitude_ns = math.sqrt(2 * beside / total) * float(clipped.std())
    if amplitude_ns < _SWING_MIN_SIZE * mean_ns:
        return None
    return Swing(
        period_frames=frames / line,
        period_ns=frames / line * mean_ns,
        amplitude_ns=amplitude_ns,
        share=beside / total,
    )


def _windows(ends_ns: Int64s) -> list[slice]:
    span = float(ends_ns[-1])
    if span <= 2 * _WINDOW_NS:
        return [slice(0, ends_ns.size)]
    starts = np.linspace(0, span - _WINDOW_NS, _WINDOWS)
    edges = np.rint(np.stack((starts, starts + _WINDOW_NS))).astype(np.int64)
    places = np.searchsorted(ends_ns, edges)
    return [slice(int(start), int(stop)) for start, stop in places.T if stop > start]


def _search(
    begins_ns: Int64s,
    excess: Float64s,
    local_ns: Float64s,
    mad_ns: float,
    typical_ns: float,
    windows: int,
) -> list[Stutter]:
    found: list[Stutter] = []
    before = np.empty(0, np.int64)
    limits = (6 * mad_ns, *np.quantile(excess, _QUANTILES))
    for limit in limits:
        long = np.flatnonzero(excess > np.maximum(limit, 0.1 * local_ns))
        # Long frames side by side are one stretch, which counts once.
        runs = np.flatnonzero(np.diff(long, prepend=-_APART) >= _APART)
        if runs.size < _MIN_HITCHES or np.array_equal(long, before):
            continue
        before, places = long, long[runs]
        times = (begins_ns[places] - begins_ns[0]) / 1e9
        span = float(begins_ns[-1] - begins_ns[0]) / 1e9
        sizes = np.maximum.reduceat(excess[long], runs)
        # Equal weights see a beat among few other hitches, weights by size one among
        # many small ones; the cap keeps one freeze from being all there is.
        for weights in (np.ones(places.size), np.minimum(sizes, 3 * np.median(sizes))):
            events = _Events(
                times, sizes, weights, span, 1e9 / typical_ns, excess + local_ns
            )
            for beat in _beats(events):
                stutter = _describe(beat, 2 * len(limits) * windows, events)
                if stutter is not None:
                    found.append(stutter)
                    break
    return found


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Events:
    """Long frames as points in time."""

    times_s: Float64s
    sizes_ns: Float64s
    weights: Float64s
    span_s: float
    frames_hz: float
    intervals_ns: Float64s
    """All frame times of the stretch: no beat can be seen inside of a long one."""

    def beats(self, hertz: float) -> int:
        """How many beats a frame could begin on."""
        beyond_s = np.maximum(self.intervals_ns / 1e9 - 1 / hertz, 0).sum()
        return max(1, round((self.span_s - float(beyond_s)) * hertz))

    def turns(self, hertz: float) -> Float64s:
        """Each time as a number of beats; where most long frames are, a whole one."""
        angle = np.exp(2j * np.pi * hertz * self.times_s)
        start = float(np.angle((angle * self.weights).sum())) / (2 * np.pi)
        turns: Float64s = self.times_s * hertz - start
        return turns

    def clumped_h(self, hertz: float) -> float:
        """H of one frequency, if long frames within a fifth of a period are one.

        Those that come in clumps of seconds are few by the measure of a slow beat.
        """
        clump = np.floor((self.turns(hertz) + 0.1) * 5)
        firsts = np.flatnonzero(np.diff(clump, prepend=-np.inf) > 0)
        weights = np.maximum.reduceat(self.weights, firsts)
        angles = 2j * np.pi * hertz * self.times_s[firsts]
        best, total = -math.inf, 0.0
        for harmonic in range(1, _HARMONICS + 1):
            if harmonic * hertz >= _TOP_SHARE * self.frames_hz:
                break
            length = abs((np.exp(harmonic * angles) * weights).sum())
            total += 2 * length**2 / float(np.square(weights).sum())
            best = max(best, total - 4 * harmonic + 4)
        return best


def _beats(of: _Events) -> list[tuple[float, float]]:
    """The best frequencies in Hz with their H, the lowest first."""
    weights, span_s, frames_hz = of.weights, of.span_s, of.frames_hz
    top_hz = min(_MAX_HZ, frames_hz / 6)
    bin_s = 1 / (4 * _HARMONICS * top_hz)
    size = max(2, math.ceil(span_s / bin_s * _HARMONICS / _FFT_STEP) * _FFT_STEP)
    step_hz = 1 / (size * bin_s)
    lines = np.arange(math.ceil(_MIN_BEATS / span_s / step_hz), int(top_hz / step_hz))
    if lines.size == 0:
        return []
    events = np.bincount((of.times_s / bin_s).astype(np.int64), weights, size)
    power = np.square(np.abs(np.fft.rfft(events))) * 2 / np.square(weights).sum()
    total, strongest = np.zeros(lines.size), np.zeros(lines.size)
    best = np.full(lines.size, -math.inf)
    for harmonic in range(1, _HARMONICS + 1):
        # Displays fall on a grid of refreshes: harmonics near the frame rate are
        # strong in any series of hitches, and say nothing.
        real = lines * (harmonic * step_hz) < _TOP_SHARE * frames_hz
        there = power[np.minimum(lines * harmonic, power.size - 1)] * real
        total += there
        strongest = np.maximum(strongest, there)
        best = np.where(real, np.maximum(best, total - 4 * harmonic + 4), best)
    # Twice the true frequency scores as well as the true one, so the lowest of the
    # best is meant; a third of it scores too, but has no power of its own.
    usable = (best >= _SAME_PEAK * best.max()) & (power[lines] >= strongest / 4)
    usable[int(np.argmax(best))] = True
    starts = np.flatnonzero(usable & ~np.concatenate(([False], usable[:-1])))
    found = []
    for top in starts[:_CANDIDATES].tolist():
        while top + 1 < best.size and best[top + 1] > best[top]:
            top += 1
        found.append((float(lines[top] * step_hz), float(best[top])))
    return found


def _describe(
    beat: tuple[float, float], trials: int, events: _Events
) -> Stutter | None:
    hertz, score = beat
    score = min(score, events.clumped_h(hertz))
    searched = max(1.0, 2 * events.span_s * _MAX_HZ)
    p_value = math.exp(-0.4 * score) * trials * searched
    if p_value > _ALARM_P:
        return None
    times_s = events.times_s
    turns = events.turns(hertz)
    near = np.abs(turns - np.rint(turns)) < 0.1
    every, first = _every(np.unique(np.rint(turns[near])), events.beats(hertz))
    hertz, turns = hertz / every, (turns - first) / every
    near = np.abs(turns - np.rint(turns)) < 0.1 / every
    beats = events.beats(hertz)
    share = min(1.0, np.unique(np.rint(turns[near])).size / beats)
    if share < _MIN_SHARE_OF_BEATS or near.sum() < _MIN_HITCHES:
        return None
    return Stutter(
        period_ns=1e9 / _refined(hertz, times_s[near], turns[near]),
        hitches=int(times_s.size),
        beats=beats,
        share_of_beats=share,
        excess_ns=float(np.median(events.sizes_ns[near])),
        p_value=min(1.0, p_value),
    )


def _every(hit: Float64s, beats: int) -> tuple[int, int]:
    """Which of the beats are meant: every second or third of them, from which one on.

    Harmonics of a beat score as well as the beat; but then the beats between those
    that have long frames are empty.

    Args:
        hit: numbers of the beats that have a long frame.
        beats: how many beats there are.
    """
    for every in (3, 2):
        hits = np.bincount((hit % every).astype(np.int64), minlength=every)
        first = int(np.argmax(hits))
        its_own = round(beats / every)
        if its_own >= _MIN_BEATS and hits[first] >= _FULL * its_own:
            chance = _chance_of(int(hits[first]), hit.size, its_own, beats)
            if every * chance < _EVERY_P:
                return every, first
    return 1, 0


def _chance_of(found: int, hit: int, its_own: int, beats: int) -> float:
    """How often at least `found` of `its_own` beats are hit if any `hit` of all are."""
    hit, most = min(hit, beats), min(its_own, hit)
    ways = sum(
        math.comb(its_own, each) * math.comb(beats - its_own, hit - each)
        for each in range(min(found, most), most + 1)
    )
    return ways / math.comb(beats, hit)


def _refined(hertz: float, times_s: Float64s, turns: Float64s) -> float:
    """The frequency that a straight line through the beats gives."""
    beats = np.rint(turns)
    if beats.min() == beats.max():
        return hertz
    return float(1 / np.polyfit(beats, times_s, 1)[0])
