"""NVIDIA FrameView's log: PresentMon's columns among a hundred of sensors."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from pytest_veo.readers.capture import Capture
from pytest_veo.readers.presentmon import names_of
from pytest_veo.readers.presentmon import read_presents
from pytest_veo.readers.source import Source
from pytest_veo.readers.table import open_sheet
from pytest_veo.readers.table import split_line


_OWN_COLUMNS = (
    "Render Queue Depth",
    "NV Pwr(W) (API)",
    "GPUOnlyPwr(W) (API)",
    "GPU0Util(%)",
    "PCAT Power Total(W)",
)
_FACTS = ("GPU", "CPU", "Resolution", "Runtime")


class FrameViewReader:
    """`FrameView_*_Log.csv`; the summary beside it has a reader of its own."""

    name: ClassVar[str] = "frameview"

    def claims(self, source: Source) -> bool:
        """PresentMon's names and one of FrameView's own."""
        if not source.is_text:
            return False
        sheet = open_sheet(source)
        own = any(sheet.has(name) for name in _OWN_COLUMNS)
        return own and names_of(sheet) is not None

    def read(self, source: Source) -> Capture:
        """Presents and displays, every process and swapchain apart."""
        sheet = open_sheet(source)
        found = names_of(sheet)
        assert found is not None
        _, names = found
        # FrameView writes NA where PresentMon 1.x wrote 0, and 0 where it did not know.
        names = dataclasses.replace(names, zero_is_missing=True)
        capture = read_presents(source, sheet, names, self.name, "log")
        first = split_line(source.head[sheet.header_line + 1], sheet.delimiter)
        cells = dict(zip(sheet.header, first, strict=False))
        facts = tuple((name, cells[name]) for name in _FACTS if cells.get(name))
        return dataclasses.replace(capture, facts=facts)


READER = FrameViewReader()
