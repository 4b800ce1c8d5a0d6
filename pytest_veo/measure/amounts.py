"""How much growth of each counter means what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_veo.memory.leak import deltas
from pytest_veo.memory.snapshot import Rung
from pytest_veo.units import Unit


if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_veo.memory.snapshot import Counter


ARENA_BYTES = 1 << 20
"""Python's allocator maps and unmaps memory in pieces of this size, as it likes."""
MOST_HANDLES = 40
"""Descriptors, threads or children that confirming may pile up."""
MOST_BYTES = 256 << 20
"""Memory that confirming may pile up."""


SMALL_BYTES = float(16 << 10)
"""Growth of the native heap a run that may come out of an allocator's own stock."""


def floor_of(counter: Counter, series: Sequence[int]) -> float:
    """Mean growth a run below which a counter is called flat."""
    if counter.key == "host.heap":
        return 24.0
    if counter.key == "host.python_blocks":
        return 0.75
    if counter.key == "host.mapped":
        arenas_only = all(change % ARENA_BYTES == 0 for change in deltas(series))
        return 0.3 * ARENA_BYTES if arenas_only else 4096.0
    if counter.rung is Rung.DRIVER or not counter.exact:
        return float(max(counter.step, 4096) if counter.unit is Unit.BYTES else 1)
    return 0.1 if counter.unit is Unit.COUNT else 1.0


def large_of(counter: Counter) -> float | None:
    """Even growth a run from which four runs suffice."""
    if counter.key == "host.python_blocks":
        return 500.0
    if counter.unit is Unit.COUNT:
        return None
    if counter.device == "host":
        return float(64 << 10)
    return float(counter.step)


def tiny_of(counter: Counter) -> float:
    """Growth a run up to which very many runs are needed."""
    return {"host.python_blocks": 8.0, "host.heap": 512.0}.get(counter.key, 0.0)


def is_context(counter: Counter) -> bool:
    """Whether the counter is shown but never judged."""
    return counter.rung is Rung.DEVICE


def most_of(counter: Counter) -> int | None:
    """Growth that confirming may pile up; None: any."""
    if counter.rung is Rung.DEVICE:
        return None
    if counter.unit is Unit.BYTES:
        # A thread maps and reserves far more than it ever touches.
        return MOST_BYTES if counter.rung < Rung.DRIVER else 16 * MOST_BYTES
    return MOST_HANDLES if counter.always else None
