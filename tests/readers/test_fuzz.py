from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_veo.errors import VeoError
from pytest_veo.readers import arrow_table
from pytest_veo.readers import read_capture
from tests.readers.samples import texts
from tests.readers.samples import write_nsys_database


TEXTS = texts()
FORMATS = {
    "presentmon-v1": "presentmon",
    "presentmon-v2": "presentmon",
    "presentmon-default": "presentmon",
    "capframex-csv": "capframex",
    "mangohud-summary": "mangohud",
    "nsys-csv": "nsys",
}

splices = st.tuples(
    st.floats(0, 1),
    st.integers(0, 40),
    st.one_of(
        st.binary(max_size=6),
        st.sampled_from(
            [
                b"",
                b"\n",
                b",",
                b'"',
                b"NA",
                b"-1",
                b"1e308",
                b"99999999999999999999",
                b"\0",
                b"0x",
                b"inf",
                b"\xff\xfe",
                b"[",
                b"null",
                b"true",
                b"{}",
            ]
        ),
    ),
)


def mutated(data: bytes, edits: list[tuple[float, int, bytes]], repeat: bool) -> bytes:
    for where, length, new in edits:
        start = int(where * len(data))
        data = data[:start] + new + data[start + length :]
    return data + data if repeat else data


def survives(path: Path) -> None:
    try:
        capture = read_capture(path)
    except VeoError:
        return
    for series in capture.series:
        assert len(series) > 0
        assert (series.intervals_ns >= 0).all()
        if series.frame_times_ns is not None and not series.sampled:
            assert (series.frame_times_ns >= 0).all()
    for counter in capture.counters:
        assert 0 <= counter.dropped <= counter.total


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_the_sample_itself_is_read_by_its_reader(name: str, tmp_path: Path) -> None:
    file = tmp_path / "capture"
    file.write_text(TEXTS[name])
    assert read_capture(file).format == FORMATS.get(name, name)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_damaged_capture_is_read_or_refused_and_never_crashes(name: str) -> None:
    sample = TEXTS[name].encode()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "capture"

        @settings(max_examples=50, derandomize=True, deadline=None)
        @given(st.lists(splices, min_size=1, max_size=4), st.booleans())
        def check(edits: list[tuple[float, int, bytes]], repeat: bool) -> None:
            path.write_bytes(mutated(sample, edits, repeat))
            survives(path)

        check()


@pytest.mark.parametrize("name", ["mangohud", "plain", "presentmon-v1", "nsys-csv"])
def test_the_fast_way_says_of_damaged_tables_what_the_careful_way_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow.csv")
    sample = TEXTS[name].encode()
    path = tmp_path / "capture"

    def said(fast: bool) -> object:
        monkeypatch.setattr(
            arrow_table, "is_worth", lambda source: fast and source.encoding == "utf-8"
        )
        try:
            read = read_capture(path)
        except VeoError as error:
            return str(error)
        return read.notes, [(s.name, s.t_ns.tolist(), len(s)) for s in read.series]

    @settings(max_examples=50, derandomize=True, deadline=None)
    @given(st.lists(splices, min_size=1, max_size=2))
    def check(edits: list[tuple[float, int, bytes]]) -> None:
        path.write_bytes(mutated(sample, edits, False))
        assert said(fast=True) == said(fast=False)

    check()


def test_a_damaged_database_is_read_or_refused_and_never_crashes(
    tmp_path: Path,
) -> None:
    whole = tmp_path / "whole.sqlite"
    write_nsys_database(whole)
    sample = whole.read_bytes()
    path = tmp_path / "damaged.sqlite"

    @settings(max_examples=50, derandomize=True, deadline=None)
    @given(st.lists(splices, min_size=1, max_size=6))
    def check(edits: list[tuple[float, int, bytes]]) -> None:
        path.write_bytes(b"SQLite format 3\0" + mutated(sample[16:], edits, False))
        survives(path)

    check()


def test_a_damaged_video_is_read_or_refused_and_never_crashes(tmp_path: Path) -> None:
    pytest.importorskip("av")
    from tests.readers.test_video import write_clip

    whole = tmp_path / "whole.mp4"
    write_clip(whole, [0, 1500, 4500, 6000])
    sample = whole.read_bytes()
    path = tmp_path / "damaged.mp4"

    @settings(max_examples=50, derandomize=True, deadline=None)
    @given(st.lists(splices, min_size=1, max_size=6))
    def check(edits: list[tuple[float, int, bytes]]) -> None:
        path.write_bytes(sample[:12] + mutated(sample[12:], edits, False))
        survives(path)

    check()


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.binary(min_size=0, max_size=400))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "capture"
        path.write_bytes(data)
        survives(path)
