"""How often the jitter judge is wrong, on series whose truth is known.

For each shape of frame times and each quantile, a thousand series are judged

- against their own true quantile, the worst place for a false alarm,
- against a limit 10 % above it, as a budget would be set,
- and, 20 % slower, against that same limit.

Run: python benchmarks/frames_truth.py [--series 1000]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.case import MS
from pytest_veo.frames.case import open_case
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.stats import FrameStats
from pytest_veo.frames.time_rules import QUANTILES
from pytest_veo.frames.time_rules import judge_quantile
from pytest_veo.frames.verdict import Outcome


FrameTimes = npt.NDArray[np.float64]
Shape = Callable[[np.random.Generator, int], FrameTimes]

FRAMES = {"p50_ms": (60, 300), "p95_ms": (300, 1200), "p99_ms": (1200, 12_000)}
TARGET_MS = 1000 / 60
HEADROOM = 1.1
SLOWER = 1.2


def iid(rng: np.random.Generator, frames: int) -> FrameTimes:
    return rng.normal(TARGET_MS, 1.0, frames)


def negative_lag1(rng: np.random.Generator, frames: int) -> FrameTimes:
    """A late frame is followed by a short one, as in most real captures."""
    late = rng.normal(0, 1.0, frames + 1)
    return TARGET_MS + late[1:] - 0.8 * late[:-1]


def heavy_tails(rng: np.random.Generator, frames: int) -> FrameTimes:
    return TARGET_MS + rng.lognormal(-1.0, 1.0, frames)


def drift(rng: np.random.Generator, frames: int) -> FrameTimes:
    """Ten percent slower from the first frame to the last, as a device heats up."""
    return TARGET_MS * np.linspace(1, 1.1, frames) + rng.normal(0, 0.5, frames)


def bursts(rng: np.random.Generator, frames: int) -> FrameTimes:
    """Stretches of slow frames, six on average, three frames in a hundred."""
    times = TARGET_MS + rng.normal(0, 0.3, frames)
    for start in np.flatnonzero(rng.random(frames) < 0.005):
        stretch = slice(start, start + int(rng.geometric(1 / 6)))
        times[stretch] = TARGET_MS + 8 + rng.normal(0, 2, times[stretch].size)
    return times


SHAPES: dict[str, Shape] = {
    "iid": iid,
    "negative lag-1": negative_lag1,
    "heavy tails": heavy_tails,
    "drift": drift,
    "bursts": bursts,
}


def true_quantile(shape: Shape, share: float) -> float:
    """The quantile of four million frames of this shape."""
    rng = np.random.default_rng(99)
    pool = np.concatenate([shape(rng, 40_000) for _ in range(100)])
    return float(np.quantile(pool, share))


def outcome_of(times: FrameTimes, rule: str, share: float, limit_ms: float) -> Outcome:
    series = FrameSeries.from_intervals(
        np.rint(times * MS).astype(np.int64),
        event=Event.PRESENT,
        clock=Clock.INJECTED,
        resolution_ns=1,
    )
    stats = FrameStats(
        name="truth",
        event=series.event,
        clock=series.clock,
        source="",
        sampled=False,
        frames=len(series),
        warmup=0,
        intervals=len(series) - 1,
        span_ns=series.span_ns,
        quantum_ns=1,
        target_ns=None,
    )
    budget = JitterBudget(**{rule: limit_ms})  # type: ignore[arg-type]
    case = open_case(series, stats, budget, None)
    return judge_quantile(case, rule, share, limit_ms * MS).outcome


def row(
    name: str, rule: str, share: float, truth_ms: float, frames: int, series: int
) -> str:
    rng = np.random.default_rng(frames)
    shape = SHAPES[name]
    edge, good, bad = [], [], []
    for _ in range(series):
        times = shape(rng, frames)
        edge.append(outcome_of(times, rule, share, truth_ms))
        good.append(outcome_of(times, rule, share, truth_ms * HEADROOM))
        bad.append(outcome_of(times * SLOWER, rule, share, truth_ms * HEADROOM))
    cells = [
        f"{edge.count(Outcome.FAIL) / series:.1%}",
        f"{good.count(Outcome.FAIL) / series:.1%}",
        f"{good.count(Outcome.PASS) / series:.1%}",
        f"{bad.count(Outcome.PASS) / series:.1%}",
        f"{bad.count(Outcome.FAIL) / series:.1%}",
    ]
    return f"| {name} | {rule[:3]} | {frames} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=1000, help="series a row")
    series = parser.parse_args().series
    print(
        "| shape | limit | frames | false FAIL at the limit | false FAIL | PASS | "
        "20 % slower: PASS | 20 % slower: FAIL |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, shape in SHAPES.items():
        for rule, share in QUANTILES:
            truth_ms = true_quantile(shape, share)
            for frames in FRAMES[rule]:
                print(row(name, rule, share, truth_ms, frames, series), flush=True)


if __name__ == "__main__":
    main()
