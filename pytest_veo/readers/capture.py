"""What a capture file holds: series, counters, the tool's own summary, remarks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from fractions import Fraction
from typing import Any
from typing import NoReturn

import numpy as np

from pytest_veo.errors import CaptureError
from pytest_veo.errors import FramesError
from pytest_veo.frames.figures import Figure
from pytest_veo.frames.figures import FrameTimes
from pytest_veo.frames.figures import figures_of
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import DropCounter
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.series import Int64s


COMPOSITORS = ("dwm.exe", "csrss.exe", "gnome-shell", "kwin_wayland", "surfaceflinger")
"""Processes that show other programs' frames; a capture is never about them."""
_USUAL_EVENTS = (Event.PRESENT, Event.CPU_START)
"""What a capture's frame times are of, where nothing else is asked for."""
_SHOWN = 8
"""Series that a refusal names."""
RIVAL_SHARE = 0.2
"""A second program with more than this share of all frames makes a choice needed."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CapturedSeries(FrameSeries):
    """A series read from a file, with what the tool wrote beside its stamps."""

    tool: str
    process: str = ""
    process_id: int | None = None
    swapchain: int | None = None
    frame_times_ns: Int64s | None = None
    """The tool's own frame times: shape (n,), the first frame's included, which the
    stamps alone cannot know. None: the tool writes stamps only."""
    ticks: Int64s | None = None
    """Stamps as the medium carries them, exact, in units of `time_base` seconds."""
    time_base: Fraction | None = None

    def figures(self, tool: str) -> tuple[Figure, ...]:
        """The figures another tool would print, under its names.

        Args:
            tool: `frameview`, `capframex`, `presentmon`, `mangohud`, `mangohud:0.6`,
                `ocat`, `perfdog`, `unreal` or `android`.

        Raises:
            FramesError: no such tool, or no frame to compute from.
        """
        if self.sampled and self.frame_times_ns is None:
            raise FramesError(
                f"{self.source}: {self.name}: samples without frame times: no tool's "
                f"figure can be computed"
            )
        return figures_of(self.times(), tool)

    def times(self) -> FrameTimes:
        """The frame times that figures are made of."""
        own = self.frame_times_ns
        times = self.intervals_ns if own is None else own
        end_ns = self.span_ns
        if self.tool == "ocat" and len(self):
            # OCAT's stamps count from the start of the recording, and so does OCAT.
            end_ns = int(self.stamps_ns[-1])
        elif own is not None and own.size == self.stamps_ns.size and own.size:
            end_ns += int(own[0])
        return FrameTimes(frame_times_ns=times, end_ns=end_ns)

    def after(self, frames: int) -> CapturedSeries:
        """The series without its first `frames` frames; numbers stay what they were."""
        cut = FrameSeries.after(self, frames)
        assert isinstance(cut, CapturedSeries)
        own: dict[str, Any] = {}
        for field in ("frame_times_ns", "ticks"):
            values = getattr(self, field)
            # Frame times of displays are those of the frames that were shown.
            if values is not None and len(values) == len(self):
                own[field] = values[frames:]
        return dataclasses.replace(cut, **own)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Capture:
    """One capture file as read."""

    file: str
    format: str
    """The reader's name: `presentmon`, `mangohud`."""
    version: str = ""
    """The generation of the format, as far as the file tells it."""
    series: tuple[CapturedSeries, ...] = ()
    counters: tuple[DropCounter, ...] = ()
    summary: tuple[Figure, ...] = ()
    """What the tool itself computed and wrote down."""
    notes: tuple[str, ...] = ()
    """What was tolerated, told or guessed, a sentence each."""
    facts: tuple[tuple[str, str], ...] = ()
    """The machine as the file describes it: GPU, driver, resolution."""

    def totals(self) -> CapturedSeries:
        """The counters as a series without frames: drop rates can be judged by it."""
        return CapturedSeries(
            t_ns=np.zeros(0, np.int64),
            event=Event.FRAME,
            clock=Clock.TOOL,
            name="totals",
            source=self.file,
            tool=self.format,
            counters=self.counters,
        )

    def select(
        self,
        *,
        process: str | int | None = None,
        swapchain: str | int | None = None,
        event: Event | str | None = None,
    ) -> tuple[CapturedSeries, ...]:
        """The series of one process, swapchain or event, most frames first.

        A capture of counters only has one series: its `totals`.

        Args:
            process: a name (case does not matter, `.exe` may be left out), an id, or
                the name of a series.
            swapchain: an address, as a number or as hexadecimal text.
            event: what the stamps are of.

        Raises:
            CaptureError: nothing matches; the message lists what is there.
            FramesError: an event or an address that means nothing.
        """
        wanted = None if event is None else Event.of(event)
        address = _address(swapchain)
        if not self.series and self.counters and process is swapchain is event is None:
            return (self.totals(),)
        found = [
            series
            for series in self.series
            if (process is None or _is_process(series, process))
            and (address is None or series.swapchain == address)
            and (wanted is None or series.event is wanted)
        ]
        if not found:
            self._refuse(process, swapchain, event)
        return tuple(sorted(found, key=len, reverse=True))

    def pick(
        self,
        *,
        process: str | int | None = None,
        swapchain: str | int | None = None,
        event: Event | str | None = None,
    ) -> CapturedSeries:
        """The one series that is meant: the busiest program's, compositors aside.

        Without `event`, presents where there are any.

        Raises:
            CaptureError: nothing matches, or two programs could be meant.
        """
        found = self.select(process=process, swapchain=swapchain, event=event)
        programs = [s for s in found if s.process.lower() not in COMPOSITORS] or found
        if event is None:
            for usual in _USUAL_EVENTS:
                programs = [s for s in programs if s.event is usual] or programs
        total = sum(map(len, programs))
        if len(programs) > 1 and len(programs[1]) > RIVAL_SHARE * total:
            names = ", ".join(series.name for series in programs[:6])
            raise CaptureError(
                self.file,
                f"several series could be meant ({names}): choose with process=, "
                f"swapchain= or event= (--process, --swapchain, --event)",
            )
        return programs[0]

    def _refuse(
        self,
        process: str | int | None,
        swapchain: str | int | None,
        event: Event | str | None,
    ) -> NoReturn:
        if not self.series:
            raise CaptureError(
                self.file,
                f"a {self.format} file of this kind holds no frames, only totals: "
                f"it can tell drop rates, never jitter",
            )
        asked = [
            f"{key}={value}"
            for key, value in (
                ("process", process),
                ("swapchain", swapchain),
                ("event", event),
            )
            if value is not None
        ]
        there: dict[str, list[str]] = {}
        for series in self.series:
            there.setdefault(series.name, []).append(series.event)
        names = [f"{name} ({', '.join(events)})" for name, events in there.items()]
        more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
        raise CaptureError(
            self.file,
            f"nothing with {', '.join(asked)}; there is "
            f"{'; '.join(names[:_SHOWN] + more)}",
        )


def _is_process(series: CapturedSeries, wanted: str | int) -> bool:
    if isinstance(wanted, int) or parse_id(wanted) is not None:
        return series.process_id == int(wanted)
    return _bare(wanted) in (_bare(series.process), _bare(series.name))


def _bare(name: str) -> str:
    return name.lower().removesuffix(".exe")


def _address(swapchain: str | int | None) -> int | None:
    if swapchain is None or isinstance(swapchain, int):
        return swapchain
    address = parse_address(swapchain)
    if address is None:
        raise FramesError(
            f"swapchain {swapchain!r} is no address: write it as the capture does, "
            f"such as 0x2604A44FD30"
        )
    return address


def parse_id(text: str) -> int | None:
    """The number of a process id; None for text that is none."""
    # `isdigit` alone holds of superscripts, and of more digits than an int is read of.
    usable = text.isascii() and text.isdigit() and len(text) <= 18
    return int(text) if usable else None


def parse_address(text: str) -> int | None:
    """The number of `0x000001927FEB15A0`; None for text that is none."""
    try:
        return int(text, 16)
    except ValueError:
        return None


def whole(values: Iterable[int]) -> Int64s:
    """An int64 array."""
    return np.fromiter(values, np.int64)
