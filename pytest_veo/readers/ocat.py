"""OCAT: PresentMon 1.x rows; what the machine is stands in the first row only."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from pytest_veo.readers.capture import Capture
from pytest_veo.readers.presentmon import names_of
from pytest_veo.readers.presentmon import read_presents
from pytest_veo.readers.source import Source
from pytest_veo.readers.table import open_sheet
from pytest_veo.readers.table import split_line


_FACTS = (
    "Motherboard",
    "OS",
    "Processor",
    "System RAM",
    "Base Driver Version",
    "Driver Package",
    "GPU",
)


class OcatReader:
    """`OCAT-*.csv`."""

    name: ClassVar[str] = "ocat"

    def claims(self, source: Source) -> bool:
        """PresentMon's names and OCAT's columns about the machine."""
        if not source.is_text:
            return False
        sheet = open_sheet(source)
        return sheet.has("Motherboard", "Processor") and names_of(sheet) is not None

    def read(self, source: Source) -> Capture:
        """Presents and displays, every process and swapchain apart."""
        sheet = open_sheet(source)
        found = names_of(sheet)
        assert found is not None
        first = split_line(source.head[sheet.header_line + 1], sheet.delimiter)
        # A second GPU's cells may stand under no name.
        unnamed = ("",) * (len(first) - len(sheet.header))
        sheet = dataclasses.replace(sheet, header=sheet.header + unnamed)
        capture = read_presents(source, sheet, found[1], self.name, found[0])
        cells = dict(zip(sheet.header, first, strict=False))
        facts = tuple((name, cells[name]) for name in _FACTS if cells.get(name))
        return dataclasses.replace(capture, facts=facts)


READER = OcatReader()
