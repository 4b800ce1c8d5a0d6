from __future__ import annotations

import numpy as np
import pytest

from benchmarks.frames_truth import HEADROOM
from benchmarks.frames_truth import SHAPES
from benchmarks.frames_truth import SLOWER
from benchmarks.frames_truth import outcome_of
from benchmarks.frames_truth import true_quantile
from pytest_veo.frames.verdict import Outcome


SERIES = 60
"""The whole table is made by the script; here is enough of it to see it break."""


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(
    ("rule", "share", "frames"),
    [("p50_ms", 0.5, 300), ("p95_ms", 0.95, 300), ("p99_ms", 0.99, 1200)],
    ids=["p50", "p95", "p99"],
)
def test_series_of_known_truth_are_judged_right(
    name: str, rule: str, share: float, frames: int
) -> None:
    rng = np.random.default_rng(17)
    truth_ms = true_quantile(SHAPES[name], share)
    false_alarms = missed = 0
    for _ in range(SERIES):
        times = SHAPES[name](rng, frames)
        at_limit = outcome_of(times, rule, share, truth_ms)
        slower = outcome_of(times * SLOWER, rule, share, truth_ms * HEADROOM)
        false_alarms += at_limit is Outcome.FAIL
        missed += slower is Outcome.PASS
    assert false_alarms <= 1
    assert missed <= 0.1 * SERIES
