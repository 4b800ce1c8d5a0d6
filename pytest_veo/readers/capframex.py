"""CapFrameX: a JSON document with one or several runs, or its older CSV."""

from __future__ import annotations

from typing import Any
from typing import ClassVar

import numpy as np

from pytest_veo.frames.series import MISSING_NS
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.readers.capture import Capture
from pytest_veo.readers.capture import CapturedSeries
from pytest_veo.readers.json_walk import head_has
from pytest_veo.readers.json_walk import is_json
from pytest_veo.readers.json_walk import numbers
from pytest_veo.readers.json_walk import text_of
from pytest_veo.readers.json_walk import to_ns
from pytest_veo.readers.presentmon import names_of
from pytest_veo.readers.presentmon import read_presents
from pytest_veo.readers.presents import Meaning
from pytest_veo.readers.presents import Owner
from pytest_veo.readers.presents import Presents
from pytest_veo.readers.source import Source
from pytest_veo.readers.swapchains import series_of
from pytest_veo.readers.table import open_sheet


_FACTS = ("GPU", "GPUDriverVersion", "Processor", "OS", "ApiInfo", "Comment")


class CapFrameXReader:
    """`CapFrameX-*.json`, and CSV files with a `//Key=Value` preamble."""

    name: ClassVar[str] = "capframex"

    def claims(self, source: Source) -> bool:
        """Runs with capture data, or the preamble above PresentMon's names."""
        if is_json(source):
            # Tens of thousands of sensor values may stand before the frames.
            signs = ("CaptureData", "SensorData", "SensorData2", "PresentMonRuntime")
            return head_has(source, "Runs") and any(
                head_has(source, sign) for sign in signs
            )
        if not source.is_text or not source.head[0].startswith("//"):
            return False
        header = _header_line(source)
        return header is not None and names_of(open_sheet(source, header)) is not None

    def read(self, source: Source) -> Capture:
        """Every run alone: a file with several is an aggregation."""
        if not is_json(source):
            return _read_csv(source)
        document = source.document()
        runs = document.get("Runs") if isinstance(document, dict) else None
        if not isinstance(runs, list) or not runs:
            raise source.error("no runs in the capture", column="Runs")
        notes: list[str] = []
        facts = document.get("Info")
        process = text_of(facts, "ProcessName")
        series: list[CapturedSeries] = []
        for number, run in enumerate(runs):
            data = run.get("CaptureData") if isinstance(run, dict) else None
            path = f"Runs[{number}].CaptureData"
            if not isinstance(data, dict):
                raise source.error("a run without capture data", column=path)
            name = process if len(runs) == 1 else f"{process} run {number + 1}"
            series.extend(_read_run(source, data, path, Owner(name.strip()), notes))
        if len(runs) > 1:
            notes.append(f"{len(runs)} runs in one file: each is a series of its own")
        return Capture(
            file=source.name,
            format=self.name,
            version=text_of(facts, "AppVersion"),
            series=tuple(series),
            notes=tuple(notes),
            facts=tuple((k, text_of(facts, k)) for k in _FACTS if text_of(facts, k)),
        )


def _read_run(
    source: Source,
    data: dict[str, Any],
    path: str,
    owner: Owner,
    notes: list[str],
) -> tuple[CapturedSeries, ...]:
    stamps = _times(source, data, path, "TimeInSeconds")
    intervals = _times(source, data, path, "MsBetweenPresents")
    if stamps is None or intervals is None:
        missing = "TimeInSeconds" if stamps is None else "MsBetweenPresents"
        raise source.error("not there", column=f"{path}.{missing}")
    presents = Presents(
        stamps_ns=to_ns(source, stamps, 1e9, f"{path}.TimeInSeconds"),
        lines=np.arange(len(stamps), dtype=np.int32),
        interval_ns=to_ns(source, intervals, 1e6, f"{path}.MsBetweenPresents"),
        **_displays(source, data, path, stamps),
    )
    if not len(stamps):
        raise source.error("a run without frames", column=path)
    for key, value in (("MsBetweenPresents", intervals), ("", presents.dropped)):
        if value is not None and len(value) != len(stamps):
            name = key or "Dropped"
            raise source.error(
                f"{len(value)} entries beside {len(stamps)} stamps",
                column=f"{path}.{name}",
            )
    meaning = Meaning(
        tool="capframex",
        event=Event.PRESENT,
        clock=Clock.TOOL,
        stamp_column=f"{path}.TimeInSeconds",
        interval_column=f"{path}.MsBetweenPresents",
        has_lines=False,
    )
    which = np.zeros(len(stamps), np.int64)
    return series_of(source, presents, [owner], which, meaning, notes)


def _times(
    source: Source, data: dict[str, Any], path: str, key: str
) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    values = data.get(key)
    return None if values is None else numbers(source, values, f"{path}.{key}")


def _displays(
    source: Source,
    data: dict[str, Any],
    path: str,
    stamps: np.ndarray[Any, np.dtype[np.float64]],
) -> dict[str, Any]:
    """The optional fields of `Presents`: lists may be null or left out."""
    found: dict[str, Any] = {}
    dropped = data.get("Dropped")
    lost = np.zeros(len(stamps), np.bool_)
    if isinstance(dropped, list):
        if not all(isinstance(entry, bool | int | None) for entry in dropped):
            raise source.error("an entry is no truth value", column=f"{path}.Dropped")
        lost = np.array([bool(entry) for entry in dropped], np.bool_)
        found["dropped"] = lost
    until = _times(source, data, path, "MsUntilDisplayed")
    if until is None or len(until) != len(stamps) or len(lost) != len(stamps):
        return found
    never = lost | np.isnan(until) | (until == 0)
    if not bool(never.all()):
        # What is beyond all measure stays so, and is refused as a stamp.
        shown = np.nan_to_num(stamps * 1e9 + np.clip(until, -1e12, 1e12) * 1e6)
        found["display_ns"] = np.where(
            never, MISSING_NS, np.rint(np.clip(shown, -4e18, 4e18)).astype(np.int64)
        )
    change = _times(source, data, path, "MsBetweenDisplayChange")
    if change is not None and len(change) == len(stamps):
        limited = np.clip(np.nan_to_num(change), 0, 1e12)
        found["display_interval_ns"] = np.rint(limited * 1e6).astype(np.int64)
    return found


def _header_line(source: Source) -> int | None:
    for number, line in enumerate(source.head[:100]):
        if line.strip() and not line.startswith("//"):
            return number
    return None


def _read_csv(source: Source) -> Capture:
    header = _header_line(source)
    assert header is not None
    sheet = open_sheet(source, header)
    found = names_of(sheet)
    assert found is not None
    capture = read_presents(source, sheet, found[1], "capframex", "csv")
    pairs = [line[2:].partition("=") for line in source.head[:header]]
    facts = tuple((k.strip(), v.strip()) for k, mark, v in pairs if mark and v.strip())
    return Capture(
        file=capture.file,
        format="capframex",
        version="csv",
        series=capture.series,
        notes=capture.notes,
        facts=facts,
    )


READER = CapFrameXReader()
