from __future__ import annotations

import numpy as np
import pytest

from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.jitter import judge
from pytest_veo.frames.noise import MachineNoise
from pytest_veo.frames.record import plain
from pytest_veo.frames.record import record_of
from pytest_veo.frames.series import Int64s
from pytest_veo.frames.stats import frame_stats
from pytest_veo.frames.strip import draw_strip
from pytest_veo.frames.text import explain
from pytest_veo.frames.text import headline
from tests.frames.shapes import MS
from tests.frames.shapes import of_ms
from tests.frames.shapes import steady
from tests.frames.shapes import with_beat


def exact(*slow: int) -> list[float]:
    return [30.0 if n in slow else 16.0 for n in range(400)]


def test_the_text_of_a_failure() -> None:
    series = of_ms(exact(100, 200, 300), source="run.csv", rows=np.arange(401) + 2)
    noise = MachineNoise(
        frames=200, p99_ns=20_000, max_ns=150_000, waited_ns=2 * MS, pressure=0.034
    )
    verdict = judge(
        series, JitterBudget(p50_ms=20, max_ms=25, target_fps=60), noise=noise
    )
    low, high = "\N{LOWER ONE EIGHTH BLOCK}", "\N{FULL BLOCK}"
    assert explain(verdict).splitlines() == [
        "max_ms 30 ms, limit 25 ms, in frames",
        "  max_ms  30 ms  <= 25 ms  fail",
        "  p50_ms  16 ms  <= 20 ms  pass",
        "  401 frames in 6.44 s: present stamps of run.csv, clock injected, step 1 ns",
        "  median 16 ms, p99 16 ms, longest 30 ms, MAD 0 ns, lag-1 -0.01",
        f"  {low * 16}{high}{low * 15}{high}{low * 15}{high}{low * 15}",
        "  worst frames: #101 (row 103) 30 ms at 1.630 s, #201 (row 203) 30 ms at "
        "3.244 s, #301 (row 303) 30 ms at 4.858 s, #1 (row 3) 16 ms at 0.016 s, "
        "#2 (row 4) 16 ms at 0.032 s",
        "  target 16.7 ms: period off by -33700 ppm, phase by up to 225 ms, jitter "
        "0.046 frames",
        "  drops: missed slots 0 of 388",
        "  machine: an empty loop was 20 us late at p99, 150 us at most (200 frames), "
        "waited 2 ms for a CPU, CPU pressure 3%",
    ]


def test_every_text_is_under_twenty_lines() -> None:
    frames = with_beat(steady(1200))
    budget = JitterBudget(
        target_fps=60,
        p50_ms=16.7,
        p95_ms=16.8,
        p99_ms=16.9,
        max_ms=17,
        max_over=(16.95, 0.01),
        max_drop_rate=0.001,
        max_drops_per_s=(0, 1, 1),
        max_hitches_per_min=1,
        max_mad_ms=0.1,
        max_phase_error_ms=1,
        drop_threshold_ms=17,
        adaptive_window=10,
    )
    verdict = judge(of_ms(frames), budget, noise=MachineNoise(frames=0))
    text = explain(verdict)
    assert len(text.splitlines()) < 20
    assert "periodic stutter: every 999.7 ms a frame is 7.91 ms longer" in text
    assert "  and 3 more, at worst: " in text
    assert "machine: nothing is known of its noise" in text


def test_the_headline_puts_the_figure_first() -> None:
    few = judge(of_ms([16.0] * 50), JitterBudget(p99_ms=20))
    assert headline(few) == "not enough frames: p99_ms 16 ms, limit 20 ms, in frames"
    good = judge(of_ms([16.0] * 50), JitterBudget(p50_ms=20))
    assert headline(good) == "within its budget: frames"
    rate = judge(of_ms(exact(*range(0, 400, 5))), JitterBudget(max_over=(20, 0.01)))
    assert headline(rate) == ("max_over 20 % (frames over 20 ms), limit 1 %, in frames")


@pytest.mark.parametrize(
    ("intervals", "strip"),
    [
        (np.empty(0, np.int64), ""),
        (np.array([16, 16, 16]) * MS, "▁▁▁"),
        (np.array([16, 30, 16, 23, 16]) * MS, "▁█▁▅▁"),
    ],
    ids=["none", "even", "spikes"],
)
def test_the_strip_draws_the_longest_of_each_stretch(
    intervals: Int64s, strip: str
) -> None:
    assert draw_strip(intervals) == strip


def test_a_long_strip_keeps_its_width_and_its_spike() -> None:
    frames = np.full(10_000, 16 * MS)
    frames[5000] = 90 * MS
    strip = draw_strip(frames)
    assert len(strip) == 64
    assert strip.count("█") == 1


def test_a_record_is_plain_and_has_no_infinity() -> None:
    series = of_ms([16.0] * 50)
    record = record_of(series, judge(series, JitterBudget(p99_ms=20)))
    (finding,) = record["findings"]
    assert finding["high"] is None
    assert record["outcome"] == "not enough frames"
    assert record["intervals_ns"] == [16 * MS] * 50
    assert record["stats"]["event"] == "present"
    unjudged = record_of(series, frame_stats(series))
    assert (unjudged["outcome"], unjudged["findings"]) == (None, [])
    assert plain(float("nan")) is None


def test_frame_times_of_a_long_series_stay_out_of_its_record() -> None:
    series = of_ms([1.0] * 20_001)
    assert record_of(series, frame_stats(series))["intervals_ns"] is None
