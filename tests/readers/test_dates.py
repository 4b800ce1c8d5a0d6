from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_veo.readers.dates import parse_date_time
from pytest_veo.readers.dates import parse_date_times


def at_once(cells: list[bytes]) -> list[int] | None:
    text = b"".join(cells)
    ends = np.cumsum([len(cell) for cell in cells])
    starts = np.concatenate(([0], ends[:-1]))
    read = parse_date_times(np.frombuffer(text, np.uint8), starts, ends)
    return None if read is None else [int(value) for value in read]


year_first = st.builds(
    lambda y, m, d, h, s, f: f"{y}-{m}-{d} {h}:{s:02}:59.{f:09}".encode(),
    st.integers(1970, 2199),
    st.integers(1, 12),
    st.integers(1, 31),
    st.integers(0, 23),
    st.integers(0, 59),
    st.integers(0, 999_999_999),
)
day_first = st.builds(
    lambda y, m, d, h: f"{d:02}-{m:02}-{y} {h:02}:00:07".encode(),
    st.integers(1960, 2300),
    st.integers(0, 13),
    st.integers(0, 32),
    st.integers(0, 25),
)
odd = st.sampled_from([b"", b"NA", b"2024-01-01", b"24:00", b"2024-1-1 1:1:1x"])


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    st.one_of(
        st.lists(year_first, min_size=1, max_size=6),
        st.lists(day_first, min_size=1, max_size=6),
        st.lists(st.one_of(year_first, day_first, odd), min_size=1, max_size=4),
    )
)
def test_a_column_is_read_as_its_cells_are(cells: list[bytes]) -> None:
    read = at_once(cells)
    one_by_one = [parse_date_time(cell) for cell in cells]
    if read is None:
        return
    assert read == one_by_one


@pytest.mark.parametrize(
    "cells",
    [
        pytest.param([b"31-12-2023 23:59:59", b"01-01-2024 00:00:00"], id="day first"),
        pytest.param(
            [b"2024-1-5 9:05:07.016000000", b"2024-1-5 10:05:07.016000001"],
            id="an hour gains a digit",
        ),
    ],
)
def test_dates_written_alike_are_read_at_once(cells: list[bytes]) -> None:
    assert at_once(cells) == [parse_date_time(cell) for cell in cells]


def test_a_month_that_gains_a_digit_as_a_day_loses_one_is_left_to_others() -> None:
    assert at_once([b"2024-1-15 09:05:07", b"2024-11-5 09:05:07"]) is None
