"""GPU regression testing for pytest: leaks, memory budgets and frame pacing.

The public names are what hooks and probes of your own need; each is imported when
it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from pytest_veo.archive.table import load
    from pytest_veo.budget import Allowance
    from pytest_veo.budget import LeakBudget
    from pytest_veo.budget import Level
    from pytest_veo.budget import Tolerance
    from pytest_veo.errors import ProbeUnavailable
    from pytest_veo.errors import VeoError
    from pytest_veo.frames.series import FrameSeries
    from pytest_veo.memory.snapshot import Counter
    from pytest_veo.memory.snapshot import Kind
    from pytest_veo.memory.snapshot import Reading
    from pytest_veo.memory.snapshot import Rung
    from pytest_veo.memory.snapshot import Trouble
    from pytest_veo.probes.base import Probe
    from pytest_veo.readers import read_frames
    from pytest_veo.readers import register_reader
    from pytest_veo.units import Unit
    from pytest_veo.verdict import Finding
    from pytest_veo.verdict import Outcome
    from pytest_veo.verdict import Verdict


__version__ = "0.1.0"

__all__ = [
    "Allowance",
    "Counter",
    "Finding",
    "FrameSeries",
    "Kind",
    "LeakBudget",
    "Level",
    "Outcome",
    "Probe",
    "ProbeUnavailable",
    "Reading",
    "Rung",
    "Tolerance",
    "Trouble",
    "Unit",
    "VeoError",
    "Verdict",
    "__version__",
    "load",
    "read_frames",
    "register_reader",
]

_HOMES = {
    "Allowance": "budget",
    "Counter": "memory.snapshot",
    "Finding": "verdict",
    "FrameSeries": "frames.series",
    "Kind": "memory.snapshot",
    "LeakBudget": "budget",
    "Level": "budget",
    "Outcome": "verdict",
    "Probe": "probes.base",
    "ProbeUnavailable": "errors",
    "Reading": "memory.snapshot",
    "Rung": "memory.snapshot",
    "Tolerance": "budget",
    "Trouble": "memory.snapshot",
    "Unit": "units",
    "VeoError": "errors",
    "Verdict": "verdict",
    "load": "archive.table",
    "read_frames": "readers",
    "register_reader": "readers",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
