"""Marker arguments and ini lines into a budget, with errors that name the argument."""

from __future__ import annotations

import ast
import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from pytest_veo.errors import BadSetting
from pytest_veo.errors import FramesError
from pytest_veo.errors import VeoError
from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.series import Event
from pytest_veo.units import parse_ns


_FIELDS = {field.name: field for field in dataclasses.fields(JitterBudget)}
_HINTS = typing.get_type_hints(JitterBudget)
_MOST = 1e15
ARGUMENTS = tuple(name for name in _FIELDS if name != "warmup_ms")
"""What a marker or the ini may say. `warmup` takes frames, or a time as text."""


def budget_from(arguments: Mapping[str, object]) -> JitterBudget:
    """The budget that these arguments ask for.

    Args:
        arguments: as written in a marker.

    Raises:
        BadSetting: an argument is unknown, of the wrong kind, or contradicts another.
    """
    fields: dict[str, Any] = {}
    for name, value in arguments.items():
        if name not in ARGUMENTS:
            raise BadSetting(
                f"unknown argument {name!r}: use one of {', '.join(ARGUMENTS)}"
            )
        if value is not None:
            fields |= _read(name, value)
    return JitterBudget(**fields)


def read_lines(lines: Sequence[str]) -> dict[str, object]:
    """Arguments from ini lines such as `warmup = 30` and `max_over = (20, 0.01)`.

    Raises:
        BadSetting: a line is no `name = value`.
    """
    found: dict[str, object] = {}
    for line in lines:
        name, sign, text = line.partition("=")
        if not sign or not name.strip() or not text.strip():
            raise BadSetting(f"{line!r}: write name = value, e.g. warmup = 30")
        found[name.strip()] = _literal(text.strip())
    return found


def _literal(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _read(name: str, value: object) -> dict[str, Any]:
    if name == "warmup":
        return _warmup(value)
    if name == "event":
        return {name: _event(value)}
    if name == "baseline":
        names = value
        if isinstance(value, str):
            names = tuple(each.strip() for each in value.split(","))
        return {name: tuple(_sequence(name, names, str, None))}
    if name == "on_inconclusive":
        return {name: value}
    hint = _HINTS[name]
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    tuples = [kind for kind in kinds if typing.get_origin(kind) is tuple]
    if tuples:
        length = len(typing.get_args(tuples[0]))
        return {name: tuple(_sequence(name, value, float, length))}
    return {name: _number(name, value, whole=float not in kinds)}


def _warmup(value: object) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            return {"warmup_ms": parse_ns(value) / 1e6}
        except VeoError as error:
            raise BadSetting(f"warmup: {error}") from None
    return {"warmup": _number("warmup", value, whole=True)}


def _event(value: object) -> Event:
    try:
        return Event.of(str(value))
    except FramesError as error:
        raise BadSetting(f"event: {error}") from None


def _number(name: str, value: object, *, whole: bool) -> float:
    wanted = "a whole number" if whole else "a number"
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise BadSetting(f"{name}={value!r}: it must be {wanted}")
    _refuse_beyond_reason(name, value)
    return value


def _refuse_beyond_reason(name: str, value: float) -> None:
    # Infinities are refused where the argument's own range is known.
    if value not in (math.inf, -math.inf) and abs(value) > _MOST:
        raise BadSetting(f"{name} is beyond {_MOST:g}: that limits nothing")


def _sequence(
    name: str, value: object, kind: type, length: int | None
) -> tuple[Any, ...]:
    kinds = (int, float) if kind is float else (kind,)
    fits = isinstance(value, list | tuple) and all(
        isinstance(part, kinds) and not isinstance(part, bool) for part in value
    )
    if not fits or (length is not None and len(value) != length):  # type: ignore[arg-type]
        noun = "numbers" if kind is float else "names"
        many = f"{length} {noun}" if length is not None else noun
        raise BadSetting(f"{name}={value!r}: it must be {many} in brackets")
    parts: tuple[Any, ...] = tuple(value)  # type: ignore[arg-type]
    for part in parts if kind is float else ():
        _refuse_beyond_reason(name, part)
    return parts
