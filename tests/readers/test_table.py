from __future__ import annotations

import codecs
import re
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_veo.errors import CaptureError
from pytest_veo.readers import arrow_table
from pytest_veo.readers import even_rows
from pytest_veo.readers import reading
from pytest_veo.readers import source
from pytest_veo.readers.columns import Kind
from pytest_veo.readers.columns import Table
from pytest_veo.readers.columns import Wanted
from pytest_veo.readers.source import open_source
from pytest_veo.readers.table import open_sheet


WANTED = (
    Wanted("t", Kind.SECONDS, required=True),
    Wanted("ms", Kind.MILLISECONDS),
    Wanted("who", Kind.TEXT),
)
DATE = Kind.DATE_TIME
CLEAN = "who,t,ms,more\na.exe,0.5,16.7,x\nb.exe,0.6,NA,x\na.exe,0.7,8.3,x\n"


def read(path: Path, data: str | bytes, name: str = "capture.csv") -> Table:
    file = path / name
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    return open_sheet(open_source(file)).read(WANTED)


def refusal(path: Path, data: str | bytes) -> str:
    with pytest.raises(CaptureError) as caught:
        read(path, data)
    return str(caught.value).replace(str(path / "capture.csv"), "capture.csv")


def values(table: Table) -> tuple[list[int], list[int], list[str]]:
    who = table["who"]
    return (
        table["t"].values.tolist(),
        table["ms"].values.tolist(),
        [who.vocabulary[code] for code in who.values],
    )


EXPECTED = (
    [500_000_000, 600_000_000, 700_000_000],
    [16_700_000, 0, 8_300_000],
    ["a.exe", "b.exe", "a.exe"],
)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(CLEAN, id="clean"),
        pytest.param(CLEAN.replace("\n", "\r\n"), id="CRLF"),
        pytest.param(codecs.BOM_UTF8 + CLEAN.encode(), id="UTF-8 with mark"),
        pytest.param(codecs.BOM_UTF16_LE + CLEAN.encode("utf-16-le"), id="UTF-16 LE"),
        pytest.param(codecs.BOM_UTF16_BE + CLEAN.encode("utf-16-be"), id="UTF-16 BE"),
        pytest.param(CLEAN.encode("utf-16-le"), id="UTF-16 without mark"),
        pytest.param(CLEAN.replace(",", ";").replace(".", ","), id="decimal comma"),
        pytest.param(CLEAN.replace(",", "\t"), id="tabs"),
        pytest.param(CLEAN.replace(",", " ,  "), id="padded cells"),
        pytest.param(
            CLEAN.replace(",", " " * 300 + "," + " " * 70), id="cells padded far"
        ),
        pytest.param(CLEAN.replace("a.exe", '"a.exe"'), id="quotes"),
        pytest.param(CLEAN.replace("\nb", "\n\n  \nb"), id="blank lines"),
        pytest.param("\n \n" + CLEAN, id="blank lines above the header"),
        pytest.param("sep=,\n" + CLEAN, id="a spreadsheet's first line"),
        pytest.param(CLEAN.replace("NA", "N/A"), id="N/A"),
        pytest.param(CLEAN.replace("NA", ""), id="empty cell"),
        pytest.param(CLEAN.replace("NA", "nan"), id="nan"),
        pytest.param(CLEAN.replace("NA", "-"), id="dash"),
        pytest.param(CLEAN.replace(",x\n", ",x,\n"), id="comma at the end of rows"),
        pytest.param(
            CLEAN.replace(",x\n", ',x, ,"",' + "," * 50_000 + "\n"),
            id="cells without end, and nothing in them",
        ),
    ],
)
def test_the_same_table_in_any_dress_reads_the_same(
    tmp_path: Path, data: str | bytes
) -> None:
    if isinstance(data, str) and ";" in data:
        data = data.replace("a,exe", "a.exe").replace("b,exe", "b.exe")
    table = read(tmp_path, data)
    assert values(table) == EXPECTED
    assert table["ms"].missing.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param("", "capture.csv: the file is empty", id="empty"),
        pytest.param(" \n\n", "capture.csv: the file is empty", id="blank"),
        pytest.param("who,T,ms\n", "capture.csv:1: no column `t`", id="no column"),
        pytest.param(
            "who,t,ms\n", "capture.csv:1: a header and no rows", id="header only"
        ),
        pytest.param(
            CLEAN.replace("16.7", "16.7.1"),
            "capture.csv:2, column 'ms': '16.7.1' is no number",
            id="no number",
        ),
        pytest.param(
            CLEAN.replace("0.6", "NA"),
            "capture.csv:3, column 't': 'NA': a value is missing that every row must "
            "have",
            id="a stamp is missing",
        ),
        pytest.param(
            CLEAN + CLEAN,
            "capture.csv:5: the header appears again: two captures in one file; split "
            "it here",
            id="two captures",
        ),
        pytest.param(
            CLEAN.replace("b.exe,0.6", "b.exe,0,6"),
            "capture.csv:3: 5 cells under a header of 4 names; a comma inside a cell "
            "needs quotes, and numbers with a decimal comma need another separator",
            id="decimal comma between commas",
        ),
        pytest.param(
            CLEAN.replace("b.exe,0.6,NA,x", "b.exe"),
            "capture.csv:3, column 't': the row ends after 1 of 4 cells",
            id="a row without stamps",
        ),
        pytest.param(
            CLEAN.replace("b.exe", '"b.exe'),
            "capture.csv:3: a quote is opened and not closed",
            id="open quote",
        ),
        pytest.param(
            CLEAN.replace("who,t,ms,more", "who,t,ms,t"),
            "capture.csv:2, column 't': 'x' is no number",
            id="a name twice, no number",
        ),
        pytest.param(
            "who,t,ms,t\na,0.5,1,0.5\na,0.6,1,0.61\n",
            "capture.csv:3, column 't': two columns have this name and different "
            "values",
            id="a name twice, values differ",
        ),
        pytest.param(
            CLEAN.encode() + b"a\0b,1,1,1\n",
            "capture.csv: a NUL byte in the text: the file is damaged",
            id="NUL",
        ),
    ],
)
def test_what_is_refused_is_told_with_its_place(
    tmp_path: Path, data: str | bytes, message: str
) -> None:
    if data and isinstance(data, bytes):
        file = tmp_path / "capture.csv"
        file.write_bytes(CLEAN.encode() * 4000 + data)
        sheet = open_sheet(open_source(file))
        with pytest.raises(CaptureError, match=r"header appears again|NUL"):
            sheet.read(WANTED)
        return
    assert refusal(tmp_path, data) == message


