"""Dates and times as tools write them, to the nanosecond."""

from __future__ import annotations

import calendar
import re

import numpy as np
import numpy.typing as npt

from pytest_veo.readers.numbers import Positions


_YEAR_FIRST = re.compile(
    rb"(\d{4})-(\d{1,2})-(\d{1,2})[ T](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?Z?"
)
_DAY_FIRST = re.compile(
    rb"(\d{1,2})[-./](\d{1,2})[-./](\d{4}) "
    rb"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?"
)


_LONGEST = 40
"""No date and time is longer."""
_MOST_SHAPES = 4
"""Lengths of dates in one block: hours, days and months gain a digit."""


def parse_date_times(
    raw: npt.NDArray[np.uint8], start: Positions, end: Positions
) -> npt.NDArray[np.int64] | None:
    """A column of dates and times that are written alike, all at once.

    Args:
        raw: the block's bytes.
        start: where each cell begins.
        end: where each cell ends.

    Returns:
        Nanoseconds as `parse_date_time` gives them; None where cells of one length
        differ in more than their digits, or one is no date.
    """
    length = end - start
    most = int(length.max(initial=0))
    sizes = np.flatnonzero(np.bincount(length)) if most <= _LONGEST else length
    if not 0 < len(sizes) <= _MOST_SHAPES:
        return None
    values = np.zeros(len(start), np.int64)
    for size in sizes.tolist():
        rows = np.flatnonzero(length == size)
        cells = raw[start[rows][:, None] + np.arange(size)]
        read = _parse_alike(cells)
        if read is None:
            return None
        values[rows] = read
    return values


def _parse_alike(cells: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64] | None:
    """Cells of one length, each a row of bytes, that have the first one's shape."""
    first = cells[0].tobytes()
    year_first = _YEAR_FIRST.fullmatch(first)
    found = year_first or _DAY_FIRST.fullmatch(first)
    if found is None:
        return None
    is_digit = (cells[0] >= 0x30) & (cells[0] <= 0x39)
    digits = cells[:, is_digit]
    others = cells[:, ~is_digit] == cells[0, ~is_digit]
    if not (others.all() and ((digits >= 0x30) & (digits <= 0x39)).all()):
        return None

    def number(group: int) -> npt.NDArray[np.int64]:
        total = np.zeros(len(cells), np.int64)
        for column in range(*found.span(group)):
            total = total * 10 + (cells[:, column] - 0x30)
        return total

    order = (1, 2, 3) if year_first else (3, 2, 1)
    y, m, d = (number(group) for group in order)
    hour, minute, second = (number(group) for group in (4, 5, 6))
    usable = (y >= 1970) & (y < 2200) & (m >= 1) & (m <= 12) & (d >= 1) & (d <= 31)
    if not (usable & (hour < 24) & (minute < 60) & (second < 61)).all():
        return None
    months = ((y - 1970) * 12 + m - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]").astype(np.int64) + d - 1
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    fraction = number(7) if found[7] else np.zeros(len(cells), np.int64)
    return np.asarray(
        seconds * 10**9 + fraction * 10 ** (9 - len(found[7] or b"")), np.int64
    )


def parse_date_time(cell: bytes) -> int | None:
    """Nanoseconds since 1970 of `2024-1-31 9:05:07.123456789` or `31-01-2024 09:05:07`.

    Zeros in front may be left out. The zone is not known: the time is taken as it
    stands. None for text that is no date and time.
    """
    if found := _YEAR_FIRST.fullmatch(cell):
        year, month, day, *clock, fraction = found.groups()
    elif found := _DAY_FIRST.fullmatch(cell):
        day, month, year, *clock, fraction = found.groups()
    else:
        return None
    y, m, d = int(year), int(month), int(day)
    hour, minute, second = map(int, clock)
    if not (
        1 <= m <= 12 and 1 <= d <= 31 and hour < 24 and minute < 60 and second < 61
    ):
        return None
    if not 1970 <= y < 2200:
        return None
    seconds = calendar.timegm((y, m, d, hour, minute, second))
    return seconds * 10**9 + int((fraction or b"0").ljust(9, b"0"))
