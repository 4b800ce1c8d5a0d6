"""How sure a figure is: exact intervals, widened where frames come in bursts.

The two sides of a verdict are not alike. A false alarm costs the trust in every later
alarm, so a failure is asked for at 99.5 % and more, a pass at 95 %.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from pytest_veo.errors import MissingDependency
from pytest_veo.frames.series import Bools
from pytest_veo.frames.series import Int64s


FAIL_ALPHA = 0.005
"""How often a figure just within its budget may be called over it."""
PASS_ALPHA = 0.05
"""How often a figure just over its budget may be called within it."""

_BLOCKS = (32, 64, 128, 256)
_MIN_BLOCKS = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Bounds:
    """An interval for a figure, in the figure's unit."""

    low: float
    """-inf where the frames allow no lower bound."""
    high: float
    """inf where the frames allow no upper bound."""


@dataclasses.dataclass(frozen=True, slots=True)
class Evidence:
    """How many independent frames `frames` frames are worth."""

    frames: int
    burst: float = 1.0
    """The design effect: how much more the count of slow frames scatters than it
    would if each frame were slow or not on its own. Never below 1."""
    bursts: float = math.inf
    """About how many separate stretches of slow frames were seen."""

    @property
    def for_pass(self) -> float:
        """Independent frames that a pass may count on."""
        return self.frames / self.burst

    @property
    def for_fail(self) -> float:
        """Independent frames that a failure may count on.

        Fewer, because a design effect seen in three bursts is hardly known.
        """
        doubt = 1 + 2 / math.sqrt(max(1.0, self.bursts))
        return self.frames / (self.burst * doubt)


def weigh(over: Bools) -> Evidence:
    """What a series is worth as evidence on how often `over` is true.

    The design effect is the largest of two kinds: squared over plain length of the
    stretches in which `over` is true, and the scatter of its count between
    neighbouring blocks. Comparing neighbours leaves a slow drift out.

    Args:
        over: whether each interval is above a limit, shape (n,).
    """
    frames = int(over.size)
    count = int(np.count_nonzero(over))
    rare = min(count, frames - count)
    if rare == 0:
        return Evidence(frames)
    share = count / frames
    burst = max(1.0, _block_scatter(over, share))
    if share < 0.2:
        burst = max(burst, _stretch_length(over, max(1, int(0.1 / share))))
    return Evidence(frames, burst, rare / burst)


def quantile_ranks(
    quantile: float,
    evidence: Evidence,
    low_alpha: float = FAIL_ALPHA,
    high_alpha: float = PASS_ALPHA,
) -> tuple[int | None, int | None]:
    """Which order statistics (from 0) bound a quantile; None where none does.

    With independent frames these are the ranks of `scipy.stats.quantile_test`.

    Args:
        quantile: between 0 and 1.
        evidence: what the frames are worth.
        low_alpha: how often the lower bound may lie above the true quantile.
        high_alpha: how often the upper bound may lie below it.
    """
    worth_low = max(1, math.floor(evidence.for_fail))
    worth_high = max(1, math.floor(evidence.for_pass))
    below = _binomial_rank(low_alpha, worth_low, quantile)
    above = _binomial_rank(1 - high_alpha, worth_high, quantile, at_least=True)
    # A rank among the independent frames is the same share of all frames.
    low = math.floor((below + 1) * evidence.frames / worth_low) - 1
    high = math.ceil((above + 1) * evidence.frames / worth_high) - 1
    return (
        low if below >= 0 else None,
        min(high, evidence.frames - 1) if above < worth_high else None,
    )


def rate_bounds(
    count: int,
    evidence: Evidence,
    low_alpha: float = FAIL_ALPHA,
    high_alpha: float = PASS_ALPHA,
) -> Bounds:
    """Clopper-Pearson bounds for the rate behind `count` in so many frames."""
    special = _special()
    if evidence.frames == 0:
        return Bounds(0.0, 1.0)
    share = count / evidence.frames
    low, high = 0.0, 1.0
    if count > 0:
        worth = evidence.for_fail
        hits = share * worth
        low = float(special.betaincinv(hits, worth - hits + 1, low_alpha))
    if count < evidence.frames:
        worth = evidence.for_pass
        hits = share * worth
        high = float(special.betaincinv(hits + 1, worth - hits, 1 - high_alpha))
    return Bounds(low, high)


def count_bounds(
    count: int, low_alpha: float = FAIL_ALPHA, high_alpha: float = PASS_ALPHA
) -> Bounds:
    """Exact Poisson bounds for the expected number behind `count` events."""
    special = _special()
    low = float(special.gammaincinv(count, low_alpha)) if count else 0.0
    return Bounds(low, float(special.gammaincinv(count + 1, 1 - high_alpha)))


def frames_needed(quantile: float, alpha: float = PASS_ALPHA) -> int:
    """Intervals needed for an upper bound on a quantile: 59 for p95, 299 for p99.

    A rate `r` needs as many as the quantile `1 - r`.
    """
    return math.ceil(math.log(alpha) / math.log(quantile))


def _binomial_rank(
    alpha: float, size: int, quantile: float, *, at_least: bool = False
) -> int:
    """The largest k with P(B <= k) <= alpha, or the smallest with P(B <= k) >= alpha.

    -1, or `size`, when there is none that serves as a rank.
    """
    special = _special()
    guess = special.bdtrik(alpha, size, quantile)
    rank = 0 if math.isnan(guess) else int(guess)
    if at_least:
        while rank > 0 and special.bdtr(rank - 1, size, quantile) >= alpha:
            rank -= 1
        while rank < size and special.bdtr(rank, size, quantile) < alpha:
            rank += 1
        return rank
    while rank < size - 1 and special.bdtr(rank + 1, size, quantile) <= alpha:
        rank += 1
    while rank >= 0 and special.bdtr(rank, size, quantile) > alpha:
        rank -= 1
    return rank


def _stretch_length(over: Bools, gap: int) -> float:
    """Squared over plain length of the stretches, ones `gap` frames apart joined."""
    places = np.flatnonzero(over)
    ends = np.flatnonzero(np.diff(places) > gap) + 1
    sizes = np.diff(np.concatenate(([0], ends, [places.size])))
    return float(np.square(sizes).sum() / sizes.sum())


def _block_scatter(over: Bools, share: float) -> float:
    largest = 1.0
    counts, size = _block_counts(over, _BLOCKS[0]), _BLOCKS[0]
    for block in _BLOCKS:
        counts, size = _block_counts(counts, block // size), block
        if counts.size < _MIN_BLOCKS:
            break
        variance = np.square(np.diff(counts)).mean() / 2
        largest = max(largest, float(variance / (block * share * (1 - share))))
    return largest


def _block_counts(values: Bools | Int64s, block: int) -> Int64s:
    blocks = values.size // block
    whole = values[: blocks * block].reshape(blocks, block)
    counts: Int64s = whole.sum(axis=1, dtype=np.int64)
    return counts


def _special() -> Any:
    try:
        from scipy import special
    except ImportError:
        raise MissingDependency("scipy", "frames", "judging frames") from None
    return special
