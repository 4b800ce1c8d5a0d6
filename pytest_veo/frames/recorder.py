"""Records frames as they happen: one clock read and one append a frame.

Nothing is judged, allocated per frame or locked while bare ticks are recorded.
"""

from __future__ import annotations

import array
import operator
import threading
import time
import types
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Self

import numpy as np

from pytest_veo.errors import FramesError
from pytest_veo.frames.series import MISSING_NS
from pytest_veo.frames.series import Bools
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import Float64s
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.series import Int64s
from pytest_veo.frames.series import StageStamps


ClockRead = Callable[[], int]
"""Reads a clock: nanoseconds since any fixed instant."""

_KNOWN_CLOCKS: Mapping[ClockRead, tuple[Clock, str]] = {
    time.perf_counter_ns: (Clock.PERF_COUNTER, "perf_counter"),
    time.monotonic_ns: (Clock.MONOTONIC, "monotonic"),
    time.time_ns: (Clock.REALTIME, "time"),
}
_NO_STAGES: Mapping[Event, int] = types.MappingProxyType({})
_NUMBERS = frozenset({"sequence", "animation_ns", "render_scale", "dropped"})
"""Columns that are no stage."""
_MOST = -MISSING_NS - 1
_NO_STAMPS = "stamps are whole numbers of nanoseconds"
_SCALE_STEPS = 1_000_000
"""Render scales are kept as whole millionths, in the same arrays as the rest."""


class FrameRecorder:
    """Collects the stamps of one series.

    `tick` may be called from several threads and tasks at once. Frames that carry
    more than a stamp come through `add` and `frame`, from several threads too; one
    series takes bare ticks or such frames, not both at once.

    Args:
        name: tells the series of one test apart.
        event: what a stamp means.
        clock: nanoseconds; read once a frame.
        clock_name: whose time that is; told from `clock` where it is one of `time`.
        resolution_ns: the clock's step, where it is known.
    """

    __slots__ = (
        "_clock",
        "_columns",
        "_declared",
        "_given",
        "_lock",
        "_others",
        "_stamps",
        "clock_name",
        "event",
        "name",
        "resolution_ns",
        "tick",
    )

    tick: Callable[[], None]
    """A frame is done now: reads the clock, keeps the stamp."""

    def __init__(
        self,
        name: str = "frames",
        *,
        event: Event | str = Event.FRAME,
        clock: ClockRead = time.perf_counter_ns,
        clock_name: Clock | str | None = None,
        resolution_ns: int | None = None,
    ) -> None:
        known, step_ns = _known(clock)
        self.name = name
        self.event = Event.of(event)
        self.clock_name = known if clock_name is None else Clock.of(clock_name)
        self.resolution_ns = step_ns if resolution_ns is None else resolution_ns
        self._declared = resolution_ns is not None
        self._clock = clock
        self._stamps = array.array("q")
        self._columns: dict[str, array.array[int]] = {}
        self._lock = threading.Lock()
        self._given = False
        self._others: set[int] = set()
        self.tick = _tick(name, self._stamps.append, clock, self._others.add)

    def __len__(self) -> int:
        return len(self._stamps)

    @property
    def is_of_other_threads(self) -> bool:
        """Whether a thread other than the one that made this has recorded frames."""
        return bool(self._others)

    def add(
        self,
        t_ns: int | None = None,
        *,
        sequence: int | None = None,
        animation_ns: int | None = None,
        render_scale: float | None = None,
        dropped: bool = False,
        stages: Mapping[Event, int] = _NO_STAGES,
    ) -> None:
        """Record a frame that carries more than the instant of the call.

        Args:
            t_ns: its stamp, in this series' clock; None reads the clock now.
            sequence: the number the frame carries.
            animation_ns: the time the frame shows.
            render_scale: its resolution as a share of the full one.
            dropped: it was presented and never displayed.
            stages: when it reached each stage, in this series' clock.

        Raises:
            FramesError: a stamp or number is not whole; nothing is recorded then.
        """
        numbers = {str(event): stamp for event, stamp in stages.items()}
        if sequence is not None:
            numbers["sequence"] = sequence
        if animation_ns is not None:
            numbers["animation_ns"] = animation_ns
        if render_scale is not None:
            numbers["render_scale"] = _scale_steps(self.name, render_scale)
        if dropped:
            numbers["dropped"] = 1
        _check_whole(self.name, {**numbers, "t_ns": 0 if t_ns is None else t_ns})
        with self._lock:
            if t_ns is None:
                self.tick()
            else:
                self._given = True
                self._stamps.append(t_ns)
            row = len(self._stamps) - 1
            for key, value in numbers.items():
                _put(self._columns, key, row, value)

    def extend(self, stamps_ns: Iterable[int]) -> None:
        """Record many stamps of this series' clock at once: all, or none on an error.

        Raises:
            FramesError: one of them is no whole number of nanoseconds.
        """
        with self._lock:
            self._given = True
            try:
                stamps = array.array("q", stamps_ns)
            except (TypeError, OverflowError) as error:
                raise FramesError(f"{self.name}: {_NO_STAMPS}: {error}") from None
            self._stamps.extend(stamps)

    def frame(
        self,
        *,
        sequence: int | None = None,
        animation_ns: int | None = None,
        render_scale: float | None = None,
    ) -> Frame:
        """A block that is one frame: `with frames.frame() as frame: ...`.

        The frame's stamp is the end of the block; its start is kept as the stage
        `cpu_start`. A block that raises is no frame.
        """
        return Frame(self, sequence, animation_ns, render_scale)

    def read_clock(self) -> int:
        """This series' clock now, in nanoseconds."""
        return self._clock()

    def series(self) -> FrameSeries:
        """What was recorded so far.

        Raises:
            FramesError: the stamps that were handed in, or the injected clock, go
                backwards.
        """
        with self._lock:
            stamps = np.array(self._stamps, np.int64)
            columns = {key: np.array(kept) for key, kept in self._columns.items()}
        columns = {
            key: _padded(column, stamps.size, 0 if key == "dropped" else MISSING_NS)
            for key, column in columns.items()
        }
        if self._may_sort and (stamps[1:] < stamps[:-1]).any():
            order = np.argsort(stamps, kind="stable")
            stamps = stamps[order]
            columns = {key: column[order] for key, column in columns.items()}
        return FrameSeries(
            t_ns=stamps,
            event=self.event,
            clock=self.clock_name,
            name=self.name,
            source="recorder",
            resolution_ns=self._step_of_stamps,
            dropped=_flags(columns.get("dropped")),
            sequence=_complete(columns, "sequence", self.name),
            animation_ns=_complete(columns, "animation_ns", self.name),
            render_scale=_scales(_complete(columns, "render_scale", self.name)),
            stages=tuple(
                StageStamps(event=Event.of(key), t_ns=column)
                for key, column in columns.items()
                if key not in _NUMBERS
            ),
        )

    @property
    def _step_of_stamps(self) -> int | None:
        """The clock's step. Stamps that were handed in tell theirs themselves."""
        assumed = self._given and not self._declared
        return None if assumed else self.resolution_ns

    @property
    def _may_sort(self) -> bool:
        """Whether disorder can only come from threads.

        A thread may read a clock that never goes back and be overtaken before it
        keeps the stamp.
        """
        return not self._given and self._clock is time.perf_counter_ns


