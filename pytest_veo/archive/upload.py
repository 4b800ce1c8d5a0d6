"""Writes a run into a bucket, without the measured process ever touching a network.

Records go into a folder of this machine, the spool, as into any archive. A process of
its own, which is no child of pytest's, sends what is new there once in a while, as
numbered pieces. When pytest is done, or was killed, it sends what is left, and the
whole takes the place of the pieces. What could not be sent stays in the spool, which
is an archive like any other: `veo merge SPOOL -o URL` sends it later.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_veo.archive.place import Place
from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.spool import spool_folder
from pytest_veo.archive.writer import HEADER
from pytest_veo.archive.writer import RECORDS
from pytest_veo.archive.writer import RunWriter
from pytest_veo.errors import ArchiveError
from pytest_veo.errors import VeoError


_SEND_EVERY_S = 1.0
_SEND_SHARE = 0.02
"""Of the time a run has taken so far: long runs have fewer, larger pieces."""
_LAST_TRIES_S = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Waits before the tries to send what is left."""
_FOR_GOOD = (FileNotFoundError, PermissionError)
"""No bucket, or no right to it: trying again changes nothing."""
_PATIENCE_S = 60.0
"""How long a session waits for its sender at most."""
_END = b"end\n"
_IN_PROCESS = ("memory",)
"""Filesystems that another process cannot reach."""
_DETACH = 'exec 2>/dev/null; "$@" &'


class Sender:
    """Sends one run from the spool.

    Args:
        place: the bucket.
        spool: the folder with the run's files.
        run_id: the run's.
    """

    def __init__(self, place: Place, spool: Path, run_id: str) -> None:
        self._place = place
        self._spool = spool
        self._run = f"runs/{run_id}"
        self._run_id = run_id
        self._sent_bytes = 0
        self._pieces: list[str] = []
        self._is_told = False

    def send(self) -> None:
        """Send the whole lines that are new.

        Raises:
            ArchiveError: not all could be sent; the next call tries again.
        """
        if not self._is_told:
            self._send_file(HEADER)
            self._is_told = True
        with (self._spool / RECORDS).open("rb") as records:
            records.seek(self._sent_bytes)
            content = records.read()
        content = content[: content.rfind(b"\n") + 1]
        if not content:
            return
        name = f"{self._run}/records-{len(self._pieces) + 1:06}.jsonl"
        self._place.write(name, content)
        self._pieces.append(name)
        self._sent_bytes += len(content)

    def finish(self) -> None:
        """Send the whole, and take the pieces away.

        Raises:
            ArchiveError: not all could be sent; the next call tries again.
        """
        if not self._is_told:
            self._send_file(HEADER)
            self._is_told = True
        self._send_file(RECORDS)
        while self._pieces:
            self._place.remove(self._pieces[-1])
            self._pieces.pop()
        self._send_file(HEADER)

    def write_tables(self) -> None:
        """Put the run's tables beside it, where pyarrow is installed.

        Raises:
            ArchiveError: they cannot be written; the run is whole without them.
        """
        from pytest_veo.archive.parquet import write_run_tables

        write_run_tables(self._place, self._run_id)

    def _send_file(self, name: str) -> None:
        self._place.write(f"{self._run}/{name}", (self._spool / name).read_bytes())


class UrlWriter:
    """Writes one run into a bucket, record by record.

    Args:
        place: the bucket.
        header: what is known at the start.

    Raises:
        ArchiveError: this machine has no place for the spool.
    """

    def __init__(self, place: Place, header: RunHeader) -> None:
        self.header = header
        self._place = place
        self._spool = spool_folder()
        self._writer = RunWriter(self._spool, header)
        self.shown = place.shown(f"runs/{header.run_id}")
        self._sender: Sender | None = None
        self._process: _Process | None = None
        scheme = place.url.partition(":")[0]
        if scheme in _IN_PROCESS or os.name != "posix":
            self._sender = Sender(place, self._writer.folder, header.run_id)
            self._send()
        else:
            self._process = _Process(place.url, self._writer.folder)

    def add(self, record: Record | Mapping[str, Any]) -> None:
        """Write one record into the spool, from where it is sent.

        Raises:
            ArchiveError: it could not be written yet.
        """
        self._writer.add(record)
        self._send()

    def finish(self, header: RunHeader) -> None:
        """Close the run with its final header, and wait until all is sent.

        Raises:
            ArchiveError: not all could be sent; the message says where it is kept.
        """
        self._writer.finish(header)
        trouble = self._sent()
        if trouble:
            raise ArchiveError(
                f"{trouble}; the run is kept in {self._writer.folder}, send it with: "
                f"veo merge {self._spool} -o {self._place.url}"
            )

    def _send(self) -> None:
        # What fails now is tried again at the end, where it is told.
        with contextlib.suppress(ArchiveError):
            if self._sender is not None:
                self._sender.send()

    def _sent(self) -> str:
        """Why not all was sent; empty if all was."""
        if self._process is not None:
            return self._process.finish()
        assert self._sender is not None
        return finish_sending(self._sender, self._writer.folder, waits_s=(0.0,))


