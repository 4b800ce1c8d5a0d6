"""What a frame series may do: the limits, checked against each other."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Literal

from pytest_veo.errors import BadSetting
from pytest_veo.frames.series import Event


OnInconclusive = Literal["warn", "fail", "pass"]
"""What a test does whose frames prove neither side."""

BaselineStatistic = Literal["p50_ms", "p95_ms", "p99_ms", "max_ms", "mad_ms"]
BASELINE_STATISTICS: tuple[BaselineStatistic, ...] = (
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "max_ms",
    "mad_ms",
)

LIMITS = (
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "max_ms",
    "max_over",
    "max_drop_rate",
    "max_drops_per_s",
    "max_hitches_per_min",
    "max_mad_ms",
    "max_phase_error_ms",
    "max_order_error",
    "max_scale_switches_per_min",
    "min_scale",
    "drop_threshold_ms",
    "baseline",
)
"""The fields that are limits; a budget without one judges nothing."""

TIME_LIMITS = (
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "max_ms",
    "max_mad_ms",
    "max_phase_error_ms",
    "drop_threshold_ms",
)
"""Those that are a plain time."""

_COUNTS = ("max_hitches_per_min", "max_order_error", "max_scale_switches_per_min")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JitterBudget:
    """What a series of frames may do. None: not limited.

    Raises:
        BadSetting: a limit makes no sense, or two contradict each other; the message
            names them.
    """

    target_fps: float | None = None
    """The rate aimed at; needed for missed slots and the phase error."""
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None
    max_over: tuple[float, float] | None = None
    """(ms, rate): at most this share of frames may be longer than so many ms."""
    max_drop_rate: float | None = None
    """Dropped frames as a share of those there should have been, for each kind of
    drop that the series can tell of. 0 means none at all."""
    max_drops_per_s: tuple[float, float, float] | None = None
    """(warn, critical, window_s): drops a second in the worst window."""
    max_hitches_per_min: float | None = None
    max_mad_ms: float | None = None
    max_phase_error_ms: float | None = None
    max_order_error: int | None = None
    """Places that a frame may be off when frames are put in order."""
    max_scale_switches_per_min: float | None = None
    min_scale: float | None = None
    drop_threshold_ms: float | None = None
    """Frames longer than this count as slow in every `adaptive_window` frames."""
    adaptive_window: int | None = None
    max_slow_in_window: int = 0
    baseline: tuple[BaselineStatistic, ...] = ()
    """Statistics held to those of earlier runs."""
    baseline_ratio: float = 1.3
    baseline_sigma: float = 2.0
    baseline_runs: int = 64
    """How many of the latest runs are the baseline."""
    min_frames: int = 0
    warmup: int = 0
    """Frames at the start that are not judged."""
    warmup_ms: float = 0.0
    """Time at the start that is not judged; the longer of the two holds."""
    event: Event | None = None
    """The event that must be judged; None takes what the series has."""
    on_inconclusive: OnInconclusive = "warn"

    def __post_init__(self) -> None:
        if not limits_of(self):
            raise BadSetting(f"no limit is given: set one of {', '.join(LIMITS)}")
        _check_numbers(self)
        _check_pairs(self)
        _check_order(self)
        _check_needs(self)

    @property
    def target_ns(self) -> float | None:
        """The frame time aimed at, in nanoseconds."""
        return None if self.target_fps is None else 1e9 / self.target_fps


def limits_of(budget: JitterBudget) -> tuple[str, ...]:
    """The names of the limits that are given."""
    return tuple(field for field in LIMITS if getattr(budget, field) not in (None, ()))


def _check_numbers(budget: JitterBudget) -> None:
    for field in ("target_fps", *TIME_LIMITS, "min_scale"):
        value = getattr(budget, field)
        if value is not None and not (math.isfinite(value) and value > 0):
            raise BadSetting(f"{field}={value!r}: it must be a number above 0")
    for field in (*_COUNTS, "warmup_ms", "baseline_sigma", "max_slow_in_window"):
        value = getattr(budget, field)
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise BadSetting(f"{field}={value!r}: it must be a number, 0 or above")
    for field in ("min_frames", "warmup"):
        if getattr(budget, field) < 0:
            raise BadSetting(f"{field}={getattr(budget, field)}: not below 0")
    for field in ("adaptive_window", "baseline_runs"):
        value = getattr(budget, field)
        if value is not None and value < 1:
            raise BadSetting(f"{field}={value}: it must be 1 or more")
    _check_rate("max_drop_rate", budget.max_drop_rate)
    if not 1 <= budget.baseline_ratio < math.inf:
        raise BadSetting(
            f"baseline_ratio={budget.baseline_ratio}: it must be a number, 1 or above: "
            f"below that every run would have to be better than the last"
        )


def _check_pairs(budget: JitterBudget) -> None:
    if budget.max_over is not None:
        limit_ms, rate = budget.max_over
        if not (math.isfinite(limit_ms) and limit_ms > 0):
            raise BadSetting(f"max_over={budget.max_over}: the ms must be above 0")
        _check_rate("max_over", rate)
    if budget.max_drops_per_s is not None:
        warn, critical, window_s = budget.max_drops_per_s
        if not (0 <= warn <= critical < math.inf and 0 < window_s < math.inf):
            raise BadSetting(
                f"max_drops_per_s={budget.max_drops_per_s}: write (warn, critical, "
                f"window_s) with 0 <= warn <= critical and window_s above 0"
            )
    if (budget.drop_threshold_ms is None) != (budget.adaptive_window is None):
        raise BadSetting(
            "drop_threshold_ms and adaptive_window belong together: give both"
        )


def _check_rate(field: str, rate: float | None) -> None:
    if rate is not None and not 0 <= rate < 1:
        raise BadSetting(f"{field}: the rate {rate!r} must be from 0 to below 1")


def _check_order(budget: JitterBudget) -> None:
    quantiles = [
        (field, value)
        for field in ("p50_ms", "p95_ms", "p99_ms", "max_ms")
        if (value := getattr(budget, field)) is not None
    ]
    for (low, low_ms), (high, high_ms) in itertools.pairwise(quantiles):
        if low_ms > high_ms:
            raise BadSetting(
                f"{low}={low_ms} and {high}={high_ms} contradict each other: {high} "
                f"is never below {low}"
            )
    if budget.max_over is not None and budget.max_ms is not None:
        over_ms = budget.max_over[0]
        if over_ms >= budget.max_ms:
            raise BadSetting(
                f"max_over={budget.max_over} and max_ms={budget.max_ms} contradict "
                f"each other: no frame may be over {budget.max_ms} ms anyway"
            )
    if budget.target_ns is not None:
        _check_target(budget, budget.target_ns / 1e6)


def _check_target(budget: JitterBudget, target_ms: float) -> None:
    # Neither the middle frame nor the longest can be shorter than the mean for long.
    for field in ("p50_ms", "max_ms"):
        limit_ms = getattr(budget, field)
        if limit_ms is not None and limit_ms < 0.95 * target_ms:
            raise BadSetting(
                f"{field}={limit_ms} and target_fps={budget.target_fps:g} contradict "
                f"each other: at that rate a frame takes {target_ms:.4g} ms"
            )


def _check_needs(budget: JitterBudget) -> None:
    if budget.max_phase_error_ms is not None and budget.target_fps is None:
        raise BadSetting("max_phase_error_ms needs target_fps: the phase is against it")
    unknown = set(budget.baseline) - set(BASELINE_STATISTICS)
    if unknown:
        raise BadSetting(
            f"baseline: unknown statistic {sorted(unknown)[0]!r}, use "
            f"{', '.join(BASELINE_STATISTICS)}"
        )
    if budget.on_inconclusive not in ("warn", "fail", "pass"):
        raise BadSetting(
            f"on_inconclusive={budget.on_inconclusive!r}: use warn, fail or pass"
        )
