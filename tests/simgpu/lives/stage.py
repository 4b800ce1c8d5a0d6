"""Runs in the child: takes the figures of one moment from every side.

At each step of a scripted life one line of JSON leaves the child: what the framework
says of itself, what the driver's own books say (the state file), what NVML says, and,
where the package is importable, what its probes say. The tests in the parent compare.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import traceback
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import NoReturn
from typing import Protocol

from tests.simgpu import layout
from tests.simgpu.driver import Sim


Figures = Mapping[str, int]
Framework = Callable[[int], Figures]
"""The framework's own counters on a device, without touching others."""


class Life(Protocol):
    """A script: what one process does, step by step."""

    __name__: str

    def __call__(self, stage: Stage, /) -> None:
        """Live it."""


@dataclasses.dataclass(frozen=True)
class Stage:
    """One process on the simulated devices, and what is said of it."""

    sim: Sim
    framework: Framework
    probes: tuple[str, ...]
    """Words of the package's probe catalogue."""

    def step(self, name: str, **notes: object) -> None:
        """Say where the life is, with every figure there is."""
        devices = range(self.sim.state.devices)
        # The probes first: they must see what is, not what our questions did.
        line = {
            "step": name,
            "probes": self._probe_readings(),
            "framework": [dict(self.framework(index)) for index in devices],
            "driver": [self._books(index) for index in devices],
            "nvml": self._nvml(),
            "notes": notes,
        }
        print(json.dumps(line), flush=True)

    def _books(self, index: int) -> dict[str, int]:
        row = self.sim.process(os.getpid(), index)
        names = [name for name, *_ in layout.Process._fields_]
        return {name: int(getattr(row, name)) if row else 0 for name in names}

    def _nvml(self) -> list[int | None]:
        """This process's bytes on each device; None where it is not listed."""
        pynvml = _nvml()
        found: list[int | None] = []
        for index in range(self.sim.state.devices):
            handle = pynvml.nvmlDeviceGetHandleByUUID(self.sim.uuid(index))
            rows = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
            mine = [row.usedGpuMemory for row in rows if row.pid == os.getpid()]
            found.append(mine[0] if mine else None)
        return found

    def _probe_readings(self) -> dict[str, Any] | None:
        """`probe.counter device` to value, glanced at and read; None: no package."""
        opened = _opened(self.probes)
        if opened is None:
            return None
        glanced: dict[str, int] = {}
        read: dict[str, int] = {}
        troubles = [str(trouble) for trouble in opened.troubles]
        for probe in opened.ready:
            if not probe.is_active():
                continue
            values = probe.glance()
            names = [str(counter) for counter in probe.counters]
            glanced |= dict(zip(names, values, strict=True))
            read |= {str(one.counter): one.value for one in probe.read()}
            troubles += [str(trouble) for trouble in probe.troubles]
        return {"glanced": glanced, "read": read, "troubles": troubles}


_cache: dict[Any, Any] = {}


def _nvml() -> Any:
    if "nvml" not in _cache:
        import pynvml

        pynvml.nvmlInit()
        _cache["nvml"] = pynvml
    return _cache["nvml"]


def _opened(names: tuple[str, ...]) -> Any:
    if names not in _cache:
        try:
            from pytest_veo.probes.catalogue import open_probes
        except ImportError:
            _cache[names] = None
        else:
            _cache[names] = open_probes(names)
    return _cache[names]


def failure(act: Callable[[], object]) -> str:
    """The class and first line of what an act raises; empty when it does not."""
    try:
        act()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return ""


def play(
    framework: Framework,
    probes: tuple[str, ...],
    groups: Mapping[str, Iterable[Life]],
) -> None:
    """Live a group of lives, named on the command line, each in a fork of its own.

    The framework is imported once. What must be set before that differs between
    groups, not within one.
    """
    sim = Sim.here()
    for life in groups[sys.argv[1]]:
        sim.reset(devices=2)
        child = os.fork()
        if child == 0:
            _live(life, Stage(sim, framework, probes))
        _, status = os.waitpid(child, 0)
        end = os.waitstatus_to_exitcode(status)
        print(json.dumps({"life": life.__name__, "exit": end}), flush=True)


def _live(life: Life, stage: Stage) -> NoReturn:
    try:
        life(stage)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    sys.stderr.flush()
    os._exit(0)
