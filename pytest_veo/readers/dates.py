"""Dates and times as tools write them, to the nanosecond."""

from __future__ import annotations

import calendar
import re


_YEAR_FIRST = re.compile(
    rb"(\d{4})-(\d{1,2})-(\d{1,2})[ T](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?Z?"
)
_DAY_FIRST = re.compile(
    rb"(\d{1,2})[-./](\d{1,2})[-./](\d{4}) "
    rb"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?"
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
