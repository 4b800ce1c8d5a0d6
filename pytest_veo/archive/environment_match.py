"""Whether figures of two environments can be compared, and in which words not."""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Mapping


DECISIVE = ("gpu", "driver", "implementation", "machine", "python")
"""These set the size of things. `python` counts with its minor version only."""
_NO_ALLOCATOR = frozenset({"env.CUDA_VISIBLE_DEVICES", "env.CUDA_DEVICE_ORDER"})


def decisive(environment: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The rows that must agree: GPU, driver, interpreter, allocator settings."""
    rows = []
    for name, value in environment:
        if name == "python":
            value = ".".join(value.split(".")[:2])
        is_setting = name.startswith("env.") and name not in _NO_ALLOCATOR
        if name in DECISIVE or is_setting:
            rows.append((name, value))
    return tuple(sorted(rows))


def differences(
    then: Iterable[tuple[str, str]], now: Iterable[tuple[str, str]]
) -> tuple[str, ...]:
    """What differs between two environments: `driver 550.54, now 560.28`."""
    before, after = dict(decisive(then)), dict(decisive(now))
    return tuple(
        f"{name.removeprefix('env.')} {_shown(before, name)}, now {_shown(after, name)}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    )


def _shown(rows: Mapping[str, str], name: str) -> str:
    is_setting = name.startswith("env.")
    if name not in rows:
        return "not set" if is_setting else "none"
    return repr(rows[name]) if is_setting else rows[name]
