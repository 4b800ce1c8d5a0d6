"""Frame times as a line of block characters."""

from __future__ import annotations

import numpy as np

from pytest_veo.frames.distribution import quantiles
from pytest_veo.frames.series import Int64s


BLOCKS = "▁▂▃▄▅▆▇█"
STRIP_COLUMNS = 64


def draw_strip(intervals_ns: Int64s, columns: int = STRIP_COLUMNS) -> str:
    """The longest frame of each stretch, drawn between the median and the longest.

    The lowest block is anything up to the median, so that one freeze does not hide
    that all the rest is even, nor noise fill the line.
    """
    if intervals_ns.size == 0:
        return ""
    columns = min(columns, intervals_ns.size)
    starts = np.linspace(0, intervals_ns.size, columns, endpoint=False).astype(int)
    tops = np.maximum.reduceat(intervals_ns, starts)
    (floor,) = quantiles(intervals_ns.copy(), (0.5,))
    height = float(tops.max()) - floor
    # Within a tenth of the median nothing stands out.
    height = max(height, 0.1 * floor, 1.0)
    steps = np.clip((tops - floor) / height * (len(BLOCKS) - 1), 0, len(BLOCKS) - 1)
    return "".join(BLOCKS[int(step)] for step in np.rint(steps))
