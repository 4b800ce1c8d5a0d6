"""Frames on a GPU's own clock: CUDA events, anchored to the host, chained.

An event is put into the stream once a frame and read when it has long passed: nothing
waits for the GPU between the first frame and the last. Events have no epoch, so the
first one is waited for and stands between two host stamps. Their distance is a float
of milliseconds, exact to a microsecond for some seconds only, so the chain goes on
from a new anchor before that.
"""

from __future__ import annotations

import collections
import dataclasses
import sys
import time
from typing import Any
from typing import Literal
from typing import Protocol

import numpy as np

from pytest_veo.errors import FramesError
from pytest_veo.frames.recorder import ClockRead
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries


CudaLibrary = Literal["torch", "cupy"]

_LIBRARIES: tuple[CudaLibrary, ...] = ("torch", "cupy")
EVENT_RESOLUTION_NS = 500
"""`cudaEventElapsedTime` resolves about half a microsecond."""
CHAIN_MS = 4096.0
"""Up to here a float32 of milliseconds steps by less than that resolution."""
_DRAINED_AT_ONCE = 4


class EventSource(Protocol):
    """Makes, records and reads the timing events of one stream."""

    def make(self) -> Any:
        """A new event that takes the time."""

    def record(self, event: Any) -> None:
        """Put the event into the stream."""

    def is_done(self, event: Any) -> bool:
        """Whether the GPU has passed it; never waits."""

    def wait(self, event: Any) -> None:
        """Wait until the GPU has passed it."""

    def elapsed_ms(self, start: Any, end: Any) -> float:
        """Milliseconds between two events that have passed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Anchor:
    """When the first event passed, on the host's clock."""

    host_ns: int
    """The middle of the two host stamps around it."""
    uncertainty_ns: int
    """Half of their distance: the event passed within so much of `host_ns`."""


class CudaFrames:
    """Records the frames of one CUDA stream.

    Making it waits once, for the anchor. Reading the series waits once, for the last
    frame.

    Args:
        source: events of the stream.
        name: the series' name.
        event: what a stamp means.
        clock: the host's, in nanoseconds, for the anchor.
    """

    def __init__(
        self,
        source: EventSource,
        name: str = "gpu",
        *,
        event: Event | str = Event.GPU_END,
        clock: ClockRead = time.perf_counter_ns,
    ) -> None:
        self.name = name
        self.event = Event.of(event)
        self._source = source
        self._stamps: list[int] = []
        self._waiting: collections.deque[Any] = collections.deque()
        self._spare: list[Any] = []
        first = source.make()
        before = clock()
        source.record(first)
        source.wait(first)
        after = clock()
        self.anchor = Anchor((before + after) // 2, (after - before + 1) // 2)
        self._link, self._link_ns = first, self.anchor.host_ns

    def __len__(self) -> int:
        return len(self._stamps) + len(self._waiting)

    def tick(self) -> None:
        """The work queued so far makes up a frame; does not wait for it."""
        event = self._spare.pop() if self._spare else self._source.make()
        self._source.record(event)
        self._waiting.append(event)
        for _ in range(_DRAINED_AT_ONCE):
            if not self._waiting or not self._source.is_done(self._waiting[0]):
                break
            self._read(self._waiting.popleft())

    def barrier(self) -> None:
        """Wait for the boundary of the last frame. It costs the overlap it ends."""
        if self._waiting:
            self._source.wait(self._waiting[-1])

    def series(self) -> FrameSeries:
        """The frames so far, once the GPU has passed the last of them."""
        self.barrier()
        while self._waiting:
            self._read(self._waiting.popleft())
        return FrameSeries(
            t_ns=np.array(self._stamps, np.int64),
            event=self.event,
            clock=Clock.CUDA_EVENT,
            name=self.name,
            source="recorder",
            resolution_ns=EVENT_RESOLUTION_NS,
        )

    def _read(self, event: Any) -> None:
        elapsed_ms = self._source.elapsed_ms(self._link, event)
        stamp = self._link_ns + round(elapsed_ms * 1e6)
        self._stamps.append(stamp)
        if elapsed_ms >= CHAIN_MS:
            event, self._link, self._link_ns = self._link, event, stamp
        self._spare.append(event)


class TorchEvents:
    """Events of a PyTorch stream; None: of the stream current at each record.

    Raises:
        FramesError: PyTorch is not imported, or has not initialised CUDA.
    """

    def __init__(self, stream: Any = None) -> None:
        torch = _imported("torch")
        if not torch.cuda.is_initialized():
            raise FramesError(
                "CUDA frames need a GPU that the program uses: PyTorch has not "
                "initialised CUDA yet, so render or compute once before recording"
            )
        self._torch = torch
        self._stream = stream

    def make(self) -> Any:
        """See `EventSource`."""
        return self._torch.cuda.Event(enable_timing=True)

    def record(self, event: Any) -> None:
        """See `EventSource`."""
        event.record(self._stream or self._torch.cuda.current_stream())

    def is_done(self, event: Any) -> bool:
        """See `EventSource`."""
        return bool(event.query())

    def wait(self, event: Any) -> None:
        """See `EventSource`."""
        event.synchronize()

    def elapsed_ms(self, start: Any, end: Any) -> float:
        """See `EventSource`."""
        return float(start.elapsed_time(end))


class CupyEvents:
    """Events of a CuPy stream; None: of the stream current at each record.

    Raises:
        FramesError: CuPy is not imported.
    """

    def __init__(self, stream: Any = None) -> None:
        self._cupy = _imported("cupy")
        self._stream = stream

    def make(self) -> Any:
        """See `EventSource`."""
        return self._cupy.cuda.Event()

    def record(self, event: Any) -> None:
        """See `EventSource`."""
        event.record(self._stream or self._cupy.cuda.get_current_stream())

    def is_done(self, event: Any) -> bool:
        """See `EventSource`."""
        return bool(event.done)

    def wait(self, event: Any) -> None:
        """See `EventSource`."""
        event.synchronize()

    def elapsed_ms(self, start: Any, end: Any) -> float:
        """See `EventSource`."""
        return float(self._cupy.cuda.get_elapsed_time(start, end))


def events_of(library: CudaLibrary | None = None, stream: Any = None) -> EventSource:
    """The events of a library the program has imported: PyTorch's before CuPy's.

    Raises:
        FramesError: the library is not one of the two, or not in use.
    """
    if library is None:
        there = [name for name in _LIBRARIES if name in sys.modules]
        if not there:
            raise FramesError(
                "CUDA frames need a library that the program uses: neither torch nor "
                "cupy is imported"
            )
        library = there[0]
    if library == "torch":
        return TorchEvents(stream)
    if library == "cupy":
        return CupyEvents(stream)
    raise FramesError(f"no CUDA events of {library!r}: use torch or cupy")


def _imported(name: str) -> Any:
    # Never imported here: a program without it has no stream of it to time.
    module = sys.modules.get(name)
    if module is None:
        raise FramesError(
            f"CUDA frames need a library that the program uses: {name} is not imported"
        )
    return module
