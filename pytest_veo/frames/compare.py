"""Two variants of one program, run in turns: how much slower is the second?

Runs are compared, not frames: frames of one run are alike, and pooled they make any
two runs differ. The effect is a ratio with an interval and is held to a margin. A
p-value is told and decides nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

import numpy as np

from pytest_veo.errors import BadSetting
from pytest_veo.errors import FramesError
from pytest_veo.errors import MissingDependency
from pytest_veo.frames.baseline import history_entry
from pytest_veo.frames.budget import BASELINE_STATISTICS
from pytest_veo.frames.budget import BaselineStatistic
from pytest_veo.frames.confidence import FAIL_ALPHA
from pytest_veo.frames.confidence import PASS_ALPHA
from pytest_veo.frames.recorder import FrameRecorder
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.stats import frame_stats
from pytest_veo.frames.verdict import Outcome


MIN_PAIRS = 5
DEFAULT_PAIRS = 9


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Variant B against variant A, by one statistic of their runs."""

    outcome: Outcome
    a: str
    b: str
    statistic: BaselineStatistic
    ratio: float
    """B's statistic as a multiple of A's."""
    low: float
    high: float
    """One-sided bounds: 99.5 % below, 95 % above."""
    margin: float
    """By how much B may be slower: 0.05 allows 5 %."""
    pairs: int
    median_a_ms: float
    median_b_ms: float
    p_value: float
    """Mann-Whitney's, over runs. Supporting evidence, never a gate."""

    def __str__(self) -> str:
        high = "-" if math.isinf(self.high) else f"{self.high:.3f}"
        low = "-" if self.low == 0 else f"{self.low:.3f}"
        return (
            f"{self.b} takes {self.ratio:.3f} [{low}, {high}] of {self.a}'s "
            f"{self.statistic} ({self.median_b_ms:.4g} against {self.median_a_ms:.4g} "
            f"ms, {self.pairs} pairs of runs), allowed {1 + self.margin:g}: "
            f"{self.outcome}"
        )


class Turns:
    """Runs of two variants in turns: A B B A A B B A ...

    Iterating gives the variant's name and a recorder for each run.

    Args:
        a: name of the variant compared with.
        b: name of the variant that is judged.
        pairs: runs of each.
        make: makes the recorder of a run from its name.
    """

    def __init__(
        self, a: str, b: str, pairs: int, make: Callable[[str], FrameRecorder]
    ) -> None:
        if a == b:
            raise BadSetting(f"both variants are called {a!r}: name them apart")
        if pairs < MIN_PAIRS:
            raise BadSetting(
                f"pairs={pairs}: fewer than {MIN_PAIRS} runs of each say nothing"
            )
        self.a, self.b = a, b
        self.comparisons: list[Comparison] = []
        """What was compared so far; it goes into the test's record."""
        self._pairs = pairs
        self._make = make
        self._runs: dict[str, list[FrameRecorder]] = {a: [], b: []}

    def __iter__(self) -> Iterator[tuple[str, FrameRecorder]]:
        for pair in range(self._pairs):
            order = (self.a, self.b) if pair % 2 == 0 else (self.b, self.a)
            for variant in order:
                run = self._make(f"{variant} #{pair + 1}")
                self._runs[variant].append(run)
                yield variant, run

    def compare(
        self,
        statistic: BaselineStatistic = "p95_ms",
        *,
        margin: float = 0.05,
        warmup: int = 0,
    ) -> Comparison:
        """How B compares with A in the runs so far.

        Args:
            statistic: which figure of each run.
            margin: by how much B may be slower, as a share.
            warmup: frames of each run that do not count.
        """
        runs_a, runs_b = (
            [run.series().after(warmup) for run in self._runs[variant]]
            for variant in (self.a, self.b)
        )
        comparison = compare_runs(
            runs_a, runs_b, statistic, margin=margin, names=(self.a, self.b)
        )
        self.comparisons.append(comparison)
        return comparison

    def check(
        self,
        statistic: BaselineStatistic = "p95_ms",
        *,
        margin: float = 0.05,
        warmup: int = 0,
    ) -> Comparison:
        """Compare, and fail the test when B is slower than the margin allows.

        Raises:
            AssertionError: it is, by the lower bound of the ratio.
        """
        comparison = self.compare(statistic, margin=margin, warmup=warmup)
        if comparison.outcome is Outcome.FAIL:
            raise AssertionError(str(comparison))
        return comparison


