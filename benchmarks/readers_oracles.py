"""Real captures beside the values that the tools themselves printed.

    python benchmarks/readers_oracles.py FOLDER

FOLDER holds captures in folders a tool, and EXPECTED.json with the tools' own values:
FrameView's summaries, PresentMon's one trace in three schemas, PerfDog's janks, the
first poll of a WebRTC stream. Prints a line a check; exit status 1 when one fails.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pytest_veo.errors import VeoError
from pytest_veo.frames.figures import FrameTimes
from pytest_veo.frames.figures import figures_of
from pytest_veo.frames.series import Event
from pytest_veo.readers import Capture
from pytest_veo.readers import CapturedSeries
from pytest_veo.readers import read_capture
from pytest_veo.readers import read_series
from pytest_veo.readers.webrtc import Poll
from pytest_veo.readers.webrtc import inter_frame_ms


FRAMEVIEW = {
    "avg": "Avg FPS",
    "low1": "1% Low FPS",
    "low01": "0.1% Low FPS",
    "p1": "1% FPS",
    "p01": "0.1% FPS",
    "p5": "5% FPS",
    "p10": "10% FPS",
    "mn": "Min FPS",
    "mx": "Max FPS",
}
Key = tuple[int | None, int | None, str]


class Table:
    """Counts what agreed."""

    def __init__(self) -> None:
        self.failed = 0

    def check(self, name: str, what: str, agrees: bool) -> None:
        """Print one line."""
        self.failed += not agrees
        print(f"{'ok  ' if agrees else 'FAIL'} {name}: {what}")


def frameview(table: Table, folder: Path, name: str, oracle: dict[str, Any]) -> None:
    """FrameView's log against its own summary, within what the oracle allows."""
    series = read_series(folder / name)
    found = {figure.name: figure.value for figure in series.figures("frameview")}
    for key, figure in FRAMEVIEW.items():
        told = oracle["expected"][key]
        allowed = oracle["tolerance"][key]
        if not isinstance(allowed, float):
            # Half a microsecond of rounding of the shortest frame.
            allowed = told**2 * 0.0006 / 1000
        difference = abs(found[figure] - told)
        words = f"{figure} {found[figure]:.3f}, told {told:.3f}"
        table.check(name, words, difference <= allowed)
    assert series.dropped is not None
    counts = (len(series), int(series.dropped.sum()))
    told = (oracle["rows"], oracle["dropped"])
    table.check(name, f"rows and dropped {counts}, told {told}", counts == told)


def _cells(path: Path) -> list[dict[str, str]]:
    """The rows as they stand in the file, the first on line 2."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def _parts(capture: Capture, *events: Event) -> list[CapturedSeries]:
    return [series for series in capture.series if series.event in events]


def _by_stamp(path: Path, capture: Capture, column: str) -> dict[Key, tuple[int, bool]]:
    """Frame time and fate of each present, by process, swapchain and QPC stamp."""
    cells = _cells(path)
    found: dict[Key, tuple[int, bool]] = {}
    for series in _parts(capture, Event.PRESENT):
        times, lines, lost = series.frame_times_ns, series.rows, series.dropped
        assert times is not None
        assert lines is not None
        assert lost is not None
        for line, time_ns, gone in zip(lines, times, lost, strict=True):
            stamp = cells[int(line) - 2][column]
            key = (series.process_id, series.swapchain, stamp)
            found[key] = (int(time_ns), bool(gone))
    return found


def _starts_agree(folder: Path, case: str, capture: Capture) -> bool:
    """`FrameTime` of v2 is `MsBetweenAppStart` of the default schema, row by row."""
    cells = _cells(folder / f"presentmon/gold_{case}_default.csv")
    for series in _parts(capture, Event.CPU_START):
        assert series.frame_times_ns is not None
        assert series.rows is not None
        for line, time_ns in zip(series.rows, series.frame_times_ns, strict=True):
            told = cells[int(line) - 2]["MsBetweenAppStart"]
            told_ns = 0 if told == "NA" else round(float(told) * 1e6)
            if told_ns != int(time_ns):
                return False
    return True


def _displays_agree(older: Capture, newer: Capture) -> tuple[int, int]:
    """How often a time on screen of v2 is the next display change of the default.

    Returns:
        Those that are equal, and all.
    """
    same = total = 0
    for series in _parts(older, Event.DISPLAY):
        twin = [
            other
            for other in _parts(newer, Event.DISPLAY)
            if (other.process_id, other.swapchain)
            == (series.process_id, series.swapchain)
        ]
        if not twin:
            continue
        ours, theirs = series.frame_times_ns, twin[0].frame_times_ns
        assert ours is not None
        assert theirs is not None
        # The first display's own change may be known or not.
        best = 0, 0
        for later in (theirs[1:], theirs):
            count = min(len(ours), len(later))
            best = max(best, (int((ours[:count] == later[:count]).sum()), count))
        same, total = same + best[0], total + best[1]
    return same, total


def presentmon(table: Table, folder: Path, case: str, counts: list[int]) -> None:
    """One trace in three schemas: the same presents, frame times and fates."""
    kinds = ("v1", "v2", "default")
    paths = {k: folder / f"presentmon/gold_{case}_{k}.csv" for k in kinds}
    captures = {kind: read_capture(path) for kind, path in paths.items()}
    sizes = [
        sum(map(len, _parts(captures[kind], Event.PRESENT, Event.CPU_START)))
        for kind in kinds
    ]
    table.check(case, f"rows {sizes}, told {counts}", sizes == counts)
    old = _by_stamp(paths["v1"], captures["v1"], "QPCTime")
    new = _by_stamp(paths["default"], captures["default"], "TimeInQPC")
    same = sum(old.get(key) == value for key, value in new.items())
    words = f"v1 = default: frame time and fate of {same} of {len(new)} presents"
    table.check(case, words, same == len(new))
    agree = _starts_agree(folder, case, captures["v2"])
    table.check(case, f"v2.FrameTime = default.MsBetweenAppStart, {sizes[1]}", agree)
    shown, all_shown = _displays_agree(captures["v2"], captures["default"])
    words = f"v2.DisplayedTime = default's next display change, {shown} of {all_shown}"
    table.check(case, words, shown == all_shown)


def perfdog(table: Table, folder: Path, name: str, oracle: dict[str, Any]) -> None:
    """PerfDog's janks, from the frame times alone."""
    found = {f.name: f.value for f in read_series(folder / name).figures("perfdog")}
    told = (oracle["jank_total"], oracle["big_jank_total"])
    counted = (found["Jank"], found["BigJank"])
    table.check(name, f"janks {counted}, told {told}", counted == told)


