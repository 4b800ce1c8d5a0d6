"""Frame stamps with what they are stamps of: event, clock and resolution.

A series never guesses. Presents are not displays, a sampled log is not a series of
frames, and the stamps of two clocks are not subtracted.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pytest_veo.errors import FramesError


Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MISSING_NS = int(np.iinfo(np.int64).min)
"""A stamp that was not taken, in a stage's array."""

CHUNK = 65_536
"""Frames that are looked at together where all at once would take much memory."""

_PER_FRAME = ("dropped", "sequence", "animation_ns", "render_scale", "rows")
_Word = TypeVar("_Word", bound=enum.StrEnum)


class Event(enum.StrEnum):
    """What happened to a frame when its stamp was taken."""

    FRAME = "frame"
    """The program's own tick: it says a frame is done, and no more."""
    VSYNC = "vsync"
    """The refresh the frame was meant for."""
    CPU_START = "cpu_start"
    SUBMIT = "submit"
    ENQUEUE = "enqueue"
    GPU_START = "gpu_start"
    GPU_END = "gpu_end"
    PRESENT = "present"
    DISPLAY = "display"
    DECODE = "decode"
    PTS = "pts"
    """A presentation stamp carried by the medium; no clock was read."""
    SEND = "send"
    RECEIVE = "receive"

    @classmethod
    def of(cls, text: str) -> Event:
        """The event named `text`.

        Raises:
            FramesError: there is no such event; the message lists those there are.
        """
        return _word(cls, text)


