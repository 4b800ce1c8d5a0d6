"""Pairs of stamps of two clocks, from a table.

Column names say what the pairs are: `gpu_ns, cpu_ns` (taken together, with
`deviation_ns` where it is known), `gpu_ns, before_ns, after_ns` (the device's stamp
between two of the host's), `sent_ns, received_ns` (messages one way).
"""

from __future__ import annotations

from pathlib import Path

from pytest_veo.errors import CaptureError
from pytest_veo.errors import FramesError
from pytest_veo.frames.clock_fit import ClockFit
from pytest_veo.frames.clock_fit import fit_brackets
from pytest_veo.frames.clock_fit import fit_one_way
from pytest_veo.frames.clock_fit import fit_pairs
from pytest_veo.frames.series import Int64s
from pytest_veo.readers.columns import Kind
from pytest_veo.readers.columns import Wanted
from pytest_veo.readers.source import Source
from pytest_veo.readers.source import open_source
from pytest_veo.readers.table import Sheet
from pytest_veo.readers.table import open_sheet


_DEVICES = ("gpu_ns", "device_ns")
_HOSTS = ("cpu_ns", "host_ns")


def read_clock_fit(path: str | Path) -> ClockFit:
    """The line between two clocks, fitted to a table of pairs.

    Args:
        path: a text table; see the module for its columns, all in nanoseconds.

    Raises:
        CaptureError: a table without such columns, a cell that is no number, or pairs
            that no line can be fitted to.
    """
    source = open_source(path)
    if not source.is_text:
        raise source.error("no text: clock pairs are a table")
    try:
        return _fit(source, open_sheet(source))
    except CaptureError:
        raise
    except FramesError as error:
        raise source.error(str(error)) from error


def holds_pairs(sheet: Sheet) -> bool:
    """Whether a table tells of two clocks, and not of frames."""
    return sheet.first_of(*_DEVICES) is not None and (
        sheet.has("before_ns", "after_ns") or sheet.first_of(*_HOSTS) is not None
    )


def _fit(source: Source, sheet: Sheet) -> ClockFit:
    if sheet.has("sent_ns", "received_ns"):
        return fit_one_way(*_read(sheet, "sent_ns", "received_ns"))
    device = sheet.first_of(*_DEVICES)
    if device is not None and sheet.has("before_ns", "after_ns"):
        return fit_brackets(*_read(sheet, device, "before_ns", "after_ns"))
    host = sheet.first_of(*_HOSTS)
    if device is None or host is None:
        raise source.error(
            "no clock pairs: name the columns gpu_ns, cpu_ns or gpu_ns, before_ns, "
            "after_ns or sent_ns, received_ns",
            line=1,
        )
    if sheet.has("deviation_ns"):
        device_ns, host_ns, deviation = _read(sheet, device, host, "deviation_ns")
        return fit_pairs(device_ns, host_ns, deviation_ns=deviation)
    return fit_pairs(*_read(sheet, device, host))


def _read(sheet: Sheet, *names: str) -> list[Int64s]:
    table = sheet.read(Wanted(n, Kind.NANOSECONDS, required=True) for n in names)
    return [table[name].values for name in names]