def units(table: Table, expected: dict[str, Any]) -> None:
    """Values that tools' own tests and pages state."""

    def of(tool: str, ms: list[float]) -> dict[str, float]:
        times = FrameTimes(
            frame_times_ns=(np.array(ms) * 1e6).astype(np.int64), end_ns=0
        )
        return {figure.name: figure.value for figure in figures_of(times, tool)}

    stutter, integral, _ = expected["capframex_unit_values"]["cases"]
    found = of("capframex", stutter["seq"])["Stuttering count"]
    told = stutter["stutter_count_pct"]
    table.check("capframex", f"stuttering count {found}, told {told}", found == told)
    found = 1000 / of("capframex", integral["seq"])["1% Low Integral"]
    told = integral["integral_p99"]
    table.check("capframex", f"integral {found} ms, told {told}", found == told)
    example = expected["cleanmeter_example"]
    ms = [8.0] * 999 + [200.0]
    for name, found in (
        ("integral_1pct_fps", of("capframex", ms)["1% Low Integral"]),
        ("avg_worst_1pct_fps", of("mangohud:0.7", ms)["1% Min FPS"]),
        ("percentile_1pct_fps", of("presentmon", ms)["1st Percentile FPS"]),
    ):
        told = example[name]
        words = f"{name} {found:.2f}, told {told}"
        table.check("one hitch", words, round(found, 1) == told)


def webrtc(table: Table, folder: Path, name: str, oracle: dict[str, Any]) -> None:
    """The spread of a poll's inter-frame delays."""
    first = oracle["first_poll"]
    poll = Poll(
        "first",
        0.0,
        (
            ("framesDecoded", first["frames"]),
            ("totalInterFrameDelay", first["totalInterFrameDelay"]),
            ("totalSquaredInterFrameDelay", first["totalSquaredInterFrameDelay"]),
        ),
    )
    found = inter_frame_ms(poll)
    told = first["std_ms"]
    agrees = found is not None and abs(found[1] - told) < 1e-6
    table.check(name, f"mean, spread {found}, told {told}", agrees)


def main() -> int:
    """Check every file and every oracle."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    expected = json.loads((folder / "EXPECTED.json").read_text())
    table = Table()
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".csv", ".json", ".txt") or path.parent == folder:
            continue
        name = str(path.relative_to(folder))
        try:
            capture = read_capture(path)
        except VeoError as error:
            table.check(name, str(error), "golden.json" in name)
            continue
        sizes = (
            f"{sum(map(len, capture.series))} stamps in {len(capture.series)} series"
        )
        table.check(name, f"{capture.format} {capture.version}, {sizes}", True)
    checks = {"frameview/": frameview, "misc/perfdog": perfdog, "webrtc/": webrtc}
    for name, oracle in expected.items():
        for start, run in checks.items():
            if name.startswith(start) and (folder / name).exists():
                run(table, folder, name, oracle)
    units(table, expected)
    for case, counts in expected["presentmon/gold"]["rows"].items():
        if (folder / f"presentmon/gold_{case}_v1.csv").exists():
            presentmon(table, folder, case, counts)
    return int(table.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
