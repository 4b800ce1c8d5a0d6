from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_veo.archive.record import CounterRecord
from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.store import RunWriter
from pytest_veo.cli import main
from pytest_veo.units import Unit
from pytest_veo.verdict import CLEAN
from pytest_veo.verdict import Finding
from pytest_veo.verdict import Outcome
from pytest_veo.verdict import Verdict


CARD = "GPU-1a2b"


def grown(growth: int, *, counter: str = "host.heap", device: str = "host") -> Finding:
    return Finding(
        counter=counter,
        device=device,
        unit=Unit.BYTES,
        before=1 << 20,
        after=(1 << 20) + growth,
        per_run=float(growth),
    )


def row(
    counter: str, growth: int, unit: str = "bytes", device: str = "host"
) -> CounterRecord:
    return CounterRecord(counter, device, unit, 1000, 1000 + growth, growth)


LEAK = Record(
    nodeid="test_a.py::test_leaks",
    duration_ns=2_000_000,
    test_outcome="failed",
    verdict=Verdict(
        Outcome.LEAK,
        (grown(65536, counter="torch.allocated", device=CARD),),
        runs=12,
        reason="it grew again in 12 runs with fresh fixtures",
    ),
    counters=(
        row("torch.allocated", 65536, device=CARD),
        row("host.python_blocks", 90, "count"),
    ),
)
BIGGER_LEAK = LEAK._replace(
    nodeid="test_a.py::test_leaks_more",
    verdict=LEAK.verdict._replace(
        findings=(grown(1 << 20, counter="torch.allocated", device=CARD),)
    ),
    counters=(row("torch.allocated", 1 << 20, device=CARD),),
)
RETENTION = Record(
    nodeid="test_b.py::test_first_use",
    duration_ns=1_000_000,
    test_outcome="passed",
    verdict=Verdict(
        Outcome.RETENTION, (grown(170 << 10),), reason="it grew once and not again"
    ),
    counters=(row("host.heap", 170 << 10), row("host.python_blocks", 40, "count")),
)
NOT_JUDGED = Record(
    nodeid="test_b.py::test_fails",
    duration_ns=500_000,
    test_outcome="failed",
    verdict=Verdict(Outcome.NOT_JUDGED, reason="the test failed"),
)
QUIET = Record(
    nodeid="test_b.py::test_clean",
    duration_ns=500_000,
    test_outcome="passed",
    verdict=CLEAN,
    counters=(row("host.heap", 0), row("host.python_blocks", 35, "count")),
)
HEADER = RunHeader(
    run_id="20260102T030405.000000Z-aaaaaa",
    started_at="2026-01-02T03:04:05.000+00:00",
    environment=(("machine", "x86_64"), ("python", "3.11.7"), ("system", "Linux 6.1")),
)
FINISHED = HEADER._replace(
    finished_at="2026-01-02T03:05:00.000+00:00",
    watched=("host.heap", f"torch.allocated {CARD}"),
    not_watched=("nvml: unavailable, the NVIDIA kernel driver is not loaded",),
)


def archive(folder: Path, *records: Record, header: RunHeader = FINISHED) -> Path:
    writer = RunWriter(folder, HEADER._replace(run_id=header.run_id))
    for record in records:
        writer.add(record)
    writer.finish(header)
    return folder


