"""A verdict, or figures without one, as plain values that JSON and wires can carry."""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import Any

from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.stats import FrameStats
from pytest_veo.frames.text import explain
from pytest_veo.frames.text import headline
from pytest_veo.frames.verdict import FrameVerdict


SCHEMA = 1
MAX_INTERVALS = 20_000
"""Frame times of longer series stay out of the record; their figures do not."""


def record_of(series: FrameSeries, judged: FrameVerdict | FrameStats) -> dict[str, Any]:
    """One series of a test: figures, frame times and, if it was judged, the verdict.

    Figures that do not exist (an interval without an upper end) are None.

    Args:
        series: as recorded, warm-up included.
        judged: what was found.
    """
    verdict = judged if isinstance(judged, FrameVerdict) else None
    stats = judged.stats if isinstance(judged, FrameVerdict) else judged
    intervals = series.intervals_ns
    return {
        "schema": SCHEMA,
        "series": series.name,
        "outcome": None if verdict is None else str(verdict.outcome),
        "headline": None if verdict is None else headline(verdict),
        "text": None if verdict is None else explain(verdict),
        "findings": [] if verdict is None else plain(verdict.findings),
        "notes": [] if verdict is None else list(verdict.notes),
        "noise": None if verdict is None else plain(verdict.noise),
        "stats": plain(stats),
        "intervals_ns": intervals.tolist() if intervals.size <= MAX_INTERVALS else None,
    }


def plain(value: Any) -> Any:
    """Dataclasses, enums and tuples as dicts, text and lists; no infinities."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name))
            for field in dataclasses.fields(value)
        }
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