class Clock(enum.StrEnum):
    """Whose time the stamps are."""

    PERF_COUNTER = "perf_counter"
    MONOTONIC = "monotonic"
    BOOTTIME = "boottime"
    REALTIME = "realtime"
    QPC = "qpc"
    CUDA_EVENT = "cuda_event"
    GPU = "gpu"
    """A device's own timestamp counter, not yet brought to a host clock."""
    MEDIA = "media"
    """The time base of a file or stream."""
    SENDER = "sender"
    """The clock of whoever sent the message."""
    TOOL = "tool"
    """A capture tool's time since it started."""
    INJECTED = "injected"
    """A callable the test handed in."""

    @classmethod
    def of(cls, text: str) -> Clock:
        """The clock named `text`.

        Raises:
            FramesError: there is no such clock; the message lists those there are.
        """
        return _word(cls, text)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageStamps:
    """When each frame of a series reached one stage."""

    event: Event
    t_ns: Int64s
    """One stamp a frame; `MISSING_NS` where the frame never got there."""
    clock: Clock | None = None
    """None: the clock of the series."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DropCounter:
    """Frames lost as a tool counted them, without saying which."""

    name: str
    """As the tool calls it: `lagged`, `encoder skipped`, `network`."""
    dropped: int
    total: int
    """Frames there should have been, the dropped ones included."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameSeries:
    """The stamps of one kind of event, in the order in which they were taken.

    Every array has one entry a frame. They are kept as they are given, read-only, so
    a series costs no copy.

    Raises:
        FramesError: the arrays do not belong together, a stamp is no number, or the
            stamps go backwards.
    """

    t_ns: Int64s
    event: Event
    clock: Clock
    name: str = "frames"
    """Tells several series of one test, or of one file, apart."""
    source: str = ""
    """Where the stamps came from: a file's name, `recorder`."""
    resolution_ns: int | None = None
    """The step of the clock, when it is known; else it is told from the stamps."""
    sampled: bool = False
    """True: rows were taken at an interval, so most frames are missing."""
    first_index: int = 0
    """The number of the first frame here, after warm-up frames were taken off."""
    dropped: Bools | None = None
    """Frames that were presented and never displayed. In a series of displays their
    stamps are not read."""
    sequence: Int64s | None = None
    """The number each frame carried; gaps are frames lost on the way."""
    animation_ns: Int64s | None = None
    """The time each frame shows: what its content was computed for."""
    render_scale: Float64s | None = None
    """Resolution of each frame as a share of the full one (dynamic resolution)."""
    rows: Int64s | None = None
    """Line of each frame in the file it was read from, for messages."""
    stages: tuple[StageStamps, ...] = ()
    counters: tuple[DropCounter, ...] = ()

    def __post_init__(self) -> None:
        place = self._place
        set_field = object.__setattr__
        set_field(self, "event", Event.of(self.event))
        set_field(self, "clock", Clock.of(self.clock))
        set_field(self, "t_ns", _whole("t_ns", self.t_ns, place))
        for field in ("sequence", "animation_ns", "rows"):
            if (given := getattr(self, field)) is not None:
                set_field(self, field, _whole(field, given, place))
        if self.dropped is not None:
            set_field(self, "dropped", _frozen(np.asarray(self.dropped, np.bool_)))
        if self.render_scale is not None:
            set_field(self, "render_scale", _scale(self.render_scale, place))
        set_field(self, "stages", tuple(_stage(stage, place) for stage in self.stages))
        self._check_lengths()
        if self.resolution_ns is not None and self.resolution_ns < 1:
            raise FramesError(
                f"{place}: resolution_ns={self.resolution_ns}: a clock steps by at "
                f"least 1 ns; None means unknown"
            )
        self._check_order()

    @classmethod
    def from_intervals(
        cls, intervals_ns: Sequence[int] | Int64s, **fields: Any
    ) -> FrameSeries:
        """A series of `len(intervals_ns) + 1` frames that starts at 0.

        Args:
            intervals_ns: frame times.
            **fields: the other fields of a series; `event` and `clock` must be there.
        """
        place = fields.get("source") or fields.get("name") or "frames"
        intervals = _whole("intervals_ns", intervals_ns, place)
        stamps = np.zeros(intervals.size + 1, np.int64)
        np.cumsum(intervals, out=stamps[1:])
        return cls(t_ns=stamps, **fields)

    def __len__(self) -> int:
        return int(self.t_ns.size)

    @property
    def stamps_ns(self) -> Int64s:
        """The stamps that pace this event, shape (k,).

        All of them, less the frames never displayed when the event is a display.
        """
        if self.event is Event.DISPLAY and self.dropped is not None:
            return self.t_ns[~self.dropped]
        return self.t_ns

    @property
    def intervals_ns(self) -> Int64s:
        """Frame times: from each stamp to the next. Shape (k - 1,), or (0,)."""
        return np.diff(self.stamps_ns)

    @property
    def span_ns(self) -> int:
        """First stamp to last; 0 when there are not two."""
        stamps = self.stamps_ns
        return int(stamps[-1] - stamps[0]) if stamps.size > 1 else 0

    def stage(self, event: Event) -> StageStamps | None:
        """The stamps of one stage; the series' own event counts as a stage."""
        if event is self.event:
            return StageStamps(event=event, t_ns=self.t_ns, clock=self.clock)
        return next((stage for stage in self.stages if stage.event is event), None)

    def where(self, frame: int) -> str:
        """`frame 57 (row 61)`: a frame of this series as messages name it.

        Args:
            frame: position in the arrays.
        """
        number = f"frame {self.first_index + frame}"
        return number if self.rows is None else f"{number} (row {self.rows[frame]})"

    def after(self, frames: int) -> FrameSeries:
        """The series without its first `frames` frames; numbers stay what they were."""
        start = min(frames, len(self))
        first = self.first_index + start
        return dataclasses.replace(self._part(slice(start, None)), first_index=first)

    def of_stage(self, event: Event) -> FrameSeries | None:
        """The frames that reached a stage, paced by it; None without such a stage."""
        stage = self.stage(event)
        if stage is None or event is self.event:
            return None if stage is None else self
        reached = stage.t_ns != MISSING_NS
        part = self if reached.all() else self._part(reached)
        own = StageStamps(event=self.event, t_ns=part.t_ns, clock=self.clock)
        others = tuple(each for each in part.stages if each.event is not event)
        clock = stage.clock or self.clock
        return dataclasses.replace(
            part,
            t_ns=stage.t_ns[reached],
            event=event,
            clock=clock,
            resolution_ns=self.resolution_ns if clock is self.clock else None,
            stages=(*others, own),
        )

    def _part(self, kept: slice | Bools) -> FrameSeries:
        cut: dict[str, Any] = {
            field: value[kept]
            for field in ("t_ns", *_PER_FRAME)
            if (value := getattr(self, field)) is not None
        }
        stages = tuple(
            dataclasses.replace(stage, t_ns=stage.t_ns[kept]) for stage in self.stages
        )
        return dataclasses.replace(self, **cut, stages=stages)

    @property
    def _place(self) -> str:
        return f"{self.source}: {self.name}" if self.source else self.name

    def _check_lengths(self) -> None:
        for field in _PER_FRAME:
            value = getattr(self, field)
            if value is not None and value.shape != self.t_ns.shape:
                raise FramesError(
                    f"{self._place}: {field} has {value.size} entries for "
                    f"{len(self)} frames"
                )
        for stage in self.stages:
            if stage.t_ns.shape != self.t_ns.shape:
                raise FramesError(
                    f"{self._place}: stage {stage.event} has {stage.t_ns.size} stamps "
                    f"for {len(self)} frames"
                )

    def _check_order(self) -> None:
        paced = None
        if self.event is Event.DISPLAY and self.dropped is not None:
            paced = np.flatnonzero(~self.dropped)
        stamps = self.t_ns if paced is None else self.t_ns[paced]
        if stamps.size < 2 or not (stamps[1:] < stamps[:-1]).any():
            return
        step = int(np.argmax(stamps[1:] < stamps[:-1])) + 1
        frame = step if paced is None else int(paced[step])
        back_ms = int(stamps[step - 1] - stamps[step]) / 1e6
        raise FramesError(
            f"{self._place}: time goes back {back_ms:.6g} ms at {self.where(frame)}; "
            f"a series holds one source in the order of its stamps, so split what "
            f"was mixed, or sort it"
        )


