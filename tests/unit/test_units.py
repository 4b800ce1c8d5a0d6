from __future__ import annotations

import pytest

from pytest_veo.errors import BadQuantity
from pytest_veo.units import Unit
from pytest_veo.units import counted
from pytest_veo.units import format_bytes
from pytest_veo.units import format_count
from pytest_veo.units import format_ns
from pytest_veo.units import format_value
from pytest_veo.units import parse_bytes
from pytest_veo.units import parse_ns


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("0 B", 0),
        ("64 KiB", 64 << 10),
        ("64KiB", 64 << 10),
        ("  1.5 MiB ", 3 << 19),
        ("2 GiB", 2 << 30),
        ("1 TiB", 1 << 40),
        (4096, 4096),
    ],
)
def test_sizes_are_iec(text: str | int, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4 MB", "'4 MB': write MiB (binary), e.g. '4 MiB'"),
        ("4kB", "'4kB': write KiB (binary), e.g. '4 KiB'"),
        ("1.5 GB", "'1.5 GB': write GiB (binary), e.g. '1.5 GiB'"),
        ("4 mib", "'4 mib': unknown unit 'mib', use one of B, KiB, MiB, GiB, TiB"),
        ("", "'': write a size such as '64 KiB'"),
        ("many", "'many': write a size such as '64 KiB'"),
        ("-1 B", "'-1 B': write a size such as '64 KiB'"),
        ("1e6", "'1e6': write a size such as '64 KiB'"),
        (".5 KiB", "'.5 KiB': write a size such as '64 KiB'"),
        (-1, "-1: write a size such as '64 KiB', not below zero"),
        (True, "True: write a size such as '64 KiB'"),
        (1.5, "1.5: write a size such as '64 KiB'"),
        (None, "None: write a size such as '64 KiB'"),
    ],
)
def test_what_is_no_size_is_refused(text: object, message: str) -> None:
    with pytest.raises(BadQuantity) as caught:
        parse_bytes(text)  # type: ignore[arg-type]
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("16.7 ms", 16_700_000),
        ("2 s", 2_000_000_000),
        ("2", 2_000_000_000),
        (2, 2_000_000_000),
        (0.5, 500_000_000),
        ("5us", 5_000),
        ("7 ns", 7),
        ("1.5 min", 90_000_000_000),
        ("1 h", 3_600_000_000_000),
    ],
)
def test_durations_have_a_unit_or_are_seconds(text: str | float, ns: int) -> None:
    assert parse_ns(text) == ns


def test_a_bare_duration_may_mean_another_unit() -> None:
    assert parse_ns("3", default_unit="ms") == 3_000_000


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (0.3, "0.3 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1024 * 1024 - 1, "1 MiB"),
        (4 << 20, "4 MiB"),
        (-(3 << 29), "-1.5 GiB"),
        (5 << 50, "5120 TiB"),
    ],
)
def test_sizes_are_written_in_iec(size: float, text: str) -> None:
    assert format_bytes(size) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (999_400, "999 us"),
        (999_600, "1 ms"),
        (999_600_000, "1 s"),
        (999_600_000_000, "1000 s"),
        (-999_600, "-1 ms"),
        (1_500, "1.5 us"),
        (16_700_000, "16.7 ms"),
        (2_000_000_000, "2 s"),
        (123_000_000_000, "123 s"),
        (5_000_000_000_000, "5000 s"),
    ],
)
def test_durations_are_written_in_the_fitting_unit(ns: float, text: str) -> None:
    assert format_ns(ns) == text


@pytest.mark.parametrize(
    ("count", "signed", "text"),
    [
        (0, True, "+0"),
        (12345, False, "12,345"),
        (-3, True, "-3"),
        (7, True, "+7"),
        (2.25, False, "2.2"),
        (1.004, True, "+1"),
        (-0.01, True, "0"),
    ],
)
def test_counts_have_thousands(count: float, signed: bool, text: str) -> None:
    assert format_count(count, signed=signed) == text


@pytest.mark.parametrize(
    ("unit", "text"),
    [(Unit.BYTES, "+2 KiB"), (Unit.COUNT, "+2,048"), (Unit.NANOSECONDS, "2.05 us")],
)
def test_a_value_is_written_as_its_unit_asks(unit: Unit, text: str) -> None:
    assert format_value(2048, unit, signed=True) == text


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((0, "run"), "0 runs"),
        ((1, "run"), "1 run"),
        ((1200, "run"), "1,200 runs"),
        ((1, "test leaks", "tests leak"), "1 test leaks"),
        ((2, "test leaks", "tests leak"), "2 tests leak"),
    ],
)
def test_what_is_counted_is_one_or_many(
    words: tuple[int, str] | tuple[int, str, str], text: str
) -> None:
    assert counted(*words) == text
