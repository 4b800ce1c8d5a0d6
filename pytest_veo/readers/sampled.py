"""Whether the rows of a plain table are samples: what is beside the stamps tells.

A row a second with `FPS` 60 beside it is no frame of a second. The head of the file is
enough to see it.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics

from pytest_veo.readers.columns import Kind
from pytest_veo.readers.table import Sheet


_RATES = re.compile(
    r"(avg|average|current|mean)?[ _]?(fps|frame[ _]?rate)([ _]?\(?(fps|hz)\)?)?",
    re.IGNORECASE,
)
_MOST_ROWS = 400
_FEWEST_ROWS = 5
APART = 2.0
"""Rows that lie this many frames apart, or more, are samples."""


def rate_of(sheet: Sheet) -> str | None:
    """The column that tells frames a second, if there is one."""
    return next((name for name in sheet.header if _RATES.fullmatch(name)), None)


def frames_apart(
    sheet: Sheet, stamps: tuple[str, Kind], times: tuple[str, Kind] | None
) -> float | None:
    """How many frames lie between two rows, by the frame times told beside them.

    Args:
        sheet: the table.
        stamps: the column of stamps and its unit.
        times: a column of frame times and its unit; None: the column of rates.

    Returns:
        The median of the first rows; None where nothing is told.
    """
    rate = rate_of(sheet) if times is None else None
    told = times[0] if times else rate
    if told is None:
        return None
    at, beside = sheet.header.index(stamps[0]), sheet.header.index(told)
    rows = [
        (stamp, value)
        for line in sheet.source.head[sheet.header_line + 1 : -1][:_MOST_ROWS]
        if (stamp := _number(sheet, line, at)) is not None
        and (value := _number(sheet, line, beside)) is not None
        and value > 0
    ]
    if len(rows) < _FEWEST_ROWS:
        return None
    unit = 10.0 ** int(stamps[1].value)
    steps = [(b[0] - a[0]) * unit for a, b in itertools.pairwise(rows)]
    frames = [
        1e9 / value if times is None else value * 10.0 ** int(times[1].value)
        for _, value in rows
    ]
    return statistics.median(steps) / statistics.median(frames)


def _number(sheet: Sheet, line: str, place: int) -> float | None:
    cells = line.split(sheet.delimiter)
    if place >= len(cells):
        return None
    try:
        value = float(cells[place].strip(' "\r').replace(sheet.point, "."))
    except ValueError:
        # No value here; reading the column says so if one must be.
        return None
    return value if math.isfinite(value) else None
