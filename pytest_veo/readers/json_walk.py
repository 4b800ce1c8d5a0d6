"""Numbers out of JSON documents, with the path of what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_veo.readers.numbers import MISSING
from pytest_veo.readers.source import Source


Object = dict[str, Any]

_MOST_OBJECTS = 5_000_000


def numbers(source: Source, values: Any, path: str) -> npt.NDArray[np.float64]:
    """A list of numbers as an array; null becomes NaN, as does "NaN" in quotes.

    Args:
        source: for messages.
        values: what the document has.
        path: where, as in `Runs[0].CaptureData.TimeInSeconds`.

    Raises:
        CaptureError: no list, or an entry that is no number.
    """
    if not isinstance(values, list):
        raise source.error(
            f"a list of numbers is missing: {_short(values)}", column=path
        )
    for index, value in enumerate(values):
        if isinstance(value, str) and value.lower() in MISSING:
            continue
        # True is an int to Python, but no number in a capture.
        if not isinstance(value, int | float | None) or isinstance(value, bool):
            place = f"{path}[{index}]"
            raise source.error(f"{_short(value)} is no number", column=place)
    array = np.array([_float(value) for value in values], np.float64)
    beyond = np.isinf(array)
    if beyond.any():
        place = f"{path}[{int(np.argmax(beyond))}]"
        raise source.error("a number beyond all measure", column=place)
    return array


def _float(value: float | str | None) -> float:
    if value is None or isinstance(value, str):
        return float("nan")
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def to_ns(
    source: Source, values: npt.NDArray[np.float64], scale: float, path: str
) -> npt.NDArray[np.int64]:
    """Numbers times `scale`, rounded to whole nanoseconds.

    Raises:
        CaptureError: one is missing, or beyond 63 bits.
    """
    with np.errstate(over="ignore"):
        scaled = values * scale
    bad = ~(np.abs(scaled) < 2.0**62)
    if bad.any():
        index = int(np.argmax(bad))
        shown = "no value" if np.isnan(values[index]) else f"{values[index]:g}"
        raise source.error(f"{shown}, where a time must be", column=f"{path}[{index}]")
    return np.rint(scaled).astype(np.int64)


def objects(document: Any) -> Iterator[tuple[str, Object]]:
    """Every object of a document with its path, parents first."""
    waiting: list[tuple[str, Any]] = [("", document)]
    seen = 0
    while waiting and seen < _MOST_OBJECTS:
        path, value = waiting.pop()
        seen += 1
        if isinstance(value, dict):
            yield path, value
            inner = [(f"{path}.{key}".lstrip("."), v) for key, v in value.items()]
        elif isinstance(value, list):
            inner = [(f"{path}[{i}]", v) for i, v in enumerate(value)]
        else:
            continue
        waiting.extend(
            pair for pair in reversed(inner) if isinstance(pair[1], dict | list)
        )


def text_of(mapping: Any, key: str) -> str:
    """A text of an object, or the empty one."""
    value = mapping.get(key) if isinstance(mapping, dict) else None
    return value if isinstance(value, str) else ""


def number_of(mapping: Object, key: str) -> float | None:
    """A finite number of an object, or None."""
    value = mapping.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = _float(value)
    return number if np.isfinite(number) else None


def is_json(source: Source) -> bool:
    """Whether the text begins like a JSON document."""
    if not source.is_text:
        return False
    first = next((line.strip() for line in source.head if line.strip()), "")
    return first[:1] in ("{", "[")


def head_has(source: Source, *keys: str) -> bool:
    """Whether all these keys appear in the head of a JSON text."""
    text = "\n".join(source.head)
    return all(f'"{key}"' in text for key in keys)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