class _Process:
    """The process that sends, seen from the session."""

    def __init__(self, url: str, folder: Path) -> None:
        told, self._control = os.pipe()
        self._said, saying = os.pipe()
        words = [sys.executable, "-P", "-m", "pytest_veo.archive.upload"]
        words += [url, str(folder.resolve()), str(told), str(saying), str(os.getpid())]
        self._url = url
        self._trouble = ""
        try:
            # Started by a shell that ends at once: no test that counts or awaits
            # child processes meets it.
            subprocess.run(
                ["/bin/sh", "-c", _DETACH, "sh", *words],
                check=True,
                pass_fds=(told, saying),
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except (OSError, subprocess.SubprocessError) as error:
            self._trouble = f"cannot start what sends to {url}: {error}"
        finally:
            os.close(told)
            os.close(saying)

    def finish(self) -> str:
        """Have it send what is left; why that failed, or nothing."""
        try:
            with contextlib.suppress(BrokenPipeError):  # it ended before: read why
                os.write(self._control, _END)
            return self._trouble or self._answer()
        finally:
            os.close(self._control)
            os.close(self._said)

    def _answer(self) -> str:
        ends_at = time.monotonic() + _PATIENCE_S
        said = b""
        while True:
            left_s = ends_at - time.monotonic()
            if left_s <= 0 or not select.select([self._said], [], [], left_s)[0]:
                return f"cannot write {self._url}: no answer in {_PATIENCE_S:.0f} s"
            more = os.read(self._said, 65536)
            if not more:
                break
            said += more
        if not said:
            return f"cannot write {self._url}: what sends it was ended from outside"
        return str(json.loads(said)["trouble"])


def finish_sending(
    sender: Sender, folder: Path, waits_s: tuple[float, ...] = _LAST_TRIES_S
) -> str:
    """Send what is left and empty the spool; why that failed, or nothing."""
    trouble = ""
    for wait_s in waits_s:
        time.sleep(wait_s)
        try:
            sender.finish()
        except (VeoError, OSError) as error:
            trouble = str(error)
            if isinstance(error.__cause__, _FOR_GOOD):
                return trouble
            continue
        # Without its tables a run is whole: `veo compact` makes them.
        with contextlib.suppress(VeoError):
            sender.write_tables()
        for name in (RECORDS, HEADER):
            (folder / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            folder.rmdir()
        return ""
    return trouble


def _watch(sender: Sender, control: int, pid: int) -> None:
    """Send what is new until the session is done, or gone."""
    started_at = time.monotonic()
    while True:
        wait_s = max(_SEND_EVERY_S, (time.monotonic() - started_at) * _SEND_SHARE)
        if select.select([control], [], [], wait_s)[0]:
            return  # its last word, or its end
        # A child that a test forked and left behind may hold the pipe open.
        if not _is_alive(pid):
            return
        # What fails now is tried again.
        with contextlib.suppress(VeoError, OSError):
            sender.send()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def main(words: list[str]) -> None:
    """Send one run: its URL, folder, two descriptors and the session's process id."""
    url, folder_text, control, saying, pid = words
    folder = Path(folder_text)
    try:
        sender = Sender(Place(url), folder, folder.name)
        _watch(sender, int(control), int(pid))
        trouble = finish_sending(sender, folder)
    except VeoError as error:
        trouble = str(error)
    except Exception as error:
        # Nobody reads what this process says, but for this.
        trouble = f"cannot write {url}: {type(error).__name__}: {error}"
    with contextlib.suppress(BrokenPipeError):  # the session was killed
        os.write(int(saying), json.dumps({"trouble": trouble}).encode())


if __name__ == "__main__":
    main(sys.argv[1:])
