"""The rows of one run, as the exports for single runs take them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import NamedTuple

from pytest_veo.archive.figures import HOST
from pytest_veo.archive.store import load_run
from pytest_veo.archive.track import no_track


if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_veo.archive.record import Record
    from pytest_veo.archive.record import RunHeader
    from pytest_veo.archive.store import Run
    from pytest_veo.archive.track import Track


FRAME_STATISTICS = ("p50_ns", "p95_ns", "p99_ns", "max_ns", "mad_ns")


class Growth(NamedTuple):
    """Growth over a test's first run."""

    nodeid: str
    counter: str
    device: str
    unit: str
    value: int


class PerRun(NamedTuple):
    """Growth of a confirming run."""

    nodeid: str
    counter: str
    device: str
    unit: str
    value: float


class FrameTime(NamedTuple):
    """A statistic of a series of frames."""

    nodeid: str
    series: str
    statistic: str
    value_ns: float


def read(archive: str, run_id: str, track: Track = no_track) -> Run:
    """The run; of a test that ran more than once, the last time.

    Raises:
        ArchiveError: it is not there or cannot be read.
    """
    found = load_run(archive, run_id, track=track)
    last = {record.nodeid: record for record in found.records}
    return found._replace(records=tuple(last.values()))


def growths(record: Record) -> Iterator[Growth]:
    """Of every counter that was read."""
    for row in record.counters:
        yield Growth(record.nodeid, row.counter, row.device, row.unit, row.growth)


def per_runs(record: Record) -> Iterator[PerRun]:
    """Of what was confirmed."""
    if not record.verdict.runs:
        return
    for finding in record.verdict.findings:
        yield PerRun(
            record.nodeid,
            finding.counter,
            finding.device,
            finding.unit.value,
            finding.per_run,
        )


def frame_times(record: Record) -> Iterator[FrameTime]:
    """Of every series of frames."""
    for series in record.frames:
        spread = (series.get("stats") or {}).get("spread") or {}
        for name in FRAME_STATISTICS:
            if isinstance(spread.get(name), int | float):
                yield FrameTime(
                    record.nodeid, str(series.get("series")), name, spread[name]
                )


def origin(header: RunHeader) -> dict[str, str]:
    """What is known of a run, as labels."""
    python = dict(header.environment).get("python", "")
    return {
        "run_id": header.run_id,
        "commit": header.commit,
        "branch": header.branch,
        "gpu": header.gpu,
        "driver": header.driver,
        "python": python,
    }


__all__ = [
    "FRAME_STATISTICS",
    "HOST",
    "frame_times",
    "growths",
    "origin",
    "per_runs",
    "read",
]
