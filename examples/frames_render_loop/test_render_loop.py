"""A render loop that keeps 60 frames a second, and one that does not.

Run: pytest examples/frames_render_loop
"""

from __future__ import annotations

import time

import numpy as np
import pytest


FRAME_S = 1 / 60


def draw(frame: int) -> np.ndarray:
    """A moving gradient, 320 x 180: the work of a frame."""
    x = np.linspace(0, 1, 320)
    y = np.linspace(0, 1, 180)[:, np.newaxis]
    return np.sin(6 * x + frame / 10) * np.cos(6 * y)


def wait_for_vsync(begin: float) -> None:
    passed = time.perf_counter() - begin
    time.sleep(FRAME_S - passed % FRAME_S)


@pytest.mark.veo_jitter(target_fps=60, p50_ms=18, max_over=(100, 0.2), warmup=5)
def test_loop_keeps_its_pace(veo_frames):
    begin = time.perf_counter()
    for number in range(65):
        with veo_frames.frame(sequence=number) as frame:
            draw(number)
            frame.mark("submit")
            wait_for_vsync(begin)


@pytest.mark.veo_jitter(p50_ms=20, warmup=5)
def test_loop_misses_every_other_refresh(veo_frames):
    begin = time.perf_counter()
    for number in range(65):
        with veo_frames.frame(sequence=number):
            draw(number)
            time.sleep(FRAME_S)  # a stall as long as a frame
            wait_for_vsync(begin)