def _word(kind: type[_Word], text: str) -> _Word:
    try:
        return kind(text)
    except ValueError:
        allowed = ", ".join(kind)
        raise FramesError(
            f"unknown {kind.__name__.lower()} {text!r}: use one of {allowed}"
        ) from None


def _whole(field: str, given: Any, place: str) -> Int64s:
    array = np.asarray(given)
    if array.ndim != 1:
        raise FramesError(
            f"{place}: {field} must be one row of numbers, got shape {array.shape}"
        )
    if array.size == 0:
        return _frozen(np.empty(0, np.int64))
    if array.dtype.kind not in "iuf":
        raise FramesError(
            f"{place}: {field} must hold whole numbers, not {array.dtype}"
        )
    if array.dtype.kind == "f":
        _refuse_no_number(field, array, place)
        array = np.rint(array)
    elif array.dtype.kind == "u" and array.max() > np.iinfo(np.int64).max:
        raise FramesError(f"{place}: {field} holds a number beyond 2**63 - 1")
    return _frozen(array.astype(np.int64, copy=False))


def _refuse_no_number(field: str, array: npt.NDArray[Any], place: str) -> None:
    usable = np.isfinite(array) & (np.abs(array) < 2.0**63)
    if usable.all():
        return
    frame = int(np.argmin(usable))
    raise FramesError(
        f"{place}: {field} of frame {frame} is {array[frame]}; leave the frame out, or "
        f"write MISSING_NS and mark it in `dropped`"
    )


def _scale(given: Any, place: str) -> Float64s:
    scale = np.asarray(given, np.float64)
    usable = np.isfinite(scale) & (scale > 0)
    if not usable.all():
        frame = int(np.argmin(usable))
        raise FramesError(
            f"{place}: render_scale of frame {frame} is {scale[frame]}; it must be a "
            f"number above 0"
        )
    return _frozen(scale)


def _stage(stage: StageStamps, place: str) -> StageStamps:
    event = Event.of(stage.event)
    return dataclasses.replace(
        stage, event=event, t_ns=_whole(f"stage {event}", stage.t_ns, place)
    )


_Kind = TypeVar("_Kind", bound=np.generic)


def _frozen(array: npt.NDArray[_Kind]) -> npt.NDArray[_Kind]:
    """A read-only view: the caller's own array stays writable."""
    view = array.view()
    view.flags.writeable = False
    return view
