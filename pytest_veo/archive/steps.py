"""Where a series of figures took a step: change points, with false ones held down.

Candidates come from PELT (Killick, Fearnhead and Eckley 2012, the library `ruptures`)
on the ranks of the figures, so that wild values weigh no more than others. Each is then
put to the proof between its neighbours, the weakest first, until all that are left
stand: a Mann-Whitney test corrected for the length of the series, for the number of
series looked at and for the noise's own memory; a size that noise does not have; and a
jump on the spot, since a slope is not a step.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

from pytest_veo.errors import MissingDependency


if TYPE_CHECKING:
    from collections.abc import Sequence


MIN_RUNS = 3
"""Fewest runs on each side of a step of figures that never vary."""
ALPHA = 0.001
"""Chance of a false step anywhere in all series that are looked at together."""
_PENALTY = 2.0
"""Of PELT, times log n and the noise's variance: low, for the proofs come after."""
_WINDOW = 800
"""Runs that are searched at a time; windows overlap by half."""
_LEAST_SIZE = 1.5
"""Of a step, in standard deviations of the noise around it."""
_NEAR = 15
"""Runs on each side that must show the jump."""
_NEAR_SHARE = 0.5
_SURE = 6.0
"""Twice the log-likelihood by which a place must be worse to be ruled out."""
_CLIP = 3.0
NOISY_RUNS = 7
"""Fewest runs on each side of a step of figures that vary."""
_LONG_RUNS = 20
_SHORT_SHARE = 0.8
_SIGNIFICANT = 2.0
"""Standard errors of a correlation that is no chance."""
_YUEN_RUNS = 10
"""Fewest runs on each side for trimming a fifth."""


class Step(NamedTuple):
    """A change of level."""

    place: int
    """Index of the first run on the new level."""
    first: int
    last: int
    """The earliest and latest index that the figures cannot rule out."""
    before: float
    after: float
    """Medians of the runs on either side, up to the next step."""
    noise: float
    """Robust standard deviation around them."""

    @property
    def change(self) -> float:
        """After less before."""
        return self.after - self.before


def find_steps(
    values: Sequence[float],
    boundaries: Sequence[bool] | None = None,
    *,
    series: int = 1,
) -> tuple[Step, ...]:
    """The steps in a series, in order.

    Args:
        values: a figure of each run, oldest first.
        boundaries: whether a run is the first of its commit; a step is put there
            where the figures leave a choice.
        series: how many series are looked at together.

    Raises:
        MissingDependency: `ruptures` is not installed.
    """
    if len(values) < 2 * MIN_RUNS or min(values) == max(values):
        return ()
    import numpy as np

    x = np.asarray(values, dtype=float)
    cuts = _proven(x, [0, *_candidates(x), len(x)], _threshold(len(x), series))
    edges = None if boundaries is None else np.asarray(boundaries, dtype=bool)
    return tuple(
        _step(x, (cuts[place - 1], cuts[place], cuts[place + 1]), edges)
        for place in range(1, len(cuts) - 1)
    )


def _proven(x: Any, cuts: list[int], threshold: float) -> list[int]:
    """The cuts that stand the proof, each at its best place, with both ends."""
    best = functools.cache(lambda *cut: _best(x, *cut)[0])
    strength = functools.cache(lambda *cut: _strength(x, *cut))
    while len(cuts) > 2:
        for place in range(1, len(cuts) - 1):
            cuts[place] = best(*cuts[place - 1 : place + 2])
        if _never_varies(x, cuts):
            break
        strengths = [
            strength(*cuts[place - 1 : place + 2]) for place in range(1, len(cuts) - 1)
        ]
        weakest = min(range(len(strengths)), key=strengths.__getitem__)
        if strengths[weakest] >= threshold:
            break
        del cuts[weakest + 1]
    return cuts


def _never_varies(x: Any, cuts: list[int]) -> bool:
    """Whether the figures are the same all along between the cuts."""
    return all(
        x[start:end].min() == x[start:end].max()
        for start, end in itertools.pairwise(cuts)
    )


def _threshold(n: int, series: int) -> float:
    """The z-score that one place in one series passes by chance seldom enough."""
    return statistics.NormalDist().inv_cdf(1 - ALPHA / (2 * n * max(1, series)))


