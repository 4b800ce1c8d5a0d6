from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pytest_veo.errors import CaptureError
from pytest_veo.frames.series import Event
from pytest_veo.readers import read_capture
from tests.readers.samples import write_nsys_database


def test_presents_and_repeated_ranges_are_series(tmp_path: Path) -> None:
    file = tmp_path / "report.sqlite"
    write_nsys_database(file)
    read = read_capture(file)
    assert (read.format, read.version) == ("nsys", "sqlite")
    present, frames = read.series
    assert (present.name, present.event) == ("IDXGISwapChain::Present", Event.PRESENT)
    assert present.intervals_ns.tolist() == [16_000_000] * 5
    assert (frames.name, frames.event) == ("frame", Event.FRAME)
    assert read.pick() is present
    assert read.pick(process="frame") is frames


def test_presents_of_two_processes_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "report.sqlite"
    with closing(sqlite3.connect(file)) as database:
        database.executescript(
            "CREATE TABLE VULKAN_API (start INT, nameId INT, globalTid INT);"
            "CREATE TABLE StringIds (id INT, value TEXT);"
            "INSERT INTO StringIds VALUES (1, 'vkQueuePresentKHR');"
        )
        presents = [
            (frame * 16_000_000 + process, 1, process << 24 | 5)
            for frame in range(4)
            for process in (40, 41)
        ]
        database.executemany("INSERT INTO VULKAN_API VALUES (?, ?, ?)", presents)
        database.commit()
    assert {s.name: s.intervals_ns.tolist() for s in read_capture(file).series} == {
        "vkQueuePresentKHR[40]": [16_000_000] * 3,
        "vkQueuePresentKHR[41]": [16_000_000] * 3,
    }


def test_the_file_is_not_written_to(tmp_path: Path) -> None:
    file = tmp_path / "a folder?x=1" / "report.sqlite"
    file.parent.mkdir()
    write_nsys_database(file)
    before = file.read_bytes()
    file.chmod(0o444)
    read_capture(file)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_a_view_in_the_place_of_a_table_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "report.sqlite"
    with closing(sqlite3.connect(file)) as database:
        database.executescript(
            "CREATE VIEW DX12_API AS WITH RECURSIVE c(start) AS (SELECT 1 UNION ALL "
            "SELECT start + 1 FROM c) SELECT start, start AS end, 1 AS nameId FROM c;"
            "CREATE TABLE StringIds (id INT, value TEXT);"
            "INSERT INTO StringIds VALUES (1, 'Present');"
        )
    with pytest.raises(CaptureError, match="no call that presents"):
        read_capture(file)


def test_text_where_a_time_must_be_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "report.sqlite"
    write_nsys_database(file)
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE DX12_API SET start = 'soon' WHERE nameId = 1")
        database.commit()
    with pytest.raises(CaptureError) as caught:
        read_capture(file)
    assert (caught.value.column, caught.value.reason) == (
        "DX12_API.start",
        "'soon' is no time",
    )


def test_names_that_are_no_utf_8_are_read(tmp_path: Path) -> None:
    file = tmp_path / "report.sqlite"
    write_nsys_database(file)
    with closing(sqlite3.connect(file)) as database:
        database.execute("INSERT INTO StringIds VALUES (9, CAST(X'668d' AS TEXT))")
        database.execute("UPDATE NVTX_EVENTS SET textId = 9")
        database.commit()
    names = [series.name for series in read_capture(file).series]
    assert names == ["IDXGISwapChain::Present", "f\ufffd"]


def test_a_schema_that_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "report.sqlite"
    write_nsys_database(file)
    file.write_bytes(file.read_bytes().replace(b"StringIds", b"Str\x8dngIds"))
    with pytest.raises(CaptureError):
        read_capture(file)
