"""Sizes and durations as text: the only parser and formatter of quantities.

Sizes are IEC (`4 MiB`); `MB` is refused, because half its readers are wrong.
"""

from __future__ import annotations

import enum
import re

from pytest_veo.errors import BadQuantity


class Unit(enum.Enum):
    """What an integer counts."""

    BYTES = "bytes"
    COUNT = "count"
    NANOSECONDS = "ns"

    # Counters are keys: enum's own hash is a function of Python's.
    __hash__ = object.__hash__


_SIZES = {
    "B": 1,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}
_TIMES_NS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_DECIMAL = {"kB": "KiB", "KB": "KiB", "MB": "MiB", "GB": "GiB", "TB": "TiB"}
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", re.ASCII)


def parse_bytes(text: str | int) -> int:
    """Bytes from `"64 KiB"`, `"0 B"` or a plain number.

    Raises:
        BadQuantity: the text is no size; the message shows a right one.
    """
    return _parse(text, _SIZES, "B", "a size such as '64 KiB'")


def parse_ns(text: str | float, default_unit: str = "s") -> int:
    """Nanoseconds from `"16.7 ms"`; a bare number is in `default_unit`.

    Raises:
        BadQuantity: the text is no duration; the message shows a right one.
    """
    if isinstance(text, float):
        text = repr(text)
    return _parse(text, _TIMES_NS, default_unit, "a duration such as '16.7 ms'")


def _parse(text: str | int, units: dict[str, int], bare: str, wanted: str) -> int:
    if isinstance(text, bool) or not isinstance(text, int | str):
        raise BadQuantity(f"{text!r}: write {wanted}")
    if isinstance(text, int) and text < 0:
        raise BadQuantity(f"{text}: write {wanted}, not below zero")
    found = _QUANTITY.fullmatch(str(text))
    if found is None:
        raise BadQuantity(f"{text!r}: write {wanted}")
    number, unit = found[1], found[2] or bare
    if unit in _DECIMAL and unit not in units:
        iec = _DECIMAL[unit]
        raise BadQuantity(f"{text!r}: write {iec} (binary), e.g. '{number} {iec}'")
    if unit not in units:
        allowed = ", ".join(units)
        raise BadQuantity(f"{text!r}: unknown unit {unit!r}, use one of {allowed}")
    if "." in number:
        return round(float(number) * units[unit])
    return int(number) * units[unit]


def format_bytes(value: float, *, signed: bool = False) -> str:
    """`1.5 MiB`; whole numbers below one KiB."""
    sign = "-" if value < 0 else "+" if signed else ""
    size = abs(value)
    if size < 1024:
        return f"{sign}{size:.0f} B" if size == int(size) else f"{sign}{size:.1f} B"
    unit = "B"
    for unit in _SIZES:
        if size / _SIZES[unit] < 1023.95 or unit == "TiB":
            break
    scaled = size / _SIZES[unit]
    whole = f"{scaled:.1f}".removesuffix(".0")
    return f"{sign}{whole} {unit}"


def format_ns(value: float) -> str:
    """`16.7 ms`; the unit that leaves one to three digits before the point."""
    size = abs(value)
    for unit, step in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        # What three digits would round up to a thousand is one of the next unit.
        if size >= step * (1 if unit == "us" else 0.9995):
            number = value / step
            return f"{number:.3g} {unit}" if abs(number) < 999.5 else f"{number:.0f} s"
    return f"{value:.0f} ns"


def format_count(value: float, *, signed: bool = False) -> str:
    """`12,345`, or one decimal when the value is no whole number."""
    sign = "+" if signed and value >= 0 else ""
    if isinstance(value, int):
        return f"{sign}{value:,}"
    text = f"{value:,.1f}".removesuffix(".0")
    return f"{sign}{'0' if text == '-0' else text}"


def format_value(value: float, unit: Unit, *, signed: bool = False) -> str:
    """A value of any unit, for people."""
    if unit is Unit.BYTES:
        return format_bytes(value, signed=signed)
    if unit is Unit.NANOSECONDS:
        return format_ns(value)
    return format_count(value, signed=signed)


def counted(count: int, one: str, many: str = "") -> str:
    """`1 run`, `1,200 runs`: `many` is for words that take more than an s."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
