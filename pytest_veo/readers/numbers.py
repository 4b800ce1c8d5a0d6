"""Decimal numbers in a block of text, all cells of a column at once.

A cell is a pair of positions in the block. Digits are taken eight at a time as one
64-bit word, so that a column costs a few array operations instead of a call per
cell. A number is kept as whole digits and a count of decimals: `16.4754` is
(164754, 4), which turns into nanoseconds without a rounding of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from decimal import InvalidOperation

import numpy as np
import numpy.typing as npt


Positions = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

PAD = 32
"""Bytes that must lie before the first and after the last cell of a block."""

MISSING = ("", "na", "n/a", "nan", "-nan", "null", "none", "-", "--")
"""Spellings of "no value", compared without case."""

_ASCII_ZEROS = np.uint64(0x3030303030303030)
_HIGH_BITS = np.uint64(0x8080808080808080)
_BEYOND_NINE = np.uint64(0x7676767676767676)
"""Added to a byte of 10 or more, it sets the byte's highest bit."""
_LOWER = np.uint64(0x2020202020202020)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_UPPER_BYTES = np.array(
    [0] + [(2**64 - 1) << (64 - 8 * n) & (2**64 - 1) for n in range(1, 9)], np.uint64
)
"""Masks of the 0 to 8 uppermost bytes of a word."""
LOWER_BYTES = np.array([2 ** (8 * n) - 1 for n in range(9)], np.uint64)
"""Masks of the 0 to 8 lowermost bytes of a word."""
_MOST_DIGITS = 18
_POWERS = 10 ** np.arange(_MOST_DIGITS + 1, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Decimals:
    """A column of decimal numbers: `digits / 10**decimals`.

    `missing` marks cells that say "no value"; `bad` those that are no number.
    """

    digits: Ints
    decimals: Ints
    missing: Mask
    bad: Mask


def words_of(raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """The eight bytes from every position on, as little-endian words (a view)."""
    return np.ndarray((len(raw) - 7,), np.dtype("<u8"), buffer=raw.data, strides=(1,))


def parse_decimals(
    raw: npt.NDArray[np.uint8], start: Positions, end: Positions, point: int
) -> Decimals:
    """Numbers from the cells `raw[start:end]`, which carry no blanks around them.

    Args:
        raw: the block's bytes, padded by `PAD` on both sides.
        start: where each cell begins.
        end: where each cell ends.
        point: the byte of the decimal mark, `.` or `,`.
    """
    words = words_of(raw)
    negative = (raw[start] == 0x2D) & (start < end)
    begin = start + negative if negative.any() else start
    digits, decimals, good = _parse_plain(raw, words, begin, end, point)
    np.negative(digits, out=digits, where=negative)
    missing = np.zeros(len(start), np.bool_)
    bad = ~good
    if bad.any():
        _explain(raw, start, end, point, digits, decimals, missing, bad)
    return Decimals(digits, decimals, missing, bad)


def _parse_plain(
    raw: npt.NDArray[np.uint8],
    words: npt.NDArray[np.uint64],
    begin: Positions,
    end: Positions,
    point: int,
) -> tuple[Ints, Ints, Mask]:
    """Digits and decimals of plain numbers, and which cells are such."""
    if not len(begin):
        return begin.copy(), begin.copy(), np.zeros(0, np.bool_)
    dot, tail = _find_point(raw, begin, end, point)
    if tail is not None and int((end - begin).max()) <= 8:
        return _parse_short(words, begin, end, tail)
    whole, whole_ok = _parse_digits(words, begin, dot)
    fraction_start = np.minimum(dot + 1, end)
    decimals = end - fraction_start
    total = (dot - begin) + decimals
    fraction, fraction_ok = np.zeros(len(end), np.int64), whole_ok
    if decimals.any():
        fraction, fraction_ok = _parse_digits(words, fraction_start, end)
    # Nineteen digits fit when they did not wrap: nanoseconds since 1970 do.
    fits = (total <= _MOST_DIGITS) | ((total == 19) & (decimals == 0) & (whole >= 0))
    good = whole_ok & fraction_ok & (total > 0) & fits
    digits = whole * _POWERS[np.minimum(decimals, _MOST_DIGITS)] + fraction
    return digits, decimals, good


def _parse_short(
    words: npt.NDArray[np.uint64], begin: Positions, end: Positions, tail: int
) -> tuple[Ints, Ints, Mask]:
    """Numbers of at most eight characters with `tail` decimals each."""
    word = words[end - 8]
    # Squeeze the mark out: what lies before it moves up by one byte.
    high = (_ALL << np.uint64(64 - 8 * tail)) if tail else np.uint64(0)
    word = (word & high) | ((word << np.uint64(8)) & ~high)
    length = end - begin - 1
    value, good = parse_word(word, length)
    return value.astype(np.int64), np.full(len(end), tail), good & (length > 0)


def _find_point(
    raw: npt.NDArray[np.uint8], begin: Positions, end: Positions, point: int
) -> tuple[Positions, int | None]:
    """Where each cell's decimal mark stands (its end where there is none).

    The second value is the number of decimals, when all cells have the same.
    """
    # Most tools print a fixed number of decimals: the first cell tells them all.
    last = bytes(raw[begin[0] : end[0]]).rfind(bytes([point]))
    if last >= 0:
        tail = int(end[0] - begin[0]) - last - 1
        guess = end - (tail + 1)
        if bool(((raw[guess] == point) & (guess >= begin)).all()):
            return guess, tail
    elif bool((raw[begin] != point).all()) and _are_digits(raw, begin, end):
        return end, None
    marks = np.flatnonzero(raw == point)
    if not len(marks):
        return end, None
    found = marks[np.minimum(np.searchsorted(marks, begin), len(marks) - 1)]
    return np.where((found >= begin) & (found < end), found, end), None


def _are_digits(raw: npt.NDArray[np.uint8], begin: Positions, end: Positions) -> bool:
    """Whether these cells are short whole numbers, every one."""
    if int((end - begin).max()) > 8:
        return False
    return bool(_parse_eight(words_of(raw), end, end - begin)[1].all())


def _parse_digits(
    words: npt.NDArray[np.uint64], begin: Positions, end: Positions
) -> tuple[Ints, Mask]:
    """Whole numbers of up to 24 digits, and whether every byte was a digit."""
    length = end - begin
    longest = int(length.max(initial=0))
    value, good = _parse_eight(words, end, np.minimum(length, 8))
    total = value.astype(np.int64)
    step = 8
    while step < min(longest, 24):
        rest = np.clip(length - step, 0, 8)
        value, more = _parse_eight(words, end - step, rest)
        good &= more
        # Beyond 18 digits this wraps; such cells are read one by one afterwards.
        total += value.astype(np.int64) * _POWERS[min(step, _MOST_DIGITS)]
        step += 8
    return total, good


def _parse_eight(
    words: npt.NDArray[np.uint64], end: Positions, length: Positions
) -> tuple[npt.NDArray[np.uint64], Mask]:
    """The number in the `length` (0 to 8) bytes before `end`."""
    return parse_word(words[end - 8], length)


def parse_word(
    word: npt.NDArray[np.uint64], length: Positions | int
) -> tuple[npt.NDArray[np.uint64], Mask]:
    """The number in the upper `length` (0 to 8) bytes of a word."""
    digits, doubts = digits_of(word, length)
    return join_digits(digits), (doubts & _HIGH_BITS) == 0


def digits_of(
    word: npt.NDArray[np.uint64], length: Positions | int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """The values of the upper `length` bytes, 0 in the others, and doubts.

    `are_digits` tells of many doubts whether all of these bytes were digits.
    """
    digits = word ^ _ASCII_ZEROS
    digits &= _UPPER_BYTES[length]
    doubts = digits + _BEYOND_NINE
    doubts |= digits
    return digits, doubts


def are_digits(doubts: npt.NDArray[np.uint64]) -> bool:
    """Whether no byte of these words was anything but a digit."""
    return not int(np.bitwise_or.reduce(doubts)) & int(_HIGH_BITS)


def join_digits(
    digits: npt.NDArray[np.uint64], most: int = 8
) -> npt.NDArray[np.uint64]:
    """The numbers that words of eight digits spell, of which `most` are not 0.

    The words are written over.
    """
    digits *= np.uint64(2561)
    if most <= 2:
        digits >>= np.uint64(56)
        return digits
    digits >>= np.uint64(8)
    digits &= np.uint64(0x00FF00FF00FF00FF)
    digits *= np.uint64(6553601)
    if most <= 4:
        digits >>= np.uint64(48)
        return digits
    digits >>= np.uint64(16)
    digits &= np.uint64(0x0000FFFF0000FFFF)
    digits *= np.uint64(42949672960001)
    digits >>= np.uint64(32)
    return digits


def _explain(
    raw: npt.NDArray[np.uint8],
    start: Positions,
    end: Positions,
    point: int,
    digits: Ints,
    decimals: Ints,
    missing: Mask,
    bad: Mask,
) -> None:
    """Sort the cells that are no plain decimals: missing, unusual or bad."""
    odd = np.flatnonzero(bad)
    missing[odd] = spells_missing(raw, start[odd], end[odd])
    bad[odd] = ~missing[odd]
    digits[missing] = 0
    decimals[missing] = 0
    for index in np.flatnonzero(bad):
        cell = bytes(raw[start[index] : end[index]])
        if point != 0x2E:
            # A point in a file of decimal commas separates thousands: no number.
            cell = cell.replace(b".", b"?").replace(bytes([point]), b".")
        read = parse_unusual(cell)
        if read is not None:
            digits[index], decimals[index] = read
            bad[index] = False


def spells_missing(
    raw: npt.NDArray[np.uint8], start: Positions, end: Positions
) -> Mask:
    """Which cells say "no value"."""
    length = end - start
    word = words_of(raw)[start]
    text = (word | _LOWER) & LOWER_BYTES[np.clip(length, 0, 8)]
    wanted = [int.from_bytes(s.encode(), "little") for s in MISSING]
    # A dash has the bit of lower case already; so has the slash.
    found = np.isin(text, np.array(wanted, np.uint64))
    return np.asarray(found & (length <= 8), np.bool_)


def parse_unusual(cell: bytes) -> tuple[int, int] | None:
    """Digits and decimals of `1.00327e-05`, `+3` or twenty digits; else None."""
    if len(cell) > 64 or b"_" in cell:
        return None
    try:
        number = Decimal(cell.decode("ascii"))
    except (InvalidOperation, UnicodeDecodeError):
        return None
    if not number.is_finite():
        return None
    if number.is_zero() or number.adjusted() < -40:
        return 0, 0
    if number.adjusted() > 40:
        return None
    sign, figures, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    value = int("".join(map(str, figures)))
    if exponent > 0:
        value, exponent = value * 10**exponent, 0
    if value >= 1 << 63:
        # More decimals than 63 bits hold: the last ones are rounded away.
        drop = len(str(value)) - _MOST_DIGITS
        if drop > -exponent:
            return None
        value, exponent = round(Decimal(value).scaleb(-drop)), exponent + drop
    return (-value if sign else value), -exponent


def scale(column: Decimals, exponent: int) -> tuple[Ints, Mask]:
    """`digits * 10**(exponent - decimals)`, rounded to whole numbers.

    Returns:
        The scaled numbers and a mask of those that do not fit into 63 bits.
    """
    if len(column.decimals) and not bool(np.ptp(column.decimals)):
        up = exponent - int(column.decimals[0])
        most = max(int(column.digits.max()), -int(column.digits.min()))
        if 0 <= up <= _MOST_DIGITS and most * 10**up < 1 << 62:
            none = np.zeros(len(column.digits), np.bool_)
            return column.digits * _POWERS[up], none
    return _scale_each(column, exponent)


def _scale_each(column: Decimals, exponent: int) -> tuple[Ints, Mask]:
    shift = exponent - column.decimals
    up = np.clip(shift, 0, _MOST_DIGITS)
    value = column.digits * _POWERS[up]
    size = np.abs(column.digits.astype(np.float64)) * _POWERS[up]
    overflow = ((shift > _MOST_DIGITS) & (column.digits != 0)) | (size > 9.2e18)
    if (shift < 0).any():
        value = _round_down(value, column.digits, shift)
    return value, overflow


def _round_down(value: Ints, digits: Ints, shift: Ints) -> Ints:
    down = shift < 0
    power = _POWERS[np.clip(-shift[down], 0, _MOST_DIGITS)]
    size = np.abs(digits[down])
    whole, rest = np.divmod(size, power)
    # `2 * rest` could wrap at 18 decimals; the difference cannot.
    rounded = whole + (rest >= power - rest)
    rounded[shift[down] < -_MOST_DIGITS] = 0
    value[down] = np.sign(digits[down]) * rounded
    return value


def to_floats(column: Decimals) -> npt.NDArray[np.float64]:
    """The numbers as floats, within one unit in the last place; NaN if missing."""
    power = np.power(10.0, np.minimum(column.decimals, 22))
    value = column.digits / power
    deep = column.decimals > 22
    if deep.any():
        value[deep] = column.digits[deep] * 10.0 ** -column.decimals[deep].astype(float)
    value[column.missing] = np.nan
    return np.asarray(value, np.float64)