class Frame:
    """One frame being made: its marks and numbers, kept when the block ends."""

    __slots__ = ("_recorder", "_stages", "animation_ns", "render_scale", "sequence")

    def __init__(
        self,
        recorder: FrameRecorder,
        sequence: int | None,
        animation_ns: int | None,
        render_scale: float | None,
    ) -> None:
        self._recorder = recorder
        self._stages: dict[Event, int] = {}
        self.sequence = sequence
        self.animation_ns = animation_ns
        self.render_scale = render_scale

    def mark(self, event: Event | str, t_ns: int | None = None) -> None:
        """This frame reached a stage, now or at `t_ns`."""
        stamp = self._recorder.read_clock() if t_ns is None else t_ns
        known = event if isinstance(event, Event) else Event.of(event)
        self._stages[known] = stamp

    def __enter__(self) -> Self:
        self._stages[Event.CPU_START] = self._recorder.read_clock()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        if kind is not None:
            return
        self._recorder.add(
            sequence=self.sequence,
            animation_ns=self.animation_ns,
            render_scale=self.render_scale,
            stages=self._stages,
        )


def _put(columns: dict[str, array.array[int]], key: str, row: int, value: int) -> None:
    """Keep a number of the frame in `row`; frames that lack it are blank."""
    column = columns.get(key)
    if column is None:
        column = columns[key] = array.array("q")
    if len(column) < row:
        blank = 0 if key == "dropped" else MISSING_NS
        column.extend([blank] * (row - len(column)))
    column.append(value)


def _tick(
    name: str,
    append: Callable[[int], None],
    clock: ClockRead,
    note_thread: Callable[[int], None],
) -> Callable[[], None]:
    home, current = threading.get_ident(), threading.get_ident

    def tick() -> None:
        # A `try` that nothing is raised in costs nothing.
        try:
            append(clock())
        except (TypeError, OverflowError) as error:
            raise FramesError(f"{name}: its clock: {_NO_STAMPS}: {error}") from None
        if current() != home:
            note_thread(current())

    return tick


def _check_whole(name: str, numbers: Mapping[str, int]) -> None:
    for key, value in numbers.items():
        if type(value) is not int or not MISSING_NS < value <= _MOST:
            _check_odd(name, key, value)


def _check_odd(name: str, key: str, value: object) -> None:
    """Take what only acts as an int (numpy's), refuse the rest."""
    try:
        usable = MISSING_NS < operator.index(value) <= _MOST  # type: ignore[arg-type]
    except TypeError:
        usable = False
    if not usable or isinstance(value, bool):
        raise FramesError(
            f"{name}: {key}={value!r}: it must be a whole number of at most 64 bits"
        )


def _scale_steps(name: str, scale: float) -> int:
    try:
        return round(scale * _SCALE_STEPS)
    except (TypeError, ValueError, OverflowError):
        raise FramesError(
            f"{name}: render_scale={scale!r}: it must be a number such as 0.75"
        ) from None


def _known(clock: ClockRead) -> tuple[Clock, int | None]:
    known = _KNOWN_CLOCKS.get(clock)
    if known is None:
        return Clock.INJECTED, None
    # `get_clock_info` names its clocks in a Literal that a table cannot keep.
    resolution_s = time.get_clock_info(known[1]).resolution  # type: ignore[arg-type]
    return known[0], max(1, round(resolution_s * 1e9))


def _padded(column: Int64s, size: int, blank: int) -> Int64s:
    kept = np.full(size, blank, np.int64)
    kept[: min(size, column.size)] = column[:size]
    return kept


def _complete(columns: Mapping[str, Int64s], key: str, name: str) -> Int64s | None:
    column = columns.get(key)
    if column is None:
        return None
    if (blank := column == MISSING_NS).any():
        raise FramesError(
            f"{name}: frame {int(np.argmax(blank))} carries no {key}, others do: give "
            f"it to every frame of the series, or to none"
        )
    return column


def _flags(column: Int64s | None) -> Bools | None:
    return None if column is None else column.astype(np.bool_)


def _scales(column: Int64s | None) -> Float64s | None:
    return None if column is None else column / _SCALE_STEPS
