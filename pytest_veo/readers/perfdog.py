"""PerfDog's JSON: a row a second, each with the frame times of that second."""

from __future__ import annotations

from typing import Any
from typing import ClassVar

import numpy as np

from pytest_veo.frames.figures import Figure
from pytest_veo.frames.figures import perfdog_janks
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.readers.capture import Capture
from pytest_veo.readers.capture import CapturedSeries
from pytest_veo.readers.json_walk import Object
from pytest_veo.readers.json_walk import is_json
from pytest_veo.readers.json_walk import number_of
from pytest_veo.readers.json_walk import numbers
from pytest_veo.readers.json_walk import objects
from pytest_veo.readers.json_walk import to_ns
from pytest_veo.readers.present_checks import LONGEST_FRAME_NS
from pytest_veo.readers.source import Source


_TIMES = ("frametimes", "frametimesms")


def _plain(key: str) -> str:
    return key.lower().replace("_", "").replace(" ", "")


def _key_of(row: Object, *plain: str) -> str | None:
    return next((key for key in row if _plain(key) in plain), None)


class PerfDogReader:
    """Exports of PerfDog with `FrameTimes` lists."""

    name: ClassVar[str] = "perfdog"

    def claims(self, source: Source) -> bool:
        """Rows with lists of frame times and counts of janks."""
        if not is_json(source):
            return False
        text = _plain("\n".join(source.head))
        if '"datalist"' in text and '"jank"' in text:
            return True
        return any(f'"{key}"' in text for key in _TIMES) and '"bigjank"' in text

    def read(self, source: Source) -> Capture:
        """One series: every frame of every second, end to end."""
        rows = _rows(source)
        times: list[np.ndarray[Any, np.dtype[np.float64]]] = []
        without = 0
        janks = {"jank": 0.0, "bigjank": 0.0}
        for number, row in enumerate(rows):
            key = _key_of(row, *_TIMES)
            if key is None or row[key] is None:
                # A second in which nothing was drawn.
                without += 1
                continue
            times.append(numbers(source, row[key], f"row {number}.{key}"))
            for name in janks:
                column = _key_of(row, name)
                # -1 where the release does not count them.
                told = number_of(row, column) if column else None
                janks[name] += max(told or 0.0, 0.0)
        joined = np.concatenate([np.zeros(0), *times])
        if not joined.size:
            raise source.error("no frame time in any row")
        series, notes = _series(source, joined)
        if without:
            notes.append(f"{without} rows have no frame times and are left out")
        own = perfdog_janks(joined)
        counted = (int(own.jank.sum()), int(own.big.sum()))
        if counted != (janks["jank"], janks["bigjank"]):
            notes.append(
                f"the file counts {janks['jank']:g} janks and {janks['bigjank']:g} big "
                f"ones, the frame times {counted[0]} and {counted[1]}"
            )
        return Capture(
            file=source.name,
            format=self.name,
            series=(series,),
            summary=(
                Figure("Jank", janks["jank"], "frames"),
                Figure("BigJank", janks["bigjank"], "frames"),
            ),
            notes=tuple(notes),
        )


def _rows(source: Source) -> list[Object]:
    """The first list of rows that have frame times."""
    document = source.document()
    waiting = [document]
    waiting.extend(value for _, found in objects(document) for value in found.values())
    for value in waiting:
        if isinstance(value, list):
            rows = [_flat(row) for row in value if isinstance(row, dict)]
            if any(_key_of(row, *_TIMES) for row in rows):
                return rows
    raise source.error(
        "no list of rows with frame times: switch FrameTime on before recording"
    )


def _flat(row: Object) -> Object:
    """A row with the metrics of its groups (`{"FPS": {"Jank": 0, ...}}`) in it."""
    flat: Object = {}
    for key, value in row.items():
        # A group may have the name of what is in it: `{"BigJank": {"BigJank": 1}}`.
        flat.update(value if isinstance(value, dict) else {key: value})
    return flat


def _series(
    source: Source, times_ms: np.ndarray[Any, np.dtype[np.float64]]
) -> tuple[CapturedSeries, list[str]]:
    times_ns = to_ns(source, times_ms, 1e6, "frame times")
    if bool((times_ns <= 0).any()):
        place = int(np.argmax(times_ns <= 0))
        raise source.error(
            f"{times_ms[place]:g} ms is no frame time", column=f"frame times[{place}]"
        )
    if bool((times_ns >= LONGEST_FRAME_NS).any()):
        place = int(np.argmax(times_ns))
        raise source.error(
            f"a frame of {times_ms[place] / 3.6e6:.1f} hours",
            column=f"frame times[{place}]",
        )
    notes = [
        f"frame {place}: a frame of {times_ms[place] / 1000:.3g} s, kept as it is"
        for place in np.flatnonzero(times_ns >= 10 * 10**9)[:3]
    ]
    series = CapturedSeries(
        t_ns=np.cumsum(times_ns),
        event=Event.DISPLAY,
        clock=Clock.TOOL,
        name="frames",
        source=source.name,
        tool="perfdog",
        frame_times_ns=times_ns,
    )
    return series, notes


READER = PerfDogReader()
