from __future__ import annotations

from decimal import Decimal
from decimal import InvalidOperation

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_veo.readers.numbers import MISSING
from pytest_veo.readers.numbers import PAD
from pytest_veo.readers.numbers import Decimals
from pytest_veo.readers.numbers import parse_decimals
from pytest_veo.readers.numbers import scale
from pytest_veo.readers.numbers import to_floats


def parse(cells: list[bytes], point: str = ".") -> Decimals:
    text = b"\n" * PAD
    start, end = [], []
    for cell in cells:
        start.append(len(text))
        text += cell
        end.append(len(text))
        text += b","
    raw = np.frombuffer(text + b"\n" * PAD, np.uint8)
    return parse_decimals(raw, np.array(start), np.array(end), ord(point))


plain = st.decimals(
    allow_nan=False,
    allow_infinity=False,
    places=6,
    min_value=-(10**11),
    max_value=10**11,
).map(lambda d: str(d).encode())
whole = st.integers(-(2**63) + 1, 2**63 - 1).map(lambda n: str(n).encode())
odd = st.sampled_from(
    [
        b"1.00327e-05",
        b"9.96739e+07",
        b"+3",
        b".5",
        b"5.",
        b"1..2",
        b"1.2.3",
        b"--1",
        b"-",
        b".",
        b"0x1F",
        b"1_000",
        b"inf",
        b"12:3",
        b"/",
        b"99999999999999999999",
        b"\xb2",
        b"1 2",
    ]
)
spelled = st.sampled_from([text.upper().encode() for text in MISSING] + [b"NaN", b"Na"])
junk = st.binary(min_size=1, max_size=12).map(
    lambda b: b.replace(b",", b"x").replace(b"\n", b"y").strip() or b"z"
)


def true_value(cell: bytes) -> Decimal | None:
    try:
        number = Decimal(cell.decode("ascii"))
    except (InvalidOperation, UnicodeDecodeError):
        return None
    return number if number.is_finite() and b"_" not in cell else None


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.lists(st.one_of(plain, whole, odd, spelled, junk), min_size=1, max_size=30))
def test_every_cell_is_its_number_or_missing_or_bad(cells: list[bytes]) -> None:
    read = parse(cells)
    for index, cell in enumerate(cells):
        if cell.decode("latin-1").lower() in MISSING:
            assert read.missing[index]
            assert not read.bad[index]
            continue
        value = true_value(cell)
        assert not read.missing[index]
        if value is None:
            assert read.bad[index], cell
        elif not read.bad[index]:
            got = Decimal(int(read.digits[index])).scaleb(-int(read.decimals[index]))
            assert abs(got - value) <= abs(value) * Decimal("1e-17"), cell
        else:
            assert abs(value) >= 2**63 or abs(value.adjusted()) > 17, cell


@pytest.mark.parametrize(
    ("cells", "nanoseconds"),
    [
        pytest.param([b"16.731", b"0.952"], [16_731_000, 952_000], id="fixed decimals"),
        pytest.param([b"4.18737", b"4.1106", b"4"], [4_187_370, 4_110_600, 4_000_000]),
        pytest.param([b"16.47540000000000"], [16_475_400], id="fourteen decimals"),
        pytest.param(
            [b"100.06489999999999"], [100_064_900], id="noise is rounded away"
        ),
        pytest.param([b"-0.5", b"-12.25"], [-500_000, -12_250_000], id="negative"),
        pytest.param([b"1e1", b"2"], [10_000_000, 2_000_000], id="exponent"),
    ],
)
def test_milliseconds_become_whole_nanoseconds(
    cells: list[bytes], nanoseconds: list[int]
) -> None:
    values, overflow = scale(parse(cells), 6)
    assert values.tolist() == nanoseconds
    assert not overflow.any()


def test_nanoseconds_since_1970_keep_every_digit() -> None:
    stamps = [1_705_401_984_127_313_001, 1_705_401_984_143_979_668]
    values, overflow = scale(parse([str(s).encode() for s in stamps]), 0)
    assert values.tolist() == stamps
    assert not overflow.any()


def test_a_number_beyond_63_bits_is_told_and_not_wrapped() -> None:
    _, overflow = scale(parse([b"12345678901"]), 9)
    assert overflow.all()
    assert parse([b"9999999999999999999"]).bad.all()


def test_a_decimal_comma_is_read_where_it_is_the_mark() -> None:
    values, _ = scale(parse_semicolon([b"16,731", b"8,25"]), 6)
    assert values.tolist() == [16_731_000, 8_250_000]
    assert parse_semicolon([b"16.731"]).bad.all()


def parse_semicolon(cells: list[bytes]) -> Decimals:
    text = b"\n" * PAD
    start, end = [], []
    for cell in cells:
        start.append(len(text))
        text += cell
        end.append(len(text))
        text += b";"
    raw = np.frombuffer(text + b"\n" * PAD, np.uint8)
    return parse_decimals(raw, np.array(start), np.array(end), ord(","))


def test_floats_are_those_python_reads() -> None:
    cells = [b"0.1", b"238.813", b"262.821", b"NA", b"2300.02"]
    floats = to_floats(parse(cells))
    assert floats[:3].tolist() == [0.1, 238.813, 262.821]
    assert np.isnan(floats[3])
    assert floats[4] == 2300.02
