"""Small captures in one string each, and what was read of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_veo.errors import CaptureError
from pytest_veo.readers import Capture
from pytest_veo.readers import CapturedSeries
from pytest_veo.readers import read_capture


PRESENTS = (
    "Application,ProcessID,SwapChainAddress,Runtime,Dropped,TimeInSeconds,"
    "MsBetweenPresents,MsBetweenDisplayChange,MsUntilDisplayed"
)


def capture(path: Path, text: str | bytes) -> Capture:
    file = path / "capture"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_capture(file)


def refused(path: Path, text: str) -> CaptureError:
    with pytest.raises(CaptureError) as caught:
        capture(path, text)
    return caught.value


def frame_ms(series: CapturedSeries) -> list[float]:
    assert series.frame_times_ns is not None
    return [ns / 1e6 for ns in series.frame_times_ns.tolist()]


def step_ms(series: CapturedSeries) -> list[float]:
    return [ns / 1e6 for ns in series.intervals_ns.tolist()]


def lost(series: CapturedSeries) -> list[bool]:
    assert series.dropped is not None
    return [bool(gone) for gone in series.dropped]


def rows(row: str, count: int = 6) -> str:
    """`row` for each frame of 16 ms: `{i}`, `{s}` seconds, `{ms}`, `{qpc}` ..."""
    return "".join(
        row.format(
            i=i,
            s=f"{i * 0.016:.6f}",
            ms=i * 16.0,
            us=i * 16_000.0,
            ns=i * 16_000_000,
            qpc=i * 160_000,
        )
        + "\n"
        for i in range(count)
    )
