"""All that one test records: its own series, imported ones, sweeps, comparisons."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from pytest_veo.errors import FramesError
from pytest_veo.frames.compare import DEFAULT_PAIRS
from pytest_veo.frames.compare import Turns
from pytest_veo.frames.cuda import CudaFrames
from pytest_veo.frames.cuda import CudaLibrary
from pytest_veo.frames.cuda import events_of
from pytest_veo.frames.recorder import ClockRead
from pytest_veo.frames.recorder import Frame
from pytest_veo.frames.recorder import FrameRecorder
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.sweep import Sweep


DEFAULT_SERIES = "frames"


class Frames:
    """The frames of one test.

    `tick`, `frame` and `add` record into the default series; `series` opens others.

    Args:
        event: what the default series' stamps mean.
        clock: of the default series, and of others unless they name theirs.
    """

    tick: Callable[[], None]
    """A frame of the default series is done now."""

    clock: ClockRead
    """The clock of series that are opened from now on. A test that plays time
    itself sets its own; the machine's noise has no part in such frames."""

    def __init__(
        self,
        *,
        event: Event = Event.FRAME,
        clock: ClockRead = time.perf_counter_ns,
    ) -> None:
        self.clock = clock
        self._event = event
        self._recorders: dict[str, FrameRecorder] = {}
        self._cuda: dict[str, CudaFrames] = {}
        self._imported: dict[str, FrameSeries] = {}
        self.sweeps: list[Sweep] = []
        self.compared: list[Turns] = []
        self._default = FrameRecorder(DEFAULT_SERIES, event=event, clock=clock)
        self.tick = self._default.tick

    def frame(self, **numbers: Any) -> Frame:
        """A block that is one frame of the default series."""
        return self._default.frame(**numbers)

    def add(self, t_ns: int | None = None, **numbers: Any) -> None:
        """A frame of the default series, stamped `t_ns` or now."""
        self._default.add(t_ns, **numbers)

    def extend(self, stamps_ns: Sequence[int]) -> None:
        """Many frames of the default series."""
        self._default.extend(stamps_ns)

    def series(
        self,
        name: str,
        *,
        event: Event | str | None = None,
        clock: ClockRead | None = None,
        clock_name: Clock | str | None = None,
        resolution_ns: int | None = None,
    ) -> FrameRecorder:
        """The recorder of a further series; made at the first call of that name."""
        if name == DEFAULT_SERIES:
            return self._default
        if name not in self._recorders:
            self._refuse_twice(name)
            self._recorders[name] = FrameRecorder(
                name,
                event=self._event if event is None else event,
                clock=self.clock if clock is None else clock,
                clock_name=clock_name,
                resolution_ns=resolution_ns,
            )
        return self._recorders[name]

    def cuda(
        self,
        name: str = "gpu",
        *,
        library: CudaLibrary | None = None,
        stream: Any = None,
        event: Event | str = Event.GPU_END,
    ) -> CudaFrames:
        """Frames on the GPU's own clock: `gpu = veo_frames.cuda()`, `gpu.tick()`.

        Args:
            name: the series' name.
            library: whose events; None takes PyTorch's where it is imported.
            stream: of that library; None: the current one at each tick.
            event: what a stamp means.

        Raises:
            FramesError: the library is not in use, or the name is taken.
        """
        if name not in self._cuda:
            self._refuse_twice(name)
            source = events_of(library, stream)
            self._cuda[name] = CudaFrames(source, name, event=event)
        return self._cuda[name]

    def use(self, series: FrameSeries) -> None:
        """Judge a series that was made elsewhere: read from a file, or decoded.

        Raises:
            FramesError: the test has a series of that name already.
        """
        is_free = series.name == DEFAULT_SERIES and not len(self._default)
        if series.name in self._imported or not is_free:
            self._refuse_twice(series.name)
        self._imported[series.name] = series

    def sweep(self, **grid: Sequence[Any]) -> Sweep:
        """A grid of parameters, each cell with a series of its own.

        The test's budget holds for every cell; the cells become one table.
        """
        sweep = Sweep(grid, self.series)
        self.sweeps.append(sweep)
        return sweep

    def turns(self, a: str, b: str, *, pairs: int = DEFAULT_PAIRS) -> Turns:
        """Runs of two variants in turns, to be compared.

        Their series are not held to the test's budget.
        """
        # Not by way of `self`: a circle would keep all frames until a collection.
        make = functools.partial(FrameRecorder, event=self._event, clock=self.clock)
        turns = Turns(a, b, pairs, make)
        self.compared.append(turns)
        return turns

    def recorded(self) -> Mapping[str, FrameSeries]:
        """Every series that has frames or counters, by name, the default one first."""
        found = {DEFAULT_SERIES: self._default.series()} if len(self._default) else {}
        recorders: dict[str, FrameRecorder | CudaFrames]
        recorders = {**self._recorders, **self._cuda}
        opened = {name: each.series() for name, each in recorders.items()}
        return found | opened | self._imported

    def is_of_other_threads(self, name: str) -> bool:
        """Whether frames of this series came from other threads than the test's."""
        recorder = (
            self._default if name == DEFAULT_SERIES else self._recorders.get(name)
        )
        return recorder is not None and recorder.is_of_other_threads

    def _refuse_twice(self, name: str) -> None:
        taken = {DEFAULT_SERIES, *self._recorders, *self._cuda, *self._imported}
        if name in taken:
            raise FramesError(f"this test has a series {name!r} already: name it apart")
