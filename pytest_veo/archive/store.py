"""Runs on disk: `<folder>/runs/<run_id>/run.json` and `records.jsonl`.

Every record is written and flushed when its test is finished: a run that is killed
keeps what was finished before. A run's folder appears whole or not at all.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import IO
from typing import TYPE_CHECKING
from typing import NamedTuple

from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.errors import ArchiveError


if TYPE_CHECKING:
    from collections.abc import Iterator


_HEADER = "run.json"
_RECORDS = "records.jsonl"


class RunWriter:
    """Writes one run, record by record."""

    def __init__(self, archive: Path, header: RunHeader) -> None:
        """Make the run's folder.

        Raises:
            ArchiveError: the folder cannot be made or written, and why.
        """
        self.header = header
        try:
            self.folder = _make_run_folder(archive, header)
            self._lines: IO[str] | None = (self.folder / _RECORDS).open(
                "a", encoding="utf-8"
            )
        except OSError as error:
            raise ArchiveError(
                f"cannot write the archive {str(archive)!r}: {error.strerror or error}"
            ) from error

    def add(self, record: Record) -> None:
        """Write one record through to the file.

        Raises:
            ArchiveError: it could not be written; earlier ones stand.
        """
        if self._lines is None:
            return
        try:
            self._lines.write(record.to_json() + "\n")
            self._lines.flush()
        except OSError as error:
            raise ArchiveError(
                f"cannot write {self.folder / _RECORDS}: {error.strerror or error}"
            ) from error

    def finish(self, header: RunHeader) -> None:
        """Close the run with its final header.

        Raises:
            ArchiveError: the header could not be written; the records stand.
        """
        if self._lines is not None:
            self._lines.close()
            self._lines = None
        try:
            _write_whole(self.folder / _HEADER, header)
        except OSError as error:
            raise ArchiveError(
                f"cannot write {self.folder / _HEADER}: {error.strerror or error}"
            ) from error


def _make_run_folder(archive: Path, header: RunHeader) -> Path:
    runs = archive / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=runs))
    try:
        draft.chmod(0o755)
        _write_whole(draft / _HEADER, header)
        (draft / _RECORDS).touch()
        target = runs / header.run_id
        draft.rename(target)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return target


def _write_whole(path: Path, header: RunHeader) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(header.to_dict(), indent=1) + "\n", encoding="utf-8")
    draft.replace(path)


class Run(NamedTuple):
    """One archived run."""

    header: RunHeader
    records: tuple[Record, ...]
    unread: tuple[str, ...] = ()
    """Lines that could not be read, as `records.jsonl:12: why`."""


def run_ids(archive: Path) -> list[str]:
    """The ids of all archived runs, oldest first (ids begin with their time).

    Raises:
        ArchiveError: there is no archive at this place.
    """
    runs = archive / "runs"
    if not runs.is_dir():
        raise ArchiveError(f"there is no archive at {str(archive)!r}: no folder 'runs'")
    return sorted(
        path.name
        for path in runs.iterdir()
        if path.is_dir() and not path.name.startswith(".")
    )


def load_run(archive: Path, run_id: str) -> Run:
    """One run; what cannot be read is named, the rest is there.

    Raises:
        ArchiveError: the run is not there, or its header cannot be read.
    """
    folder = archive / "runs" / run_id
    if run_id not in run_ids(archive):
        raise ArchiveError(f"there is no run {run_id!r} in {str(archive)!r}")
    try:
        data = json.loads((folder / _HEADER).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArchiveError(f"cannot read {folder / _HEADER}: {error}") from error
    if not isinstance(data, dict):
        raise ArchiveError(f"cannot read {folder / _HEADER}: no JSON object")
    records: list[Record] = []
    unread: list[str] = []
    for found in _read_records(folder / _RECORDS):
        (records if isinstance(found, Record) else unread).append(found)  # type: ignore[arg-type]
    return Run(
        header=RunHeader.from_dict(data), records=tuple(records), unread=tuple(unread)
    )


def _read_records(path: Path) -> Iterator[Record | str]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        yield f"{path.name}: {error.strerror or error}"
        return
    for number, line in enumerate(lines, start=1):
        try:
            data = json.loads(line)
            if not isinstance(data, dict):
                raise ArchiveError("no JSON object")
            yield Record.from_dict(data)
        except (ValueError, ArchiveError) as error:
            yield f"{path.name}:{number}: {error}"
