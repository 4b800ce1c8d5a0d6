"""Writes one run into a folder, record by record.

Every record is handed to the system when its test is finished: a run that is killed
keeps what was finished before. What the disk refuses is kept and tried again; a line is
there whole or not at all.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from typing import Protocol

from pytest_veo.archive.place import DRAFT
from pytest_veo.archive.place import Place
from pytest_veo.archive.place import replace_file
from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.errors import ArchiveError


HEADER = "run.json"
RECORDS = "records.jsonl"


def header_text(header: RunHeader) -> bytes:
    """What is written into a run's header file."""
    return (json.dumps(header.to_dict(), indent=1) + "\n").encode()


def line_of(data: Mapping[str, Any]) -> bytes:
    """A record's line."""
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


class RunWriter:
    """Writes one run, record by record.

    Args:
        archive: the folder; made if it is not there.
        header: what is known at the start.

    Raises:
        ArchiveError: the run's folder cannot be made or written, and why.
    """

    def __init__(self, archive: Path, header: RunHeader) -> None:
        self.header = header
        try:
            self.folder = _make_run_folder(archive, header)
            self._file = os.open(
                self.folder / RECORDS, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
            )
        except OSError as error:
            raise ArchiveError(
                f"cannot write the archive {str(archive)!r}: {error.strerror or error}"
            ) from error
        self._is_open = True
        self._waiting: list[bytes] = []
        """Lines that the disk has refused so far."""
        self._good_bytes = 0
        """Up to where the file holds whole lines."""

    @property
    def shown(self) -> str:
        """The run's folder, as people would name it."""
        return os.path.relpath(self.folder)

    def add(self, record: Record | Mapping[str, Any]) -> None:
        """Write one record through to the file.

        Raises:
            ArchiveError: it could not be written yet; earlier ones stand, and it is
                tried again with the next one and at the end.
        """
        data = record.to_dict() if isinstance(record, Record) else record
        self._write(line_of(data))

    def finish(self, header: RunHeader) -> None:
        """Close the run with its final header.

        Raises:
            ArchiveError: not all could be written; the records that were still stand.
        """
        try:
            self._flush()
            replace_file(self.folder / HEADER, header_text(header))
        except OSError as error:
            raise ArchiveError(
                f"cannot write {self.folder}: {error.strerror or error}"
                f"{self._put_aside(header)}"
            ) from error
        finally:
            if self._is_open:
                os.close(self._file)
                self._is_open = False

    def _put_aside(self, header: RunHeader) -> str:
        """Keep what this disk refuses on another; where, as a part of a message."""
        from pytest_veo.archive.spool import spool_folder

        archive = self.folder.parent.parent
        try:
            spool = spool_folder()
            run = spool / "runs" / header.run_id
            run.mkdir()
            (run / RECORDS).write_bytes(b"".join(self._waiting))
            (run / HEADER).write_bytes(header_text(header))
        except (ArchiveError, OSError) as error:
            return f"; {len(self._waiting)} records are lost: {error}"
        return (
            f"; what is missing is kept in {run}, add it with: "
            f"veo merge {spool} -o {archive}"
        )

    def _write(self, line: bytes) -> None:
        if not self._is_open:
            return
        self._waiting.append(line)
        try:
            self._flush()
        except OSError as error:
            raise ArchiveError(
                f"cannot write {self.folder / RECORDS}: {error.strerror or error}"
            ) from error

    def _flush(self) -> None:
        while self._waiting:
            line = self._waiting[0]
            try:
                written = 0
                while written < len(line):
                    written += os.write(self._file, line[written:])
            except OSError:
                # Half a line would take the next one along.
                os.ftruncate(self._file, self._good_bytes)
                raise
            self._good_bytes += len(line)
            del self._waiting[0]


def _make_run_folder(archive: Path, header: RunHeader) -> Path:
    runs = archive / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=runs))
    try:
        draft.chmod(0o755)
        (draft / HEADER).write_bytes(header_text(header))
        (draft / RECORDS).touch()
        target = runs / header.run_id
        draft.rename(target)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return target


class Writer(Protocol):
    """Writes one run, wherever it goes."""

    header: RunHeader

    @property
    def shown(self) -> str:
        """The run's place, as people would name it."""

    def add(self, record: Record | Mapping[str, Any]) -> None:
        """Write one record."""

    def finish(self, header: RunHeader) -> None:
        """Close the run with its final header."""


def open_writer(url: str, here: Path, header: RunHeader) -> Writer:
    """Begin a run.

    Args:
        url: a folder, or any URL that fsspec knows.
        here: what a folder's relative path begins at.
        header: what is known at the start.

    Raises:
        ArchiveError: the archive cannot be written, and why.
        MissingDependency: it is a URL, and fsspec is not installed.
    """
    place = Place(url)
    if place.folder is not None:
        return RunWriter(here / place.folder, header)
    from pytest_veo.archive.upload import UrlWriter

    return UrlWriter(place, header)
