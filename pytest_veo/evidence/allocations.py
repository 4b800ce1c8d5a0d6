"""Which lines allocated what stayed, from tracemalloc.

Tracing runs for the evidence run only. A tracing that the user began is used as it
is: never stopped, restarted or cleared.
"""

from __future__ import annotations

import dataclasses
import tracemalloc
from collections.abc import Mapping

from pytest_veo.evidence import stacks


NFRAME = 24
_MOST_SITES = 6
_OFTEN = 0.5  # of the runs


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A line that allocated memory which stayed, and how much of it in a run."""

    file: str
    line: int
    source: str
    bytes_per_run: float
    blocks_per_run: float
    via: str = ""
    """The library line that did it for the user's: `logging/__init__.py:1300`."""
    memory: str = ""
    """Whose memory: `cupy device 0`; empty for the interpreter's own."""

    def __str__(self) -> str:
        return f"{stacks.shown(self.file)}:{self.line}"


class Tracing:
    """tracemalloc between two instants."""

    def __init__(self, nframe: int = NFRAME) -> None:
        self._nframe = nframe
        self._is_ours = False
        self._before: tracemalloc.Snapshot | None = None
        self.note = ""

    def begin(self) -> None:
        """Start to trace, or note what the user's tracing has so far."""
        self._is_ours = not tracemalloc.is_tracing()
        if self._is_ours:
            tracemalloc.start(self._nframe)
            return
        limit = tracemalloc.get_traceback_limit()
        if limit < 3:
            self.note = f"tracemalloc was on already with {limit} frame(s): lines only"
        self._before = tracemalloc.take_snapshot()

    def end(
        self, runs: int, labels: Mapping[int, str] | None = None
    ) -> tuple[Site, ...]:
        """The lines whose memory has grown in the runs, the most telling first.

        Args:
            runs: how often the test ran since `begin`.
            labels: names for people of tracemalloc's domains other than 0.
        """
        snapshot = tracemalloc.take_snapshot()
        if self._is_ours:
            self._is_ours = False
            tracemalloc.stop()
        before, self._before = self._before, None
        return sites(before, snapshot, runs, labels)

    def abandon(self) -> None:
        """Stop without a result."""
        if self._is_ours:
            self._is_ours = False
            tracemalloc.stop()
        self._before = None


@dataclasses.dataclass(slots=True)
class _Sum:
    size: int = 0
    count: int = 0
    largest: int = 0
    via: str = ""


_Key = tuple[int, str, int]


def sites(
    before: tracemalloc.Snapshot | None,
    after: tracemalloc.Snapshot,
    runs: int,
    labels: Mapping[int, str] | None = None,
) -> tuple[Site, ...]:
    """The lines that hold more in `after` than in `before`.

    A line counts when it left something behind in at least every other run, so that
    what happened once in all the runs is divided out.
    """
    totals = _by_line(after, +1)
    if before is not None:
        for key, old in _by_line(before, -1).items():
            new = totals.setdefault(key, _Sum())
            new.size += old.size
            new.count += old.count
    enough = max(1.0, runs * _OFTEN)
    grown = [
        (key, sum_)
        for key, sum_ in totals.items()
        if sum_.size > 0 and sum_.count >= enough
    ]
    grown.sort(
        key=lambda each: (
            each[0][0] == 0,  # device memory first
            not stacks.is_users(each[0][1]),
            -each[1].size,
        )
    )
    return tuple(
        _site(key, sum_, runs, labels or {}) for key, sum_ in grown[:_MOST_SITES]
    )


def _by_line(snapshot: tracemalloc.Snapshot, sign: int) -> dict[_Key, _Sum]:
    found: dict[_Key, _Sum] = {}
    for trace in snapshot.traces:
        frames = [(frame.filename, frame.lineno) for frame in reversed(trace.traceback)]
        if trace.domain == 0 and stacks.is_side_effect(frames):
            continue
        lines = stacks.trimmed(frames)
        line = stacks.users(lines)
        if line is None:
            continue
        total = found.setdefault((trace.domain, line.file, line.number), _Sum())
        total.size += sign * trace.size
        total.count += sign
        if lines[0] != line and trace.size > total.largest:
            total.largest, total.via = trace.size, str(lines[0])
    return found


def _site(key: _Key, total: _Sum, runs: int, labels: Mapping[int, str]) -> Site:
    domain, file, number = key
    return Site(
        file=file,
        line=number,
        source=stacks.Line(file, number).source,
        bytes_per_run=total.size / runs,
        blocks_per_run=total.count / runs,
        via=total.via,
        memory=labels.get(domain, f"domain {domain}" if domain else ""),
    )
