"""A format of your own: one class, registered before a file is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.readers import Capture
from pytest_veo.readers import CapturedSeries
from pytest_veo.readers import read_series
from pytest_veo.readers import register_reader
from pytest_veo.readers.source import Source


class EngineLogReader:
    """Lines such as `[frame 17] swap at 283333 us`, between others."""

    name = "enginelog"

    def claims(self, source: Source) -> bool:
        return any(line.startswith("[frame ") for line in source.head)

    def read(self, source: Source) -> Capture:
        stamps, lines = [], []
        for number, line in enumerate(source.lines(), 1):
            if not line.startswith("[frame "):
                continue
            cell = line.split(" swap at ")[-1].removesuffix(" us")
            if not cell.isdigit():
                raise source.error(f"{cell!r} is no time", line=number)
            stamps.append(int(cell) * 1000)
            lines.append(number)
        series = CapturedSeries(
            t_ns=np.array(stamps, np.int64),
            rows=np.array(lines, np.int64),
            event=Event.PRESENT,
            clock=Clock.TOOL,
            resolution_ns=1000,
            source=source.name,
            tool=self.name,
        )
        return Capture(file=source.name, format=self.name, series=(series,))


def pytest_veo_readers() -> list[EngineLogReader]:
    """For pytest (`-p reader`, or in a conftest.py) and for `veo frames -p reader`."""
    return [EngineLogReader()]


if __name__ == "__main__":
    register_reader(EngineLogReader())
    series = read_series(Path(__file__).parent / "engine.log")
    steps_ms = (series.intervals_ns / 1e6).tolist()
    print(f"{len(series)} presents, steps {steps_ms} ms")
