"""A capture file as bytes and text: its encoding, its head, its blocks of lines.

Everything here is bounded: a head of 64 KiB decides about the format, tables go
through in blocks, and a document that must be read whole has a stated limit.
"""

from __future__ import annotations

import codecs
import io
import json
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_veo.errors import CaptureError
from pytest_veo.units import format_bytes


HEAD_BYTES = 64 << 10
BLOCK_BYTES = 2 << 20
LONGEST_LINE_BYTES = 4 << 20
MOST_DOCUMENT_BYTES = 256 << 20

_SURELY_TEXT = 512
"""Bytes without a NUL that no binary format begins with."""
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One capture file, looked at but not yet read."""

    path: Path
    name: str
    """The file as the caller named it: what messages say."""
    size_bytes: int
    magic: bytes
    """The first bytes as they are, for formats that are no text."""
    encoding: str | None
    """None for a file that is no text."""
    bom_bytes: int
    head: tuple[str, ...]
    """The first lines (64 KiB at most), without line ends; the last may be cut."""

    @property
    def is_text(self) -> bool:
        """Whether the file can be read as lines."""
        return self.encoding is not None

    def error(
        self, reason: str, *, line: int | None = None, column: str | None = None
    ) -> CaptureError:
        """An error about this file, to be raised."""
        return CaptureError(self.name, reason, line=line, column=column)

    def blocks(self) -> Iterator[bytes]:
        """The text as UTF-8 in blocks of whole lines, each ended by a newline.

        The last block carries what follows the last line end, ended or not.

        Raises:
            CaptureError: a byte that is no text, or a line beyond all measure.
        """
        rest = b""
        with self.path.open("rb") as file:
            file.seek(self.bom_bytes)
            for piece in self._decoded(file):
                joined = rest + piece if rest else piece
                cut = joined.rfind(b"\n") + 1
                rest = joined[cut:]
                if len(rest) > LONGEST_LINE_BYTES:
                    limit = format_bytes(LONGEST_LINE_BYTES)
                    raise self.error(f"a line longer than {limit}: this is no capture")
                if cut:
                    yield joined[:cut]
        if rest:
            yield rest

    def lines(self) -> Iterator[str]:
        """The text line by line, without line ends."""
        for block in self.blocks():
            text = block.decode("utf-8", "replace").removesuffix("\n")
            for line in text.split("\n"):
                yield line.removesuffix("\r")

    def numbered_lines(self) -> Iterator[tuple[int, str, bool]]:
        """The lines, each with its number from 1 and whether it lacks its end."""
        is_ended = self.is_ended()
        number, last = 0, None
        for line in self.lines():
            if last is not None:
                yield number, last, False
            number, last = number + 1, line
        if last is not None:
            yield number, last, not is_ended

    def is_ended(self) -> bool:
        """Whether the last line has its end; else it may have been cut in writing."""
        with self.path.open("rb") as file:
            file.seek(-min(self.size_bytes, 4), io.SEEK_END)
            # The other bytes of a wide character are 0.
            return file.read(4).rstrip(b"\0").endswith(b"\n")

    def text(self) -> str:
        """The whole text.

        Raises:
            CaptureError: the file is larger than a document may be.
        """
        self._check_size()
        return b"".join(self.blocks()).decode("utf-8", "replace")

    def document(self) -> Any:
        """The file as JSON; `NaN` and `Infinity` are read as null.

        A document a line (JSON Lines) is read as a list of them.

        Raises:
            CaptureError: no JSON, with the line and column where it stops.
        """
        text = self.text()
        try:
            return json.loads(text, parse_constant=lambda _: None)
        except json.JSONDecodeError as error:
            if error.msg == "Extra data" and (lines := _json_lines(text)) is not None:
                return lines
            place = f"column {error.colno}"
            raise self.error(
                f"no JSON at {place}: {error.msg}", line=error.lineno
            ) from error
        except (RecursionError, ValueError) as error:
            raise self.error(f"no JSON that can be read: {error}") from error

    def _check_size(self) -> None:
        if self.size_bytes > MOST_DOCUMENT_BYTES:
            size = format_bytes(self.size_bytes)
            limit = format_bytes(MOST_DOCUMENT_BYTES)
            raise self.error(f"{size}: a capture of this format may have {limit}")

    def _decoded(self, file: io.BufferedReader) -> Iterator[bytes]:
        if self.encoding == "utf-8":
            # Old Macs aside, a lone carriage return is no line end.
            while piece := file.read(BLOCK_BYTES):
                if b"\0" in piece:
                    raise self.error("a NUL byte in the text: the file is damaged")
                yield piece
            return
        assert self.encoding is not None
        decoder = codecs.getincrementaldecoder(self.encoding)()
        try:
            while piece := file.read(BLOCK_BYTES):
                yield decoder.decode(piece).encode("utf-8", "replace")
            yield decoder.decode(b"", final=True).encode("utf-8", "replace")
        except UnicodeDecodeError as error:
            raise self.error(
                f"no valid {self.encoding}: {error.reason}; the file is cut"
            ) from error


def _json_lines(text: str) -> list[Any] | None:
    try:
        return [
            json.loads(line, parse_constant=lambda _: None)
            for line in text.splitlines()
            if line.strip()
        ]
    except (ValueError, RecursionError):
        return None


def open_source(path: str | Path) -> Source:
    """Look at a capture file: its size, its encoding, its first lines.

    Raises:
        CaptureError: the file is not there, is no file, or is empty.
    """
    name = str(path)
    where = Path(path)
    start = b""
    try:
        status = where.stat()
        # Opening a pipe would wait for whoever writes into it.
        if stat.S_ISREG(status.st_mode):
            with where.open("rb") as file:
                start = file.read(HEAD_BYTES)
    except FileNotFoundError as error:
        raise CaptureError(name, "there is no such file") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CaptureError(name, f"cannot be opened: {reason}") from error
    if stat.S_ISDIR(status.st_mode):
        raise CaptureError(name, "a folder: name the capture in it")
    if not stat.S_ISREG(status.st_mode):
        raise CaptureError(name, "a pipe or a device: save what it tells in a file")
    if not start.strip():
        raise CaptureError(name, "the file is empty")
    encoding, bom_bytes = _encoding_of(start)
    head: tuple[str, ...] = ()
    if encoding is not None:
        text = start[bom_bytes:].decode(encoding, "replace")
        head = tuple(line.removesuffix("\r") for line in text.split("\n"))
        if not text.strip():
            raise CaptureError(name, "the file is empty")
    return Source(
        path=where,
        name=name,
        size_bytes=status.st_size,
        magic=start[:256],
        encoding=encoding,
        bom_bytes=bom_bytes,
        head=head,
    )


def _encoding_of(start: bytes) -> tuple[str | None, int]:
    for bom, encoding in _BOMS:
        if start.startswith(bom):
            return encoding, len(bom)
    # What begins as text and has a NUL further on was damaged; reading it says so.
    if b"\0" not in start[:_SURELY_TEXT]:
        return "utf-8", 0
    # UTF-16 without a mark: plain text has a NUL in every second byte.
    probe = start[: len(start) & ~1][:1024]
    even, odd = probe[0::2].count(0), probe[1::2].count(0)
    half = len(probe) // 2
    if odd > 0.9 * half and even == 0:
        return "utf-16-le", 0
    if even > 0.9 * half and odd == 0:
        return "utf-16-be", 0
    return None, 0
