from __future__ import annotations

import bz2
import gzip
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pytest_veo.errors import CaptureError
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.readers import Capture
from pytest_veo.readers import CapturedSeries
from pytest_veo.readers import read_capture
from pytest_veo.readers import read_frames
from pytest_veo.readers import registry
from pytest_veo.readers.source import Source


class TickReader:
    """A format of a third party, in one class."""

    name = "ticks"

    def claims(self, source: Source) -> bool:
        return bool(source.head) and source.head[0] == "TICKS 1"

    def read(self, source: Source) -> Capture:
        stamps = np.array([int(line) for line in source.lines() if line.isdigit()])
        series = CapturedSeries(
            t_ns=stamps, event=Event.FRAME, clock=Clock.TOOL, tool="ticks"
        )
        return Capture(file=source.name, format=self.name, series=(series,))


@pytest.fixture
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_added", [])


@pytest.mark.usefixtures("_own_registry")
def test_a_format_can_be_added_in_one_class(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("TICKS 1\n10\n30\n")
    with pytest.raises(CaptureError, match="no known capture format"):
        read_capture(file)
    registry.register_reader(TickReader())
    assert read_frames(file)[0].intervals_ns.tolist() == [20]


@pytest.mark.usefixtures("_own_registry")
def test_a_reader_of_the_same_name_replaces_the_earlier() -> None:
    first, second = TickReader(), TickReader()
    registry.register_reader(first)
    registry.register_reader(second)
    assert registry.readers()[0] is second
    assert first not in registry.readers()


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    pipe, loop = tmp_path / "pipe", tmp_path / "loop"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    for file, reason in (
        (tmp_path / "gone.csv", "there is no such file"),
        (tmp_path, "a folder: name the capture in it"),
        (pipe, "a pipe or a device: save what it tells in a file"),
        (loop, "cannot be opened: Too many levels of symbolic links"),
        (Path("a\0b"), "cannot be opened: embedded null byte"),
    ):
        with pytest.raises(CaptureError) as caught:
            read_capture(file)
        assert str(caught.value) == f"{file}: {reason}"


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_packed_file_is_to_be_unpacked(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    file = tmp_path / "log.csv.gz"
    file.write_bytes(pack(b"t_ms\n1\n2\n"))
    with pytest.raises(CaptureError, match=r"a packed file: unpack it first$"):
        read_capture(file)


def test_a_table_without_units_says_how_to_name_them(tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    file.write_text("timestamp,frametime\n1.0,16.6\n")
    with pytest.raises(CaptureError, match=r"column's name: t_ms, frame_ms\); known"):
        read_capture(file)


def test_a_file_of_no_format_says_how_it_begins(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("Dear diary\n")
    with pytest.raises(CaptureError) as caught:
        read_capture(file)
    assert caught.value.reason == (
        "no known capture format (it begins 'Dear diary'); known are nsys, video, "
        "capframex, perfdog, macrobenchmark, webrtc, android, obs, summary, "
        "afterburner, mangohud, frameview, ocat, presentmon, plain"
    )


def test_importing_the_readers_imports_no_heavy_library() -> None:
    code = (
        "import sys, pytest_veo.readers.registry as r; r.readers();"
        "heavy = {'pandas', 'pyarrow', 'av', 'scipy', 'websockets'} & set(sys.modules);"
        "sys.exit(', '.join(heavy))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == ""
