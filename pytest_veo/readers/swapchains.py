"""Presents of several programs in one table, told apart and made into series.

Rows of such tables are in the order in which frames were completed, programs mixed,
so time runs backwards from row to row. Within one swapchain it must not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_veo.frames.series import MISSING_NS
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import Int64s
from pytest_veo.frames.series import StageStamps
from pytest_veo.readers.capture import CapturedSeries
from pytest_veo.readers.present_checks import LONGEST_FRAME_NS
from pytest_veo.readers.present_checks import check_frames
from pytest_veo.readers.present_checks import in_order
from pytest_veo.readers.present_checks import is_sampled
from pytest_veo.readers.present_checks import refined
from pytest_veo.readers.present_checks import without_edge
from pytest_veo.readers.presents import Meaning
from pytest_veo.readers.presents import Owner
from pytest_veo.readers.presents import Presents
from pytest_veo.readers.source import Source


_MOST_OVERTAKEN = 0.02
"""Share of frames displayed out of order that tearing and planes may explain."""


def series_of(
    source: Source,
    presents: Presents,
    owners: list[Owner],
    which: npt.NDArray[np.int64],
    meaning: Meaning,
    notes: list[str],
) -> tuple[CapturedSeries, ...]:
    """For each owner a series of presents and, where known, one of displays.

    Raises:
        CaptureError: time runs backwards within a swapchain, or a frame is impossibly
            long; with the line.
    """
    found: list[CapturedSeries] = []
    for number, owner in enumerate(owners):
        one = presents
        if len(owners) > 1:
            one = presents.take(np.flatnonzero(which == number))
        one = in_order(source, one, owner, meaning, notes)
        own = one
        if one.generated is not None and bool(one.generated.any()):
            own = one.take(np.flatnonzero(~one.generated))
            notes.append(
                f"{owner.name}: {int(one.generated.sum())} generated frames count as "
                f"displays, not as presents"
            )
        if not len(own.stamps_ns):
            continue
        check_frames(source, own, owner, meaning, notes)
        if own is one:
            own = one = refined(one, owner, meaning, notes)
        own = without_edge(own, owner, meaning, notes)
        found.extend(_build(source, own, one, owner, meaning, notes))
    if not found:
        raise source.error("generated frames only, and no present of a program")
    return tuple(found)


def _build(
    source: Source,
    presents: Presents,
    shown: Presents,
    owner: Owner,
    meaning: Meaning,
    notes: list[str],
) -> list[CapturedSeries]:
    sampled = is_sampled(presents, meaning)
    if sampled:
        notes.append(
            f"{owner.name}: rows are samples, not frames: most frames are missing, so "
            f"nothing can be said about jitter"
        )
    fields: dict[str, Any] = {
        "clock": meaning.clock,
        "name": owner.name,
        "source": source.name,
        "tool": meaning.tool,
        "process": owner.process,
        "process_id": owner.process_id,
        "swapchain": owner.swapchain,
        "sampled": sampled,
    }
    display = presents.display_ns
    numbers = _rows(presents, meaning)
    stages: tuple[StageStamps, ...] = ()
    if display is not None:
        stages = (StageStamps(event=Event.DISPLAY, t_ns=display),)
    made = [
        CapturedSeries(
            t_ns=presents.stamps_ns,
            event=meaning.event,
            dropped=presents.dropped,
            frame_times_ns=presents.interval_ns,
            rows=numbers,
            stages=stages,
            **fields,
        )
    ]
    if shown.display_ns is not None:
        fields["rows"] = numbers if shown is presents else _rows(shown, meaning)
        made.extend(_displays(shown, shown.display_ns, owner, fields, notes))
    return made


def _rows(presents: Presents, meaning: Meaning) -> Int64s | None:
    return presents.lines.astype(np.int64) if meaning.has_lines else None


def _displays(
    presents: Presents,
    display: Int64s,
    owner: Owner,
    fields: dict[str, Any],
    notes: list[str],
) -> list[CapturedSeries]:
    """The series of displays; none where fewer than two frames were displayed."""
    never = display == MISSING_NS
    shown = display[~never] if never.any() else display
    if shown.size < 2:
        return []
    intervals = presents.display_interval_ns
    if bool((shown[1:] < shown[:-1]).any()):
        overtaken = int((shown < np.maximum.accumulate(shown)).sum())
        if overtaken > _MOST_OVERTAKEN * shown.size:
            notes.append(
                f"{owner.name}: the display stamps contradict each other ({overtaken} "
                f"of {shown.size} lie before an earlier frame's): no series of displays"
            )
            return []
        display = np.where(never, MISSING_NS, np.maximum.accumulate(display))
        notes.append(
            f"{owner.name}: {overtaken} frames were displayed before one presented "
            f"earlier; they count as displayed together with it"
        )
    times = None
    if intervals is not None:
        usable = ~never & (intervals > 0)
        endless = int((intervals[usable] >= LONGEST_FRAME_NS).sum())
        if endless:
            notes.append(f"{owner.name}: {endless} times on screen of hours: left out")
            usable &= intervals < LONGEST_FRAME_NS
        times = intervals if usable.all() else intervals[usable]
    return [
        CapturedSeries(
            t_ns=display,
            event=Event.DISPLAY,
            dropped=never,
            frame_times_ns=times,
            **fields,
        )
    ]