def compare_runs(
    runs_a: Sequence[FrameSeries],
    runs_b: Sequence[FrameSeries],
    statistic: BaselineStatistic = "p95_ms",
    *,
    margin: float = 0.05,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """Compare runs that were made in pairs.

    Args:
        runs_a: runs of the variant compared with.
        runs_b: as many runs of the other, each made beside its partner.
        statistic: which figure of each run.
        margin: by how much B may be slower, as a share.
        names: of the variants.

    Raises:
        BadSetting: the statistic is unknown or the margin below 0.
        FramesError: there are not as many runs of one as of the other, or a run has
            no frame times.
    """
    if statistic not in BASELINE_STATISTICS:
        allowed = ", ".join(BASELINE_STATISTICS)
        raise BadSetting(f"unknown statistic {statistic!r}: use one of {allowed}")
    if not margin >= 0:
        raise BadSetting(f"margin={margin}: not below 0")
    if len(runs_a) != len(runs_b):
        raise FramesError(
            f"{len(runs_a)} runs of {names[0]} and {len(runs_b)} of {names[1]}: runs "
            f"are compared in pairs"
        )
    values_a, values_b = (
        np.array([_figure(run, statistic) for run in runs]) for runs in (runs_a, runs_b)
    )
    ratio, low, high, p_value = _effect(np.log(values_a), np.log(values_b))
    return Comparison(
        outcome=_outcome(low, high, 1 + margin, len(runs_a)),
        a=names[0],
        b=names[1],
        statistic=statistic,
        ratio=ratio,
        low=low,
        high=high,
        margin=margin,
        pairs=len(runs_a),
        median_a_ms=float(np.median(values_a)),
        median_b_ms=float(np.median(values_b)),
        p_value=p_value,
    )


def _effect(
    logs_a: np.ndarray, logs_b: np.ndarray
) -> tuple[float, float, float, float]:
    """Ratio, its bounds, and a p-value, from the logarithms of paired runs."""
    try:
        from scipy import stats
    except ImportError:
        raise MissingDependency("scipy", "frames", "comparing runs") from None
    steps = logs_b - logs_a
    ratio = math.exp(float(steps.mean())) if steps.size else math.nan
    if steps.size < 2:
        return ratio, 0.0, math.inf, 1.0
    p_value = float(stats.mannwhitneyu(logs_a, logs_b).pvalue)
    if np.ptp(steps) == 0:
        return ratio, ratio, ratio, p_value
    paired = stats.ttest_rel(logs_b, logs_a)
    low = paired.confidence_interval(1 - 2 * FAIL_ALPHA).low
    high = paired.confidence_interval(1 - 2 * PASS_ALPHA).high
    return ratio, math.exp(low), math.exp(high), p_value


def _outcome(low: float, high: float, allowed: float, pairs: int) -> Outcome:
    if pairs < MIN_PAIRS:
        return Outcome.NOT_ENOUGH_FRAMES
    if low > allowed:
        return Outcome.FAIL
    return Outcome.PASS if high <= allowed else Outcome.INCONCLUSIVE


def _figure(run: FrameSeries, statistic: BaselineStatistic) -> float:
    figure = history_entry(frame_stats(run)).get(statistic)
    if figure is None or figure <= 0:
        raise FramesError(f"{run.name}: its {statistic} is {figure}, no ratio exists")
    return figure
