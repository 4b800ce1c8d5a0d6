"""Frame captures of other tools, one format a file."""

from __future__ import annotations

from pytest_veo.readers.capture import Capture
from pytest_veo.readers.capture import CapturedSeries
from pytest_veo.readers.registry import Reader
from pytest_veo.readers.registry import read_capture
from pytest_veo.readers.registry import read_frames
from pytest_veo.readers.registry import read_series
from pytest_veo.readers.registry import register_reader


__all__ = [
    "Capture",
    "CapturedSeries",
    "Reader",
    "read_capture",
    "read_frames",
    "read_series",
    "register_reader",
]
