"""Whether a stutter is named that was put into real captures, and nothing in their own.

Every series of every capture is looked at as it is; those of six beats and more also
with a longer frame on each beat (8 ms, once a second), from ten phases of it, in two
ways: all later frames move, or the next one makes up for the time. Passed over are
captures of counters only, series that are samples of a slower log, and those of fewer
than 64 frames.

Run: python benchmarks/frames_captures.py FOLDER [--period-ms 1000] [--extra-ms 8]
The exit status is 1 if a series raises an alarm as it is.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from pathlib import Path

from pytest_veo.errors import CaptureError
from pytest_veo.frames.rhythm import Stutter
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.series import Int64s
from pytest_veo.frames.stats import frame_stats
from pytest_veo.readers import read_capture


MS = 1_000_000
MIN_FRAMES = 64
MIN_SPAN_NS = 6_000 * MS
MIN_BEATS = 6
PHASES = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Beat:
    """What is put into the series."""

    period_ns: int
    extra_ns: int


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """What was found in one series."""

    name: str
    frames: int
    span_s: float
    alarm: str
    """What is named in the series as it is; empty: nothing."""
    named: tuple[float, ...]
    """Periods in ms that were named after an injection."""
    tried: int


def all_series(folder: Path) -> Iterator[tuple[str, Int64s]]:
    """Frame times in nanoseconds of every series that tells of each frame."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        try:
            capture = read_capture(path)
        except CaptureError as error:
            print(f"passed over {path.name}: {str(error).partition('(')[0]}")
            continue
        for series in capture.series:
            times = series.intervals_ns
            if not series.sampled and times.size >= MIN_FRAMES:
                yield f"{path.stem}: {series.name} {series.event}", times


def with_stutter(times: Int64s, beat: Beat, phase_ns: int, *, made_up: bool) -> Int64s:
    """One frame longer in every period, from `phase_ns` on."""
    longer = times.copy()
    now, due, owed = 0, phase_ns, 0
    for place, frame in enumerate(times.tolist()):
        longer[place] = max(frame // 10, frame - owed)
        owed = 0
        if now + longer[place] >= due:
            longer[place] += beat.extra_ns
            # A beat that falls into a longer freeze is lost, not made up for.
            gone = (now + int(longer[place]) - due) // beat.period_ns
            due += beat.period_ns * (1 + gone)
            owed = min(beat.extra_ns, int(0.4 * frame)) if made_up else 0
        now += int(longer[place])
    return longer


def stutter_of(times: Int64s) -> Stutter | None:
    series = FrameSeries.from_intervals(
        times, event=Event.PRESENT, clock=Clock.TOOL, resolution_ns=1000
    )
    return frame_stats(series).stutter


def look_at(name: str, times: Int64s, beat: Beat) -> Row:
    alarm = stutter_of(times)
    named, tried = [], 0
    if times.sum() >= max(MIN_SPAN_NS, MIN_BEATS * beat.period_ns):
        for phase in range(PHASES):
            for made_up in (False, True):
                tried += 1
                phase_ns = (2 * phase + 1) * beat.period_ns // (2 * PHASES)
                longer = with_stutter(times, beat, phase_ns, made_up=made_up)
                found = stutter_of(longer)
                if found and abs(found.period_ns / beat.period_ns - 1) < 0.01:
                    named.append(found.period_ns / MS)
    said = "" if alarm is None else f"every {alarm.period_ns / MS:.0f} ms"
    span_s = float(times.sum()) / 1e9
    return Row(name, int(times.size), span_s, said, tuple(named), tried)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--period-ms", type=int, default=1000)
    parser.add_argument("--extra-ms", type=int, default=8)
    given = parser.parse_args()
    beat = Beat(given.period_ms * MS, given.extra_ms * MS)
    rows = [look_at(*each, beat) for each in all_series(given.folder)]
    print("| series | frames | seconds | as it is | stutter named | periods in ms |")
    print("| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        periods = f"{min(row.named):.0f} to {max(row.named):.0f}" if row.named else "-"
        print(
            f"| {row.name} | {row.frames} | {row.span_s:.1f} | {row.alarm or '-'} | "
            f"{len(row.named)} of {row.tried} | {periods} |"
        )
    alarms = sum(bool(row.alarm) for row in rows)
    tried = sum(row.tried for row in rows)
    missed = tried - sum(len(row.named) for row in rows)
    long = sum(bool(row.tried) for row in rows)
    print(f"{alarms} false alarms in {len(rows)} series; in {long} of them {tried}")
    print(f"stutters were injected, {tried - missed} were named with their period")
    return int(alarms > 0)


if __name__ == "__main__":
    raise SystemExit(main())
