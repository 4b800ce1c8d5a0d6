"""Whether a line is a record whose fields every table and reader can hold."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from pytest_veo.archive.record import CounterRecord
from pytest_veo.archive.record import Record
from pytest_veo.errors import ArchiveError


_TEXTS = ("nodeid", "worker", "started_at", "test_outcome")
_COUNTER = operator.itemgetter(*CounterRecord._fields)
_COUNTER_KINDS = (str, str, str, int, int, int)
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def check_record(data: Mapping[str, Any]) -> None:
    """Refuse what is no record, or what no table's column can hold.

    Raises:
        ArchiveError: naming the field and its value.
    """
    # The counters are nearly all of it; they are looked at a column at a time.
    Record.from_dict({**data, "counters": ()})
    for name in _TEXTS:
        _check(name, data[name], str)
    _check("duration_ns", data["duration_ns"], int)
    _check("environment", data.get("environment", ""), str)
    verdict = data["verdict"]
    _check("runs", verdict.get("runs"), int)
    _check("reason", verdict.get("reason"), str)
    for finding in verdict["findings"]:
        _check("counter", finding["counter"], str)
        _check("device", finding["device"], str)
        _check("per_run", finding.get("per_run"), int, float)
    _check_counters(data["counters"])


def _check_counters(rows: Sequence[Mapping[str, Any]]) -> None:
    try:
        columns = tuple(zip(*map(_COUNTER, rows), strict=True))
        is_more = any(len(row) != len(_COUNTER_KINDS) for row in rows)
    except (KeyError, TypeError, AttributeError) as error:
        raise ArchiveError(f"no record: {type(error).__name__} {error}") from error
    if is_more:
        fields = ", ".join(CounterRecord._fields)
        raise ArchiveError(f"no record: a counter has more than {fields}")
    for name, kind, column in zip(
        CounterRecord._fields, _COUNTER_KINDS, columns, strict=False
    ):
        if {*map(type, column)} != {kind} or (
            kind is int and not _LEAST <= min(column) <= max(column) <= _MOST
        ):
            for value in column:
                _check(name, value, kind)


def _check(name: str, value: object, *kinds: type) -> None:
    # A truth value is an int to Python, and no number to a table.
    is_kind = type(value) in kinds
    if not is_kind or (type(value) is int and not _LEAST <= value <= _MOST):
        raise ArchiveError(f"no record: {name} is {value!r}")
