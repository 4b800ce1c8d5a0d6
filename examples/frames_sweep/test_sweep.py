"""One budget over a grid: how deep must the frame queue be for this renderer?

The pipeline is played through on its own clock, so the tables are the same everywhere.
Run: pytest examples/frames_sweep
"""

from __future__ import annotations

import random

import pytest


MS = 1_000_000
REFRESH_NS = 16_666_667


class PlayedTime:
    """A clock that the pipeline moves on."""

    now_ns = 0

    def __call__(self):
        return self.now_ns


def play(time, frames, depth, latency_ms, count=600):
    """A renderer fills a queue, a display takes one frame at every refresh.

    The renderer may be `depth` frames ahead; a refresh that finds the queue empty
    shows nothing new.
    """
    rng = random.Random(1)
    ready_ns = []
    shown = 0
    renderer_ns = 0
    for refresh in range(count):
        time.now_ns = refresh * REFRESH_NS
        while renderer_ns <= time.now_ns and len(ready_ns) - shown < depth:
            slow = 3 if rng.random() < 0.02 else 1
            renderer_ns += round(latency_ms * MS * slow * rng.uniform(0.7, 1.0))
            ready_ns.append(renderer_ns)
        if len(ready_ns) > shown and ready_ns[shown] <= time.now_ns:
            frames.add(sequence=shown)
            shown += 1
        renderer_ns = max(renderer_ns, time.now_ns)


@pytest.mark.veo_jitter(event="display", target_fps=60, p95_ms=17, max_drop_rate=0.06)
def test_queue_is_deep_enough(veo_frames):
    veo_frames.clock = time = PlayedTime()
    for cell in veo_frames.sweep(frame_queue_depth=[3, 4], render_latency_ms=[8, 12]):
        depth, latency_ms = cell["frame_queue_depth"], cell["render_latency_ms"]
        play(time, cell.frames, depth, latency_ms)


@pytest.mark.veo_jitter(event="display", target_fps=60, p95_ms=17, max_drop_rate=0.06)
def test_queue_is_too_short_for_slow_renderers(veo_frames):
    veo_frames.clock = time = PlayedTime()
    for cell in veo_frames.sweep(
        frame_queue_depth=[1, 2, 4], render_latency_ms=[8, 15, 24]
    ):
        depth, latency_ms = cell["frame_queue_depth"], cell["render_latency_ms"]
        play(time, cell.frames, depth, latency_ms)


@pytest.mark.veo_jitter(event="display", target_fps=60, p95_ms=17, max_drop_rate=0.06)
@pytest.mark.parametrize("render_latency_ms", [8, 15])
@pytest.mark.parametrize("frame_queue_depth", [2, 4])
def test_each_cell_is_a_test(veo_frames, frame_queue_depth, render_latency_ms):
    veo_frames.clock = time = PlayedTime()
    play(time, veo_frames.series("preview"), frame_queue_depth, render_latency_ms)
