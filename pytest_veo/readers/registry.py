"""The formats that can be read, and who reads a file: detection by content."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Protocol

from pytest_veo.errors import BadSetting
from pytest_veo.frames.series import Event
from pytest_veo.readers.capture import Capture
from pytest_veo.readers.capture import CapturedSeries
from pytest_veo.readers.source import Source
from pytest_veo.readers.source import open_source


class Reader(Protocol):
    """Reads one format.

    A reader looks at content, never at the file's name. `claims` is cheap: it looks
    at `source.head` or `source.magic` only.
    """

    name: str
    """One lower-case word, unique among readers."""

    def claims(self, source: Source) -> bool:
        """Whether this file is of this format."""

    def read(self, source: Source) -> Capture:
        """Read the file.

        Raises:
            CaptureError: what is wrong, with line and column.
        """


BUILT_IN = (
    # Binary formats, then texts from the most telling header to the least.
    "nsys",
    "video",
    "capframex",
    "perfdog",
    "macrobenchmark",
    "webrtc",
    "android",
    "obs",
    "summary",
    "afterburner",
    "mangohud",
    "frameview",
    "ocat",
    "presentmon",
    "plain",
)

_PACKED = (b"\x1f\x8b", b"PK\3\4", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"\x28\xb5/\xfd")
"""How gzip, zip, bzip2, xz, 7-zip and Zstandard begin."""

_added: list[Reader] = []


def register_reader(reader: Reader) -> None:
    """Add a format. The latest added is asked first, before the built-in ones.

    A reader of the same name replaces the earlier one.

    Raises:
        BadSetting: an object that is no reader.
    """
    name = getattr(reader, "name", None)
    if not isinstance(name, str) or not all(
        callable(getattr(reader, method, None)) for method in ("claims", "read")
    ):
        raise BadSetting(
            f"{reader!r} is no reader: it needs `name`, `claims(source)` and "
            f"`read(source)`"
        )
    _added[:] = [reader, *(old for old in _added if old.name != name)]


def unregister_reader(reader: Reader) -> None:
    """Take back what `register_reader` added; nothing where it is not there."""
    _added[:] = [other for other in _added if other is not reader]


def readers() -> tuple[Reader, ...]:
    """All readers, in the order in which they are asked."""
    built_in = tuple(_load(name) for name in BUILT_IN)
    return (*_added, *built_in)


def _load(name: str) -> Reader:
    reader: Reader = importlib.import_module(f"pytest_veo.readers.{name}").READER
    return reader


def read_capture(path: str | Path) -> Capture:
    """Read a capture file of any known format.

    Args:
        path: the file. Its name plays no part in telling the format.

    Returns:
        Everything the file holds: series, counters, the tool's own figures, and what
        was tolerated.

    Raises:
        CaptureError: no known format, or a file that is damaged; with line and column.
        MissingDependency: a video file, and PyAV is not installed.
    """
    source = open_source(path)
    for reader in readers():
        if reader.claims(source):
            return reader.read(source)
    if source.magic.startswith(_PACKED):
        raise source.error("a packed file: unpack it first")
    known = ", ".join(reader.name for reader in readers())
    first = source.head[0][:60] if source.head else source.magic[:16].hex(" ")
    hint = ""
    if re.search("time|frame|stamp", first, re.IGNORECASE):
        hint = "; a table of your own says the unit in a column's name: t_ms, frame_ms"
    raise source.error(
        f"no known capture format (it begins {first!r}{hint}); known are {known}"
    )


def read_frames(
    path: str | Path,
    *,
    process: str | int | None = None,
    swapchain: str | int | None = None,
    event: Event | str | None = None,
) -> tuple[CapturedSeries, ...]:
    """The frame series of a capture file, those with most frames first.

    Args:
        path: a capture of any known format.
        process: keep this program's series only: a name or a process id.
        swapchain: keep this swapchain only: its address.
        event: keep stamps of this event only, such as `present` or `display`.

    Raises:
        CaptureError: a file that cannot be read, that holds no frames (only totals),
            or none of those asked for.
    """
    capture = read_capture(path)
    return capture.select(process=process, swapchain=swapchain, event=event)


def read_series(
    path: str | Path,
    *,
    process: str | int | None = None,
    swapchain: str | int | None = None,
    event: Event | str | None = None,
) -> CapturedSeries:
    """The one series of a capture file that is meant; see `Capture.pick`."""
    return read_capture(path).pick(process=process, swapchain=swapchain, event=event)
