"""Limits that stand in code only: `if len(CACHE) > 256: CACHE.clear()`.

The functions beside a container are read, never called: one that compares the
container's length with a number, and takes entries out, keeps it small.
"""

from __future__ import annotations

import dis
import itertools
import types
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any


_REMOVING = frozenset(("clear", "pop", "popitem", "popleft"))
_REMOVING_OPS = frozenset(("DELETE_SUBSCR", "STORE_GLOBAL"))


def find(
    name: str, functions: Iterable[types.FunctionType], values: Mapping[str, object]
) -> tuple[int, str] | None:
    """The largest limit that code sets, and the function that does.

    Args:
        name: how the code calls the container: a global or an attribute.
        functions: the code beside it.
        values: what other names in the code may stand for.
    """
    found = [
        (limit, function.__qualname__)
        for function in functions
        for limit in _limits(function.__code__, name, values)
    ]
    return max(found, default=None)


def _limits(code: types.CodeType, name: str, values: Mapping[str, object]) -> list[int]:
    if name not in code.co_names or "len" not in code.co_names:
        return []
    steps = [step for step in dis.get_instructions(code) if _matters(step)]
    ops = {step.opname for step in steps}
    if not (_REMOVING & set(code.co_names) or _REMOVING_OPS & ops):
        return []
    starts = [i for i, step in enumerate(steps) if step.argval == "len"]
    numbers = [_compared_with(steps[i + 1 :], name, values) for i in starts]
    return [number for number in numbers if number is not None and number > 0]


def _matters(step: dis.Instruction) -> bool:
    is_used = step.opname.startswith(("LOAD_", "CALL", "COMPARE", "POP_JUMP"))
    return is_used or step.opname in _REMOVING_OPS


def _compared_with(
    steps: list[dis.Instruction], name: str, values: Mapping[str, object]
) -> int | None:
    """The number in `len(name) > number`, read from the step after `len`."""
    measured = _last_load_before(steps, "CALL")
    if measured is None or measured[0].argval != name:
        return None
    rest = steps[measured[1] + 1 :]
    limit = _last_load_before(rest, "COMPARE")
    if limit is None or _depends_on_more(rest[limit[1] + 1 :]):
        return None
    value: Any = limit[0].argval
    if type(value) is str and limit[0].opname != "LOAD_CONST":
        value = values.get(value)
    return value if type(value) is int else None


def _depends_on_more(steps: list[dis.Instruction]) -> bool:
    """Whether a further comparison has to hold before anything is taken out.

    `if len(HEAP) > 100 and cancelled / len(HEAP) > 0.5` is no limit: a heap of timers
    of which none is cancelled grows for ever.

    Args:
        steps: those after the comparison with the length, its jump first.
    """
    if not steps or "JUMP" not in steps[0].opname:
        return False
    way_out = steps[0].argval
    for step, following in itertools.pairwise(steps[1:]):
        if step.argval in _REMOVING or step.opname in _REMOVING_OPS:
            return False
        is_asked = step.opname.startswith("COMPARE") and "JUMP" in following.opname
        if is_asked and following.argval == way_out:
            return True
    return False


def _last_load_before(
    steps: list[dis.Instruction], end: str
) -> tuple[dis.Instruction, int] | None:
    """The load next to the first step of a kind, and where that step is."""
    for i, step in enumerate(steps[:_NEAR]):
        if step.opname.startswith(end):
            return (steps[i - 1], i) if i else None
        if not step.opname.startswith("LOAD_"):
            return None
    return None


_NEAR = 4