def test_a_name_that_appears_twice_with_equal_values_is_read(tmp_path: Path) -> None:
    table = read(tmp_path, "who,t,ms,t\na,0.5,1,0.50\na,0.6,1,0.60\n")
    assert table["t"].values.tolist() == [500_000_000, 600_000_000]


def test_short_rows_that_have_all_wanted_columns_are_read_and_told(
    tmp_path: Path,
) -> None:
    table = read(tmp_path, CLEAN.replace("0.6,NA,x", "0.6,NA"))
    assert values(table) == EXPECTED
    assert table.notes == (
        "1 rows are shorter than the header, from line 3 on; the columns that are read "
        "are all there",
    )


@pytest.mark.parametrize(
    ("tail", "rows"),
    [
        pytest.param("a.exe,0.8,8.", 3, id="cut within a number"),
        pytest.param("a.exe,0.8", 3, id="cut between cells"),
        pytest.param("a.exe,0.8,8.4,x", 4, id="whole, only the line end is missing"),
    ],
)
def test_a_last_line_cut_in_writing_is_left_out_and_told(
    tmp_path: Path, tail: str, rows: int
) -> None:
    table = read(tmp_path, CLEAN + tail)
    assert table.rows == rows
    assert bool(table.notes) == (rows == 3)
    if table.notes:
        assert table.notes == (
            "line 5: the last line has no end and may be cut in the middle of a "
            "number; it is left out",
        )


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    table = read(tmp_path, CLEAN.replace("\nb", "\n\n\nb"))
    assert table.lines.tolist() == [2, 5, 6]


def test_names_in_an_old_code_page_are_read(tmp_path: Path) -> None:
    data = CLEAN.replace("a.exe", "jeu\u00e9.exe").encode("latin-1")
    assert values(read(tmp_path, data))[2][0] == "jeu\u00e9.exe"


