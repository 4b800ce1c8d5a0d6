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
from pytest_veo.archive.record_check import check_record
from pytest_veo.archive.track import Track
from pytest_veo.archive.track import no_track
from pytest_veo.archive.writer import HEADER
from pytest_veo.archive.writer import RECORDS
from pytest_veo.archive.writer import RunWriter
from pytest_veo.errors import ArchiveError


__all__ = ["Run", "RunWriter", "load_run", "run_ids"]

_HALF = re.compile("[\ud800-\udfff]")
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


def load_run(url: str | Path, run_id: str, *, track: Track = no_track) -> Run:
    """One run; what cannot be read is named, the rest is there.

    Args:
        url: a folder, or any URL that fsspec knows.
        run_id: the name of its folder.
        track: shows how far it has come.

    Raises:
        ArchiveError: the run is not there, or its header cannot be read.
    """
    place = Place(url)
    if run_id not in list_runs(place):
        raise ArchiveError(f"there is no run {run_id!r} in {place.url!r}")
    raw = read_raw(place, run_id)
    found = records_of(raw, track)
    records = tuple(Record.from_dict(data) for data in found)
    return Run(header=raw.header, records=records, unread=tuple(raw.unread))


PLACE = "\0place"
"""Where a record stood, beside its own keys, until it is read in full."""


def read_header(place: Place, run_id: str) -> RunHeader:
    """A run's header.

    Raises:
        ArchiveError: it is not there, or is no header.
    """
    name = f"runs/{run_id}/{HEADER}"
    try:
        data = parsed(place.read(name))
    except ValueError as error:
        raise ArchiveError(f"cannot read {place.shown(name)}: {error}") from error
    if not isinstance(data, dict):
        raise ArchiveError(f"cannot read {place.shown(name)}: no JSON object")
    return RunHeader.from_dict(data)


def parsed(text: bytes) -> Any:
    r"""What a JSON text in UTF-8 says, with no halves of characters in it.

    Python marks bytes of a path that are no UTF-8 by such halves; nobody else can take
    them. They are shown as `\udcff`.

    Raises:
        ValueError: it is no JSON, or no UTF-8.
    """
    data = json.loads(text.decode("utf-8"))
    if b"\\ud" in text.lower():
        whole = _HALF.sub(_as_text, json.dumps(data, ensure_ascii=False))
        data = json.loads(whole)
    return data


def _as_text(half: re.Match[str]) -> str:
    return rf"\\u{ord(half[0]):04x}"


def read_raw(place: Place, run_id: str) -> RawRun:
    """A run as it is written; what cannot be read is named, the rest is there.

    Raises:
        ArchiveError: its header cannot be read.
    """
    return read_contents(place, run_id).parsed()


class Contents(NamedTuple):
    """A run's files, whatever is in them."""

    header: RunHeader
    files: tuple[tuple[str, bytes], ...]
    unread: tuple[str, ...]
    is_whole: bool = True
    """Whether every file could be read, whatever is in it."""

    def parsed(self) -> RawRun:
        """What can be read of them."""
        raw = RawRun(self.header, [], list(self.unread))
        for name, content in self.files:
            _parse(name, content, raw)
        return raw


def read_contents(place: Place, run_id: str) -> Contents:
    """A run's files; those that cannot be read are named.

    Raises:
        ArchiveError: its header cannot be read.
    """
    header = read_header(place, run_id)
    unread: list[str] = []
    if header.run_id != run_id:
        unread.append(f"{HEADER}: it is of the run {header.run_id!r}")
    missing: list[str] = []
    files = tuple(_contents(place, run_id, missing))
    return Contents(header, files, (*unread, *missing), is_whole=not missing)


def read_lines(place: Place, run_id: str) -> tuple[bytes, ...]:
    """The whole lines of a run's records, sense or nonsense.

    Raises:
        ArchiveError: not all of them can be read.
    """
    unread: list[str] = []
    contents = list(_contents(place, run_id, unread))
    if unread:
        raise ArchiveError(unread[0])
    return tuple(
        line for _, content in contents for line in content.splitlines() if line
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
            data = parsed(line)
        except ValueError as error:
            raw.unread.append(f"{name}:{number}: {error}")
            continue
        if not isinstance(data, dict):
            raw.unread.append(f"{name}:{number}: no JSON object")
        else:
            data[PLACE] = f"{name}:{number}"
            raw.records.append(data)


def records_of(raw: RawRun, track: Track = no_track) -> Iterator[Mapping[str, Any]]:
    """Those of a run's records that can be read; the others are named in `unread`."""
    for data in track(raw.records, "reading"):
        try:
            check_record(data)
        except ArchiveError as error:
            raw.unread.append(f"{data.get(PLACE)}: {error}")
        else:
            yield data