def test_a_run_is_told_from_its_totals_down_to_its_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive(tmp_path, LEAK, RETENTION, NOT_JUDGED, QUIET, BIGGER_LEAK)
    assert main(["show", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert (
        said.out
        == f"""\
run 20260102T030405.000000Z-aaaaaa
  started 2026-01-02T03:04:05.000+00:00, finished 2026-01-02T03:05:00.000+00:00
  on Linux 6.1, x86_64, Python 3.11.7
5 tests in 6 ms: 1 clean, 2 leak, 1 retention, 1 not judged
leaks: 2
  test_a.py::test_leaks_more: leaked 64 KiB a run (torch.allocated on {CARD}), \
it grew again in 12 runs with fresh fixtures
  test_a.py::test_leaks: leaked 64 KiB a run (torch.allocated on {CARD}), \
it grew again in 12 runs with fresh fixtures
retention: 1
  test_b.py::test_first_use: kept 170 KiB (host.heap), it grew once and not again
not judged: 1
  test_b.py::test_fails: the test failed
watched: host.heap, torch.allocated {CARD}
not watched: 1
  nvml: unavailable, the NVIDIA kernel driver is not loaded
largest growth over a test's first run:
  host.heap
      +170 KiB  test_b.py::test_first_use
  host.python_blocks
           +90  test_a.py::test_leaks
           +40  test_b.py::test_first_use
           +35  test_b.py::test_clean
  torch.allocated on {CARD}
        +1 MiB  test_a.py::test_leaks_more
       +64 KiB  test_a.py::test_leaks
""".replace("leaks_more: leaked 64 KiB", "leaks_more: leaked 1 MiB")
    )


def test_the_largest_three_of_each_counter_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = [
        QUIET._replace(nodeid=f"t.py::test_{n}", counters=(row("host.heap", n * 64),))
        for n in range(6)
    ]
    archive(tmp_path, *many)
    main(["show", str(tmp_path)])
    said = capsys.readouterr().out
    assert re.findall(r"t\.py::test_\d", said) == [
        "t.py::test_5",
        "t.py::test_4",
        "t.py::test_3",
    ]


def test_the_last_run_is_shown_unless_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    older = FINISHED._replace(run_id="20250102T030405.000000Z-ffffff")
    archive(tmp_path, header=older)
    archive(tmp_path, QUIET)
    main(["show", str(tmp_path)])
    assert capsys.readouterr().out.startswith(f"run {FINISHED.run_id}\n")
    for words in ([tmp_path, older.run_id], [tmp_path / "runs" / older.run_id]):
        main(["show", *map(str, words)])
        assert capsys.readouterr().out.startswith(f"run {older.run_id}\n")


def test_a_run_that_was_killed_says_so_and_shows_what_was_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = RunWriter(tmp_path, HEADER)
    writer.add(QUIET)
    os.close(writer._file)
    assert main(["show", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "finished never: it was ended from outside, or still runs\n" in said
    assert "1 test in 500 us: 1 clean\n" in said


def test_a_run_in_which_nothing_was_watched_says_so_loudly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive(tmp_path, header=FINISHED._replace(watched=(), not_watched=()))
    main(["show", str(tmp_path)])
    assert capsys.readouterr().out.endswith("no test has finished\nwatched: NOTHING\n")


def test_json_has_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive(tmp_path, LEAK, QUIET)
    assert main(["show", str(tmp_path), "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["run"] == FINISHED.to_dict()
    assert [Record.from_dict(data) for data in whole["records"]] == [LEAK, QUIET]
    assert whole["unread"] == []


@pytest.mark.parametrize("json_option", [[], ["--json"]], ids=["text", "json"])
def test_a_half_written_line_is_counted_and_named_and_the_rest_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], json_option: list[str]
) -> None:
    archive(tmp_path, LEAK, QUIET)
    lines = tmp_path / "runs" / FINISHED.run_id / "records.jsonl"
    whole = lines.read_text()
    lines.write_text(whole[: whole.index("\n") + 60])
    assert main(["show", str(tmp_path), *json_option]) == 2
    said = capsys.readouterr()
    assert LEAK.nodeid in said.out
    assert re.fullmatch(
        r"veo show: 1 thing could not be read: records\.jsonl:2: .+\n", said.err
    )


def test_only_the_first_unread_lines_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive(tmp_path)
    lines = tmp_path / "runs" / FINISHED.run_id / "records.jsonl"
    lines.write_text("7\n" * 5)
    assert main(["show", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        "veo show: 5 things could not be read: records.jsonl:1: no JSON object; "
        "records.jsonl:2: no JSON object; records.jsonl:3: no JSON object; "
        "and 2 more\n"
    )


def test_a_folder_that_is_no_archive_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert (
        said.err == f"veo show: there is no archive at {str(tmp_path)!r}: "
        "no folder 'runs'\n"
    )


def test_an_archive_without_runs_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runs").mkdir()
    assert main(["show", str(tmp_path)]) == 2
    assert (
        capsys.readouterr().err
        == f"veo show: the archive {str(tmp_path)!r} has no runs yet\n"
    )


@pytest.mark.parametrize("name", ["nosuch", "../runs"])
def test_an_unknown_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    archive(tmp_path, QUIET)
    assert main(["show", str(tmp_path), name]) == 2
    assert (
        capsys.readouterr().err
        == f"veo show: there is no run {name!r} in {str(tmp_path)!r}\n"
    )


def test_an_unreadable_header_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive(tmp_path, QUIET)
    header = tmp_path / "runs" / FINISHED.run_id / "run.json"
    header.write_text("{")
    assert main(["show", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"veo show: cannot read {header}: ")


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    many = [QUIET._replace(nodeid=f"t.py::{'x' * 200}{n}") for n in range(2000)]
    archive(tmp_path, *many)
    veo = subprocess.Popen(
        [sys.executable, "-m", "pytest_veo", "show", str(tmp_path), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert veo.stdout is not None
    assert veo.stderr is not None
    veo.stdout.readline()
    veo.stdout.close()
    with veo.stderr:
        assert veo.stderr.read() == b""
    assert veo.wait(timeout=60) == 0