def _candidates(x: Any) -> list[int]:
    """Places that may be steps: on ranks, then on the ranks of each part again.

    Ranks of the whole series press close levels together; those of a part do not.
    """
    try:
        import ruptures
    except ImportError:
        raise MissingDependency("ruptures", "archive", "finding steps") from None
    found: set[int] = set()
    # The search takes the square of the runs; a step shows within some hundreds.
    parts = [
        (start, min(start + _WINDOW, len(x)))
        for start in range(0, max(1, len(x) - _WINDOW // 2), _WINDOW // 2)
    ]
    while parts:
        start, end = parts.pop()
        part = x[start:end]
        if len(part) < 2 * MIN_RUNS or part.min() == part.max():
            continue
        ranks = _ranks(part)
        ranks = (ranks - ranks.mean()) / ranks.std()
        penalty = _PENALTY * math.log(len(x)) * _short_variance(ranks)
        search = ruptures.KernelCPD(kernel="linear", min_size=MIN_RUNS, jump=1)
        cuts = search.fit(ranks.reshape(-1, 1)).predict(pen=penalty)[:-1]
        edges = [start, *(start + int(cut) for cut in cuts), end]
        if cuts:
            found.update(edges[1:-1])
            parts += itertools.pairwise(edges)
    return sorted(found)


def _ranks(x: Any) -> Any:
    """Ranks from 1, the mean of those that agree."""
    import numpy as np

    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[place]


def _short_variance(x: Any) -> float:
    """Variance from run to run, whatever the level does; at least a thousandth."""
    import numpy as np

    differences = np.diff(x)
    return max(float(np.mean(np.square(differences))) / 2, 1e-3)


def _strength(x: Any, start: int, cut: int, end: int) -> float:
    """The z-score of a step; 0 for what is no step whatever its score."""
    import numpy as np

    left, right = x[start:cut], x[cut:end]
    before, after = float(np.median(left)), float(np.median(right))
    noise = _noise(left, right)
    if abs(after - before) < _LEAST_SIZE * noise or after == before:
        return 0.0
    near_left, near_right = left[-_NEAR:], right[:_NEAR]
    jump = float(np.median(near_right) - np.median(near_left))
    if jump * (after - before) <= 0 or abs(jump) < _NEAR_SHARE * abs(after - before):
        return 0.0
    sides = ((left, after, before), (right, before, after))
    if not all(_is_settled(side, own, other) for side, other, own in sides):
        return 0.0
    if not _is_sudden(x[start:end], cut - start, noise):
        return 0.0
    r = _correlation(left, right)
    return max(
        _mann_whitney(left, right) / math.sqrt(_widening(r)), _yuen(left, right, r)
    )


def _is_settled(side: Any, own: float, other: float) -> bool:
    """Whether a short side is long enough, and nearly all of it on its own level."""
    import numpy as np

    if len(side) >= _LONG_RUNS:
        return True
    middle = (own + other) / 2
    there = side > middle if own > other else side < middle
    return len(side) >= NOISY_RUNS and float(np.mean(there)) >= _SHORT_SHARE


def _is_sudden(whole: Any, cut: int, noise: float) -> bool:
    """Whether a step explains the figures better than a steady slope does."""
    import numpy as np

    low, high = sorted((np.median(whole[:cut]), np.median(whole[cut:])))
    is_wild = (whole < low - _CLIP * noise) | (whole > high + _CLIP * noise)
    places, kept = np.flatnonzero(~is_wild), whole[~is_wild]
    around = places - places.mean()
    slope = float(around @ kept) / float(around @ around)
    of_line = float(np.sum(np.square(kept - kept.mean() - slope * around)))
    left, right = kept[places < cut], kept[places >= cut]
    of_step = float(left.var() * len(left) + right.var() * len(right))
    if of_step == 0:
        return True
    better = len(kept) * math.log(of_line / of_step) if of_line > 0 else 0.0
    return better >= _SURE * _widening(_correlation(whole[:cut], whole[cut:]))


def _noise(left: Any, right: Any) -> float:
    import numpy as np

    rest = np.concatenate([left - np.median(left), right - np.median(right)])
    low, high = np.quantile(rest, [0.25, 0.75])
    return max(1.4826 * float(np.median(np.abs(rest))), float(high - low) / 1.349)


def _widening(r: float) -> float:
    """By how much a memory of r widens the variance of a mean."""
    return (1 + r) / (1 - r)


def _correlation(left: Any, right: Any) -> float:
    """Of each run's noise with that of the run before; at least 0, at most 0.9."""
    import numpy as np

    noise = _noise(left, right) or 1.0
    products, squares = 0.0, 0.0
    for side in (left, right):
        rest = np.clip((side - np.median(side)) / noise, -_CLIP, _CLIP)
        products += float(np.sum(rest[1:] * rest[:-1]))
        squares += float(np.sum(rest * rest))
    return min(max(products / squares if squares else 0.0, 0.0), 0.9)


def _mann_whitney(left: Any, right: Any) -> float:
    """|z| of the Mann-Whitney test, normal approximation with correction for ties."""
    import numpy as np

    both = np.concatenate([left, right])
    n, m = len(left), len(right)
    total = n + m
    ranks = _ranks(both)
    u = float(ranks[:n].sum()) - n * (n + 1) / 2
    _, ties = np.unique(both, return_counts=True)
    spread = (total + 1) - float(np.sum(ties**3 - ties)) / (total * (total - 1))
    return abs(u - n * m / 2) / math.sqrt(n * m / 12 * spread) if spread > 0 else 0.0


def _yuen(left: Any, right: Any, r: float) -> float:
    """|z| of Yuen's test: means trimmed by a fifth, variances winsorised (1974).

    A rank test cannot tell how far apart two levels are, which counts where the
    noise has a memory and the runs are worth only a few. A short side says little of
    its own noise: it takes that of both, unless its own is larger. A memory of r
    widens the means and leaves fewer degrees of freedom for the variance (Bartlett
    1935); to widen the score instead would take t's heavy tails twice.
    """
    if min(len(left), len(right)) < _YUEN_RUNS:
        return 0.0
    (mean1, own1, n1), (mean2, own2, n2) = _trimmed(left), _trimmed(right)
    both = (own1 * (n1 - 1) + own2 * (n2 - 1)) / (n1 + n2 - 2)
    error = _widening(r) * (max(own1, both) / n1 + max(own2, both) / n2)
    if error == 0:
        return 0.0
    t = (mean1 - mean2) / math.sqrt(error)
    df = (n1 + n2 - 2) * (1 - r * r) / (1 + r * r)
    # Student's t as a normal score (Wallace 1959), good to three digits.
    return math.sqrt(df * math.log1p(t * t / df)) * (8 * df + 1) / (8 * df + 3)


def _trimmed(side: Any) -> tuple[float, float, int]:
    """The trimmed mean, its variance for one run, and how many runs are in it."""
    import numpy as np

    ordered = np.sort(side)
    cut = len(side) // 5
    left = len(side) - 2 * cut
    winsorised = np.clip(ordered, ordered[cut], ordered[len(side) - cut - 1])
    variance = float(np.var(winsorised, ddof=1)) * (len(side) - 1) / (left - 1)
    return float(ordered[cut : len(side) - cut].mean()), variance, left


def _step(x: Any, cuts: tuple[int, int, int], edges: Any) -> Step:
    import numpy as np

    start, cut, end = cuts
    best, possible = _best(x, start, cut, end)
    if edges is not None:
        at_commits = [place for place in possible if edges[place]]
        if at_commits and not edges[best]:
            best = min(at_commits, key=lambda place: abs(place - best))
    left, right = x[start:best], x[best:end]
    return Step(
        place=best,
        first=min(possible),
        last=max(possible),
        before=float(np.median(left)),
        after=float(np.median(right)),
        noise=_noise(left, right),
    )


def _best(x: Any, start: int, cut: int, end: int) -> tuple[int, list[int]]:
    """The likeliest place of a step between two others, and all likely ones."""
    import numpy as np

    left, right = x[start:cut], x[cut:end]
    before, after = float(np.median(left)), float(np.median(right))
    scale = _noise(left, right) or abs(after - before) / 10
    if scale == 0:
        return cut, [cut]
    whole = x[start:end]
    r = _correlation(left, right)
    if r < _SIGNIFICANT / math.sqrt(len(whole)):
        r = 0.0  # as chance has it
    costs = _costs_of_places((whole - before) / scale, (whole - after) / scale, r)
    low, high = MIN_RUNS, len(whole) - MIN_RUNS
    inner = costs[low : high + 1]
    if not len(inner):
        return cut, [cut]
    best = start + low + int(np.argmin(inner))
    limit = float(inner.min()) + _SURE
    return best, [start + low + int(i) for i in np.flatnonzero(inner <= limit)]


def _costs_of_places(old: Any, new: Any, r: float) -> Any:
    """Twice the negative log-likelihood of a step at each place, up to a constant.

    Args:
        old: figures as they lie about the level before, in standard deviations.
        new: as they lie about the level after.
        r: correlation of a run's noise with that of the one before, which is taken out.
    """
    import numpy as np

    width = math.sqrt(1 - r * r)

    def cost(own: Any, last: Any) -> Any:
        # Where a figure is far from both levels it speaks for neither.
        remembered = r * np.clip(last[:-1], -_CLIP, _CLIP)
        news = own - np.concatenate([[0.0], remembered])
        return np.minimum(np.square(news / width), _CLIP**2)

    stays, moves, moved = cost(old, old), cost(new, old), cost(new, new)
    before = np.concatenate([[0.0], np.cumsum(stays)])
    after = np.concatenate([[0.0], np.cumsum(moved)])
    # Of the first run on the new level the noise is still that of the old one.
    first = np.concatenate([moves - moved, [0.0]])
    return before - after + first
