"""Whether a 1 Hz stutter of 8 ms is named in real captures, and nothing in their own.

Each capture is looked at three times: as it is, with a frame 8 ms longer once a second
and all later frames moved, and the same with the time made up for by the next frame.

Run: python benchmarks/frames_captures.py FOLDER
FOLDER holds captures as PresentMon, FrameView, OCAT (CSV) and CapFrameX (JSON) write
them; files without such a column are passed over.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.stats import frame_stats


FrameTimes = npt.NDArray[np.float64]
COLUMNS = ("msbetweenpresents", "msbetweendisplaychange")
MIN_FRAMES = 200
PERIOD_MS = 1000.0
EXTRA_MS = 8.0


def csv_series(path: Path) -> Iterator[tuple[str, FrameTimes]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.reader(file) if row and not row[0].startswith("//")]
    head = [name.strip().lower() for name in rows[0]]
    groups: dict[str, list[list[str]]] = {}
    for row in rows[1:]:
        key = " ".join(
            row[head.index(name)]
            for name in ("application", "swapchainaddress")
            if name in head and head.index(name) < len(row)
        )
        groups.setdefault(key, []).append(row)
    for column in COLUMNS:
        if column not in head:
            continue
        place = head.index(column)
        for key, group in groups.items():
            cells = [row[place].strip() for row in group if place < len(row)]
            times = np.array([float(cell) for cell in cells if cell not in ("NA", "")])
            yield f"{path.stem} {key} {column[9:]}", times


def json_series(path: Path) -> Iterator[tuple[str, FrameTimes]]:
    document = json.loads(path.read_text(encoding="utf-8"))
    runs = document.get("Runs", []) if isinstance(document, dict) else []
    for number, run in enumerate(runs):
        for column in ("MsBetweenPresents", "MsBetweenDisplayChange"):
            times = np.array(run["CaptureData"][column], float)
            yield f"{path.stem} run {number} {column[9:]}", times


def all_series(folder: Path) -> Iterator[tuple[str, FrameTimes]]:
    for path in sorted(folder.rglob("*")):
        reader = {".csv": csv_series, ".json": json_series}.get(path.suffix)
        if reader is None:
            continue
        try:
            found = list(reader(path))
        except (ValueError, KeyError, IndexError) as error:
            print(f"passed over {path.name}: {error!r}")
            continue
        for name, times in found:
            # The first frame has no frame before it, and 0 means not displayed.
            shown = times[1:][times[1:] > 0]
            if shown.size >= MIN_FRAMES:
                yield name, shown


def with_stutter(times: FrameTimes, *, made_up: bool) -> FrameTimes:
    longer = times.copy()
    now_ms, next_ms, owed_ms = 0.0, 0.37 * PERIOD_MS, 0.0
    for place, frame_ms in enumerate(times):
        longer[place] = max(0.1 * frame_ms, frame_ms - owed_ms)
        owed_ms = 0.0
        if now_ms + longer[place] >= next_ms:
            longer[place] += EXTRA_MS
            next_ms += PERIOD_MS
            owed_ms = min(EXTRA_MS, 0.4 * frame_ms) if made_up else 0.0
        now_ms += longer[place]
    return longer


def named(times: FrameTimes) -> str:
    series = FrameSeries.from_intervals(
        np.rint(times * 1e6).astype(np.int64),
        event=Event.PRESENT,
        clock=Clock.TOOL,
        resolution_ns=1000,
    )
    stutter = frame_stats(series).stutter
    if stutter is None:
        return "-"
    return f"{stutter.period_ns / 1e6:.0f} ms (+{stutter.excess_ns / 1e6:.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    print("| capture | frames | seconds | as it is | with stutter | made up for |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, times in all_series(folder):
        found = (
            named(times),
            named(with_stutter(times, made_up=False)),
            named(with_stutter(times, made_up=True)),
        )
        seconds = times.sum() / 1000
        print(f"| {name} | {times.size} | {seconds:.1f} | {' | '.join(found)} |")


if __name__ == "__main__":
    main()