@pytest.mark.parametrize("worth", [0, 1 << 40], ids=["threads", "one thread"])
def test_rows_that_span_many_blocks_are_all_there(
    tmp_path: Path, worth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_WORTH_THREADS", worth)
    monkeypatch.setattr(source, "BLOCK_BYTES", 1 << 14)
    count = 6_000
    body = "".join(f"p{i % 3}.exe,{i}.25,{i % 7}.5,filler\n" for i in range(count))
    table = read(tmp_path, "who,t,ms,more\n" + body)
    assert table.rows == count
    assert table["t"].values[-1] == (count - 1) * 10**9 + 250_000_000
    assert table["ms"].values.sum() == sum(
        i % 7 * 10**6 + 500_000 for i in range(count)
    )
    assert table.lines[-1] == count + 1


@pytest.mark.parametrize("worth", [0, 1 << 40], ids=["threads", "one thread"])
def test_a_bad_cell_behind_many_blocks_has_its_line(
    tmp_path: Path, worth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_WORTH_THREADS", worth)
    monkeypatch.setattr(source, "BLOCK_BYTES", 1 << 14)
    threads = threading.active_count()
    body = "".join(f"p.exe,{i}.25,1.5,filler\n" for i in range(6_000))
    message = refusal(tmp_path, "who,t,ms,more\n" + body + "p.exe,x,1,y\n")
    assert message == "capture.csv:6002, column 't': 'x' is no number"
    assert threading.active_count() == threads


def test_a_line_without_end_is_refused_before_it_fills_memory(tmp_path: Path) -> None:
    message = refusal(tmp_path, "who,t,ms\n" + "1" * (6 << 20))
    assert message == "capture.csv: a line longer than 4 MiB: this is no capture"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("a.exe,0.5,16.7,x\nb.exe,0.6,NA,x\n", id="clean"),
        pytest.param("a.exe,0.5,16.7,x\n\nb.exe,0.6,NA,x\n", id="blank line"),
        pytest.param("a.exe,0.5, 16.7 ,x\n b.exe,0.6, NA,x\n", id="padded"),
        pytest.param('"a.exe",0.5,16.7,x\nb.exe,0.6,NA,x\n', id="quotes"),
        pytest.param("a.exe,0.5,16.7\nb.exe,0.6,NA,x\n", id="ragged"),
        pytest.param("a.exe,0.5,16.7,x\nb.exe,0.6,NA,x", id="no line end"),
    ],
)
def test_the_fast_way_reads_what_the_careful_way_reads(
    tmp_path: Path, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    text = "who,t,ms,more\n" + body
    careful = read(tmp_path, text)
    monkeypatch.setattr(arrow_table, "is_worth", lambda source: True)
    fast = read(tmp_path, text)
    assert values(fast) == values(careful)
    assert fast.lines.tolist() == careful.lines.tolist()
    assert fast["ms"].missing.tolist() == careful["ms"].missing.tolist()
    assert fast.notes == careful.notes


def test_the_fast_way_leaves_blank_lines_to_the_careful_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(arrow_table, "is_worth", lambda source: True)
    file = tmp_path / "capture.csv"
    file.write_text("n,m\n1,2\n\n3,4\n")
    table = open_sheet(open_source(file)).read([Wanted("n", Kind.INTEGER)])
    assert table["n"].values.tolist() == [1, 3]
    assert table.lines.tolist() == [2, 4]


DATES = {
    "day first": ["31-01-2024 09:05:07", "31-01-2024 09:05:08"],
    "blanks around": ["  31-01-2024 09:05:07 ", "31-01-2024 09:05:08  "],
    "no zeros": ["2024-1-31 9:05:07.123456789", "2024-1-31 10:5:7.5"],
    "no date": ["31-01-2024 09:05:07", "soon"],
    "no value": ["31-01-2024 09:05:07", ""],
}


@pytest.mark.parametrize("dates", DATES.values(), ids=DATES)
def test_the_fast_way_reads_dates_as_the_careful_way_does(
    tmp_path: Path, dates: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    file = tmp_path / "capture.csv"
    file.write_text("n,at\n" + "".join(f"{n},{at}\n" for n, at in enumerate(dates)))

    def outcome() -> str:
        sheet = open_sheet(open_source(file))
        try:
            table = sheet.read([Wanted("n", Kind.INTEGER), Wanted("at", DATE)])
        except CaptureError as error:
            return str(error)
        return f"{table['n'].values} {table['at'].values} {table.lines}"

    careful = outcome()
    monkeypatch.setattr(arrow_table, "is_worth", lambda source: True)
    assert outcome() == careful


@pytest.mark.parametrize("odd", ["", "x", '"7,8"', "77", "7.5"])
def test_a_column_beside_the_wanted_one_does_not_shift_it(
    tmp_path: Path, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = ["10"] * 200 + [odd] + ["10"] * 200
    file = tmp_path / "capture.csv"
    rows = (f"{1000 + n},{cell}\n" for n, cell in enumerate(beside))
    file.write_text("t_ns,more\n" + "".join(rows))
    monkeypatch.setattr(even_rows, "WORTH_BYTES", 0)
    table = open_sheet(open_source(file)).read([Wanted("t_ns", Kind.NANOSECONDS)])
    assert table["t_ns"].values.tolist() == list(range(1000, 1401))
    assert table.lines.tolist() == list(range(2, 403))


@pytest.mark.parametrize("cell", ["0x10", "inf", "+nan", "1e30", "7.5"])
def test_the_fast_way_leaves_what_is_no_whole_number_to_the_careful_way(
    tmp_path: Path, cell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(arrow_table, "is_worth", lambda source: True)
    file = tmp_path / "capture.csv"
    file.write_text(f"n,m\n1,a\n{cell},b\n")
    # Beside a text, whole numbers are read as floats.
    wanted = [Wanted("n", Kind.INTEGER), Wanted("m", Kind.TEXT)]
    for columns in (wanted[:1], wanted):
        with pytest.raises(CaptureError, match=re.escape(f"'{cell}' is no number")):
            open_sheet(open_source(file)).read(columns)


numbers = st.one_of(
    st.integers(0, 99_999).map(str),
    st.decimals(0, 9999, places=3).map(str),
    st.sampled_from(["", "NA", "-1", "+1", "1e3", "0x10", " 7", '"7"', "1.", "9" * 19]),
)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    st.sampled_from([(1, 5), (100, 105), (7, 12), (99_990, 100_010)]),
    st.sampled_from(["\n", "\r\n"]),
    st.lists(st.tuples(st.integers(0, 99), numbers), max_size=2),
    st.sampled_from([Kind.INTEGER, Kind.SECONDS, Kind.NANOSECONDS, Kind.REAL]),
    st.booleans(),
)
def test_equally_long_rows_are_read_as_the_careful_way_reads_them(
    span: tuple[int, int],
    end: str,
    odd: list[tuple[int, str]],
    kind: Kind,
    required: bool,
) -> None:
    cells = [[str(i), f"{i * 16}.{i % 10:03}"] for i in range(*span)]
    for place, text in odd:
        cells[place % len(cells)][place % 2] = text
    lines = ["n,t", *(",".join(row) for row in cells)]
    wanted = (Wanted("t", Kind.SECONDS, required), Wanted("n", kind, required))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "capture.csv"
        file.write_text(end.join(lines) + end, newline="")
        sheet = open_sheet(open_source(file))
        read = even_rows.read_columns(sheet, wanted)
        if not odd and span == (100, 105):
            assert read is not None
        if read is None:
            return
        careful = reading.Reading(sheet, wanted).run()
        assert careful.notes == ()
        assert read[1].tolist() == careful.lines.tolist()
        for fast, slow in zip(read[0], careful.columns, strict=True):
            assert fast.name == slow.name
            assert fast.values.tolist() == slow.values.tolist()
            assert not slow.missing.any()


def test_counters_and_stamps_of_a_large_table_take_the_short_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "capture.csv"
    file.write_text("n,t\n" + "".join(f"{i},{i * 16}.250\n" for i in range(60_000)))
    sheet = open_sheet(open_source(file))
    wanted = (Wanted("n", Kind.INTEGER), Wanted("t", Kind.MILLISECONDS))
    monkeypatch.delattr(reading.Reading, "run")
    monkeypatch.setattr(arrow_table, "is_worth", lambda source: False)
    table = sheet.read(wanted)
    assert table["t"].values[-1] == (59_999 * 16) * 10**6 + 250_000
    assert int(table["n"].values.sum()) == 59_999 * 30_000
    assert table.lines[-1] == 60_001


@pytest.mark.parametrize("cell", ["inf", "-inf", "1e400", "x", "0,5"])
def test_the_fast_way_accepts_no_more_than_the_careful_way(
    tmp_path: Path, cell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(arrow_table, "is_worth", lambda source: True)
    message = refusal(tmp_path, CLEAN.replace("8.3", cell))
    assert message.startswith("capture.csv:4")
