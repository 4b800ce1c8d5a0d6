"""Runs in an archive: `<archive>/runs/<run_id>/run.json` and `records.jsonl`.

These two are the truth; tables are made from them. A run's folder appears whole or not
at all. While a run in a bucket goes on, its records lie there in numbered pieces
(`records-000001.jsonl`), since objects cannot be appended to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from typing import NamedTuple

from pytest_veo.archive.place import Place
from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.writer import HEADER
from pytest_veo.archive.writer import RECORDS
from pytest_veo.archive.writer import RunWriter
from pytest_veo.errors import ArchiveError


__all__ = ["Run", "RunWriter", "load_run", "run_ids"]

_PIECE = re.compile(r"records-\d{6,}\.jsonl")


class Run(NamedTuple):
    """One archived run."""

    header: RunHeader
    records: tuple[Record, ...]
    unread: tuple[str, ...] = ()
    """Lines that could not be read, as `records.jsonl:12: why`."""

    def environments(self) -> dict[str, dict[str, str]]:
        """What records name as their environment: name and value of all that is known.

        The run's own, that of records which name none, has the name "".
        """
        found = {"": dict(self.header.environment)}
        for record in self.records:
            if record.environment_rows:
                found[record.environment] = dict(record.environment_rows)
        return found

    def environment_of(self, record: Record) -> dict[str, str]:
        """Name and value of all that is known of where a test ran."""
        known = self.environments()
        return known.get(record.environment, known[""])


class RawRun(NamedTuple):
    """One archived run as it is written, for those who need no more."""

    header: RunHeader
    records: list[dict[str, Any]]
    unread: list[str]


def run_ids(url: str | Path) -> list[str]:
    """The ids of all archived runs, oldest first (ids begin with their time).

    Args:
        url: a folder, or any URL that fsspec knows.

    Raises:
        ArchiveError: there is no archive at this place.
    """
    return list_runs(Place(url))


def list_runs(place: Place) -> list[str]:
    """The ids of all runs of an archive, oldest first.

    Raises:
        ArchiveError: there is no archive at this place.
    """
    names = [name for name in place.folders("runs") if not name.startswith(".")]
    if not names and not place.is_folder("runs"):
        raise ArchiveError(f"there is no archive at {place.url!r}: no folder 'runs'")
    return names


def load_run(url: str | Path, run_id: str) -> Run:
    """One run; what cannot be read is named, the rest is there.

    Args:
        url: a folder, or any URL that fsspec knows.
        run_id: the name of its folder.

    Raises:
        ArchiveError: the run is not there, or its header cannot be read.
    """
    place = Place(url)
    if run_id not in list_runs(place):
        raise ArchiveError(f"there is no run {run_id!r} in {place.url!r}")
    raw = read_raw(place, run_id)
    records, unread = [], list(raw.unread)
    for number, data in enumerate(raw.records, start=1):
        try:
            records.append(Record.from_dict(data))
        except ArchiveError as error:
            where = data.get(_PLACE, f"record {number}")
            unread.append(f"{where}: {error}")
    return Run(
        header=raw.header,
        records=tuple(records),
        unread=tuple(unread),
    )


_PLACE = "\0place"
"""Where a record stood, beside its own keys, until it is read in full."""


def read_header(place: Place, run_id: str) -> RunHeader:
    """A run's header.

    Raises:
        ArchiveError: it is not there, or is no header.
    """
    name = f"runs/{run_id}/{HEADER}"
    try:
        data = json.loads(place.read(name).decode("utf-8"))
    except ValueError as error:
        raise ArchiveError(f"cannot read {place.shown(name)}: {error}") from error
    if not isinstance(data, dict):
        raise ArchiveError(f"cannot read {place.shown(name)}: no JSON object")
    return RunHeader.from_dict(data)


def read_raw(place: Place, run_id: str) -> RawRun:
    """A run as it is written; what cannot be read is named, the rest is there.

    Raises:
        ArchiveError: its header cannot be read.
    """
    header = read_header(place, run_id)
    raw = RawRun(header, [], [])
    if header.run_id != run_id:
        raw.unread.append(f"{HEADER}: it is of the run {header.run_id!r}")
    for name, content in _contents(place, run_id, raw.unread):
        _parse(name, content, raw)
    return raw


class RunLines(NamedTuple):
    """A run's records, line by line, as they are written."""

    lines: tuple[bytes, ...]


def read_lines(place: Place, run_id: str) -> RunLines:
    """The whole lines of a run's records, sense or nonsense.

    Raises:
        ArchiveError: not all of them can be read.
    """
    unread: list[str] = []
    contents = list(_contents(place, run_id, unread))
    if unread:
        raise ArchiveError(unread[0])
    return RunLines(
        tuple(line for _, content in contents for line in content.splitlines() if line)
    )


def _contents(
    place: Place, run_id: str, unread: list[str]
) -> Iterator[tuple[str, bytes]]:
    for name in _record_files(place, run_id):
        try:
            yield name, place.read(f"runs/{run_id}/{name}")
        except ArchiveError as error:
            unread.append(f"{name}: {str(error).rpartition(': ')[2]}")


def _record_files(place: Place, run_id: str) -> list[str]:
    if place.is_local:
        return [RECORDS]
    names = place.names(f"runs/{run_id}")
    # Written whole at the end of a run; the pieces hold nothing else.
    if RECORDS in names:
        return [RECORDS]
    return [name for name in names if _PIECE.fullmatch(name)]


def _parse(name: str, content: bytes, raw: RawRun) -> None:
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            data = json.loads(line)
        except ValueError as error:
            raw.unread.append(f"{name}:{number}: {error}")
            continue
        if not isinstance(data, dict):
            raw.unread.append(f"{name}:{number}: no JSON object")
        else:
            data[_PLACE] = f"{name}:{number}"
            raw.records.append(data)


def records_of(raw: RawRun) -> Iterator[Mapping[str, Any]]:
    """Those of a run's records that can be read; the others are named in `unread`."""
    for data in raw.records:
        try:
            Record.from_dict(data)
            _check_kinds(data)
        except ArchiveError as error:
            raw.unread.append(f"{data.get(_PLACE)}: {error}")
        else:
            yield data


_TEXTS = ("nodeid", "worker", "started_at", "test_outcome")
_COUNTER_TEXTS = ("counter", "device", "unit")
_COUNTS = ("before", "after", "growth")


def _check_kinds(data: Mapping[str, Any]) -> None:
    """Refuse what no table's column can hold.

    Raises:
        ArchiveError: naming the field and its value.
    """
    _check_each(data, _TEXTS, str)
    _check_each(data, ("duration_ns",), int)
    for row in data["counters"]:
        _check_each(row, _COUNTER_TEXTS, str)
        _check_each(row, _COUNTS, int)


def _check_each(data: Mapping[str, Any], names: tuple[str, ...], kind: type) -> None:
    for name in names:
        value = data[name]
        # A truth value is an int to Python, and no number to a table.
        if type(value) is not kind or (type(value) is int and not _fits(value)):
            raise ArchiveError(f"no record: {name} is {value!r}")


def _fits(number: int) -> bool:
    return -(1 << 63) <= number < 1 << 63
