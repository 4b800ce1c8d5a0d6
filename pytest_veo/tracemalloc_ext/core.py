"""Start, stop and read the tracking of device memory."""

from __future__ import annotations

import dataclasses
import pathlib
import tracemalloc
from collections.abc import Sequence

from pytest_veo.errors import ProbeUnavailable
from pytest_veo.tracemalloc_ext.ledger import HOST
from pytest_veo.tracemalloc_ext.ledger import HOST_DOMAIN
from pytest_veo.tracemalloc_ext.ledger import Domain
from pytest_veo.tracemalloc_ext.ledger import Ledger
from pytest_veo.tracemalloc_ext.sources import Source
from pytest_veo.tracemalloc_ext.sources import all_sources


__all__ = ["Domain", "DomainStatistic"]

NFRAME = 10
_OUR_FOLDER = f"{pathlib.Path(__file__).parent.parent}/"
_RUNNERS = ("/_pytest/", "/pluggy/")


@dataclasses.dataclass(frozen=True, slots=True)
class DomainStatistic:
    """What a snapshot holds of one domain."""

    domain: Domain
    size_bytes: int
    count: int


@dataclasses.dataclass(slots=True)
class _State:
    ledger: Ledger
    sources: list[Source]
    notes: list[str]
    is_ours: bool
    """Whether we started tracemalloc, and so stop it."""


_state: _State | None = None


def start(nframe: int = NFRAME, sources: Sequence[Source] | None = None) -> None:
    """Begin to track the device allocations of every library that is there.

    Starts `tracemalloc` with `nframe` frames unless it is on already; then its own
    number of frames holds. At least 3 are needed to see past the hooks. Calling it
    again while it is on does nothing.
    """
    global _state
    if _state is not None:
        return
    is_ours = not tracemalloc.is_tracing()
    if is_ours:
        tracemalloc.start(nframe)
    state = _State(Ledger(), [], [], is_ours)
    for source in all_sources() if sources is None else sources:
        try:
            source.attach(state.ledger)
        except ProbeUnavailable as error:
            state.notes.append(str(error))
        except Exception as error:  # a library's own failure must not cost the run
            state.notes.append(f"{source.name}: {type(error).__name__}: {error}")
        else:
            state.sources.append(source)
    _state = state


def stop() -> None:
    """Stop tracking: hooks and traces of ours are gone, the user's stay."""
    global _state
    if _state is None:
        return
    state, _state = _state, None
    for source in state.sources:
        source.detach()
    state.ledger.clear()
    if state.is_ours:
        tracemalloc.stop()


def is_tracking() -> bool:
    """Whether `start` has been called and `stop` has not."""
    return _state is not None


def notes() -> tuple[str, ...]:
    """Why a source is not tracked, and what was missed."""
    if _state is None:
        return ()
    missed = _state.ledger.untraced
    more = [f"{missed} allocations while tracemalloc was off"] if missed else []
    return (*_state.notes, *more)


def domains() -> tuple[Domain, ...]:
    """The domains in use, without the host's."""
    return () if _state is None else _state.ledger.domains


def labels() -> dict[int, str]:
    """The numbers of the domains in use, with their names for people."""
    return {each.number: each.label for each in domains()}


def track(source: str, device: int, address: int, size_bytes: int) -> None:
    """Add a block of an allocator of your own. Does nothing while tracking is off."""
    if _state is not None:
        number = _state.ledger.number(source, device)
        _state.ledger.track(number, address, size_bytes)


def untrack(source: str, device: int, address: int) -> None:
    """Take a block of `track` out. Does nothing while tracking is off."""
    if _state is not None:
        _state.ledger.untrack(_state.ledger.number(source, device), address)


def traced_host_bytes() -> int:
    """`tracemalloc.get_traced_memory()[0]` without the device domains."""
    ours = 0 if _state is None else _state.ledger.total_bytes
    return tracemalloc.get_traced_memory()[0] - ours


def take_snapshot() -> tracemalloc.Snapshot:
    """An ordinary snapshot; the stacks are cut at this package and at pytest.

    Raises:
        RuntimeError: tracemalloc is off.
    """
    snapshot = tracemalloc.take_snapshot()
    traces = [
        (trace.domain, trace.size, _cut(trace.traceback), len(trace.traceback))
        for trace in snapshot.traces
    ]
    return tracemalloc.Snapshot(traces, snapshot.traceback_limit)


def _cut(traceback: tracemalloc.Traceback) -> tuple[tuple[str, int], ...]:
    """The frames newest first, as tracemalloc keeps them itself."""
    every = [(frame.filename, frame.lineno) for frame in reversed(traceback)]
    frames = [each for each in every if not each[0].startswith(_OUR_FOLDER)] or every
    for i, (file, _) in enumerate(frames):
        if i and any(part in file for part in _RUNNERS):
            return tuple(frames[:i])
    return tuple(frames)


def statistics(snapshot: tracemalloc.Snapshot) -> tuple[DomainStatistic, ...]:
    """Bytes and blocks of every domain, the host's first."""
    sums: dict[int, list[int]] = {}
    for trace in snapshot.traces:
        total = sums.setdefault(trace.domain, [0, 0])
        total[0] += trace.size
        total[1] += 1
    known = {each.number: each for each in (HOST_DOMAIN, *domains())}
    return tuple(
        DomainStatistic(known.get(number, Domain(number, "other")), *sums[number])
        for number in sorted(sums, key=lambda number: (number != HOST, number))
    )


def only(
    snapshot: tracemalloc.Snapshot, source: str, device: int | None = None
) -> tracemalloc.Snapshot:
    """The part of a snapshot that is of one source: `"cupy"`, or `"host"`."""
    wanted = [
        each.number
        for each in (HOST_DOMAIN, *domains())
        if each.source == source and device in (None, each.device)
    ]
    filters = [tracemalloc.DomainFilter(True, number) for number in wanted]
    nothing = [tracemalloc.DomainFilter(True, -1)]
    return snapshot.filter_traces(filters or nothing)
