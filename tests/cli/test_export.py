"""`veo export`: what other tools' own parsers find in it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shutil
import subprocess
import tracemalloc
from http.server import BaseHTTPRequestHandler
from http.server import HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from xml.etree import ElementTree

import pytest

from pytest_veo.archive.export import otel
from pytest_veo.archive.export import pprof
from pytest_veo.archive.export import run as rows
from pytest_veo.archive.record import CounterRecord
from pytest_veo.archive.record import Record
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.store import RunWriter
from pytest_veo.cli import main
from pytest_veo.units import Unit
from pytest_veo.verdict import Finding
from pytest_veo.verdict import Outcome
from pytest_veo.verdict import Verdict
from tests.archive.history import header
from tests.archive.history import record
from tests.archive.history import write


CARD = "GPU-1a2b"
LEAKS = 'tests/test_a.py::test_leaks["x\\y"\n<&>\x01]'
RUN = "20260101T000000.000000Z-000001"


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    header = RunHeader(
        run_id=RUN,
        started_at="2026-01-01T00:00:00.000+00:00",
        finished_at="2026-01-01T00:01:00.000+00:00",
        environment=(("python", "3.12.1"),),
        commit="c0ffee" * 6,
        branch="main",
        gpu="H200",
    )
    writer = RunWriter(tmp_path / "kept", header)
    leak = Finding("torch.allocated", CARD, Unit.BYTES, 0, 65536, per_run=65536.0)
    evidence = (
        "allocated  test_a.py:12  kept.append(make())  [64 KiB in 2 blocks a run]",
        "           lib/pool.py:7  return malloc(n)  [torch GPU-1a2b, 1.5 KiB a run]",
        "held by    test_a.kept",
    )
    frames = {
        "series": "stamps",
        "stats": {"spread": {"p95_ns": 16_700_000, "max_ns": 33_000_000}},
    }
    writer.add(
        Record(
            nodeid=LEAKS,
            duration_ns=2_000_000,
            test_outcome="failed",
            verdict=Verdict(Outcome.LEAK, (leak,), runs=5, evidence=evidence),
            counters=(
                CounterRecord("torch.allocated", CARD, "bytes", 0, 65536, 65536),
                CounterRecord("host.threads", "host", "count", 3, 3, 0),
            ),
            frames=(frames,),
        )
    )
    writer.add(Record(nodeid="tests/test_a.py::test_clean", test_outcome="passed"))
    writer.finish(header)
    return tmp_path / "kept"


def export(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["export", *words]) == 0
    return capsys.readouterr().out


def test_prometheus_own_parser_reads_the_textfile(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    text = export(capsys, "kept", "--format=prometheus")
    samples = {
        (sample.name, sample.labels.get("test"), sample.labels.get("counter")): sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    growth = samples["veo_growth_bytes", LEAKS, "torch.allocated"]
    assert growth.value == 65536
    assert growth.labels["device"] == CARD
    assert samples["veo_growth_per_run_bytes", LEAKS, "torch.allocated"].value == 65536
    assert samples["veo_test_duration_seconds", LEAKS, None].value == 0.002
    assert samples["veo_test_verdict", LEAKS, None].labels["verdict"] == "leak"
    assert samples["veo_frame_time_seconds", LEAKS, None].value in (0.0167, 0.033)
    assert samples["veo_run_info", None, None].labels["branch"] == "main"


def test_the_sdk_takes_every_figure(archive: Path) -> None:
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    found = rows.read(str(archive), RUN)
    count = otel.measure(found, reader)
    read = reader.get_metrics_data()
    assert read is not None
    (resource,) = read.resource_metrics
    assert resource.resource.attributes["vcs.ref.head.revision"] == "c0ffee" * 6
    metrics: dict[str, Any] = {
        metric.name: metric
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    growth = metrics["veo.torch.allocated.growth"]
    assert growth.unit == "By"
    (point,) = growth.data.data_points
    assert point.value == 65536
    assert dict(point.attributes) == {"test.case.name": LEAKS, "veo.device": CARD}
    points = [point for metric in metrics.values() for point in metric.data.data_points]
    assert len(points) == count == 7


def test_the_sdk_drops_nothing_of_a_large_run(archive: Path) -> None:
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    found = rows.read(str(archive), RUN)
    many = tuple(
        found.records[1]._replace(nodeid=f"test_a.py::test_{i}") for i in range(2500)
    )
    reader = InMemoryMetricReader()
    assert otel.measure(found._replace(records=many), reader) == 2500
    read = reader.get_metrics_data()
    assert read is not None
    (metric,) = read.resource_metrics[0].scope_metrics[0].metrics
    names = {
        dict(point.attributes or {}).get("test.case.name")
        for point in metric.data.data_points
    }
    assert len(names) == 2500


def test_metrics_arrive_at_a_collector(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        Thread(target=server.handle_request, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1/metrics"
        said = export(capsys, "kept", "--format=otel", f"--endpoint={url}")
    assert said == f"sent 7 figures of run {RUN}\n"
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )

    request = ExportMetricsServiceRequest.FromString(gzip_or_plain(taken[0]))
    metrics = request.resource_metrics[0].scope_metrics[0].metrics
    assert "veo.torch.allocated.growth" in [metric.name for metric in metrics]


def gzip_or_plain(content: bytes) -> bytes:
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


Field = tuple[int, int | bytes]


def wire(content: bytes) -> list[Field]:
    """Field numbers and values of a protobuf message, by the wire format alone."""
    found: list[Field] = []
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = content[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(content):
        tag = number()
        if tag & 7 == 0:
            found.append((tag >> 3, number()))
        else:
            assert tag & 7 == 2, "profile.proto has no other kinds"
            size = number()
            found.append((tag >> 3, content[at : at + size]))
            at += size
    return found


def packed(content: object) -> list[int]:
    assert isinstance(content, bytes)
    found, value, shift = [], 0, 0
    for byte in content:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            found.append(value)
            value = shift = 0
    return found


class Profile:
    """A pprof profile, read by the numbers that profile.proto documents."""

    def __init__(self, content: bytes) -> None:
        fields = wire(gzip.decompress(content))
        self.texts = [v.decode() for n, v in fields if n == 6 and isinstance(v, bytes)]
        messages = [
            (n, dict(wire(v))) for n, v in fields if isinstance(v, bytes) and n < 6
        ]
        self.types = [
            (self.texts[int(m[1])], self.texts[int(m[2])])
            for n, m in messages
            if n == 1
        ]
        functions = {m[1]: m for n, m in messages if n == 5}
        lines = {m[1]: dict(wire(bytes(m[4]))) for n, m in messages if n == 4}
        self.samples = [
            (
                [
                    (
                        self.texts[int(functions[lines[at][1]][2])],
                        self.texts[int(functions[lines[at].get(1, 0)].get(4, 0))],
                        lines[at].get(2, 0),
                    )
                    for at in packed(m[1])
                ],
                packed(m[2]),
            )
            for n, m in messages
            if n == 2
        ]


def test_a_leaks_lines_are_a_pprof_profile(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export(capsys, f"kept#{RUN}", "--format=pprof", "-o", "leaks.pb.gz")
    profile = Profile((tmp_path / "leaks.pb.gz").read_bytes())
    assert profile.texts[0] == ""
    assert profile.types == [("growth_objects", "count"), ("growth_space", "bytes")]
    caller = (LEAKS, "tests/test_a.py", 0)
    assert profile.samples == [
        ([("kept.append(make())", "test_a.py", 12), caller], [2, 65536]),
        ([("return malloc(n)", "lib/pool.py", 7), caller], [1, 1536]),
    ]


@pytest.mark.skipif(shutil.which("go") is None, reason="pprof comes with Go")
def test_pprof_itself_reads_the_profile(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export(capsys, f"kept#{RUN}", "--format=pprof", "-o", "leaks.pb.gz")
    words = ["go", "tool", "pprof", "-traces", "-sample_index=growth_space"]
    told = subprocess.run(
        [*words, str(tmp_path / "leaks.pb.gz")],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    kind, *samples, end = (
        " ".join(part.split()) for part in re.split(r"-+\+-+\n", told)
    )
    # It leaves out what it takes for the arguments of a C++ template.
    test = " ".join(LEAKS.replace("<&>", "").split())
    assert (kind, end) == ("Type: growth_space", "")
    assert samples == [
        f"verdict: leak 64kB kept.append(make()) {test}",
        f"verdict: leak 1.50kB return malloc(n) {test}",
    ]


def test_a_tracemalloc_snapshot_is_a_pprof_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tracemalloc.start(5)
    try:
        kept = [bytearray(10_000) for _ in range(3)]
        snapshot = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    snapshot.dump("now.snapshot")
    export(capsys, "now.snapshot", "--format=pprof", "-o", "now.pb.gz")
    content = (tmp_path / "now.pb.gz").read_bytes()
    assert content == pprof.of_snapshot(snapshot)
    profile = Profile(content)
    total = sum(values[1] for _, values in profile.samples)
    assert total == sum(trace.size for trace in snapshot.traces)
    assert any(
        values[1] > len(kept) * 10_000 and stack[0][1] == __file__
        for stack, values in profile.samples
    )


def test_junit_has_the_figures_as_properties(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = export(capsys, "kept", "--format=junit")
    suite = ElementTree.fromstring(text)[0]
    assert suite.get("failures") == "1"
    case = suite.findall("testcase")[0]
    assert case.get("classname") == "tests.test_a"
    assert case.get("name") == 'test_leaks["x\\y"\n<&>\ufffd]'
    assert {p.get("name"): p.get("value") for p in case.iter("property")} == {
        "veo.verdict": "leak",
        f"veo.torch.allocated.{CARD}.growth_bytes": "65536",
        f"veo.torch.allocated.{CARD}.per_run_bytes": "65536.0",
    }


@pytest.mark.parametrize("form", ["prometheus", "junit", "codequality", "csv", "json"])
def test_a_path_that_is_no_text_can_be_exported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    form: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write("kept", header(0), record("test_\udcff"))
    text = export(capsys, "kept", f"--format={form}")
    assert form == "codequality" or "udcff" in text


def test_code_quality_is_what_gitlab_takes(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (issue,) = json.loads(export(capsys, "kept", "--format=codequality"))
    assert issue["check_name"] == "veo leak"
    assert issue["location"] == {"path": "tests/test_a.py", "lines": {"begin": 1}}


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_table_is_written_in_parts_and_whole(
    archive: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    form: str,
) -> None:
    whole = export(capsys, "kept", f"--format={form}")
    monkeypatch.setattr("pytest_veo.cli.export._ROWS_AT_ONCE", 1)
    assert export(capsys, "kept", f"--format={form}") == whole


def test_tables_are_json_csv_and_parquet(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = json.loads(export(capsys, "kept", "--format=json"))
    assert [row["growth"] for row in listed] == [65536, 0]
    assert listed[0]["nodeid"] == LEAKS
    assert listed[1]["per_run"] is None
    text = export(capsys, "kept#last", "--format=csv", "--table=records")
    assert [row["verdict"] for row in csv.DictReader(io.StringIO(text))] == [
        "leak",
        "clean",
    ]
    where = "--where=growth > 0"
    export(capsys, "kept", "--format=parquet", "-o", "rows.parquet", where)
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(tmp_path / "rows.parquet")
    assert table.column("growth").to_pylist() == [65536]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["kept", "--format=parquet"],
            "--format=parquet needs a file: --output=FILE",
        ),
        (
            ["kept", "--format=csv", "--endpoint=http://x"],
            "--endpoint is of --format=otel only",
        ),
        (
            ["kept", "--format=junit", "--where=growth > 0"],
            "--where is of json, csv, parquet only",
        ),
        (
            ["kept#median:3", "--format=junit"],
            "RUN: 'median:3' is not one run, write its id or last",
        ),
        (["none", "--format=csv"], "there is no archive at 'none': no folder 'runs'"),
        (
            ["kept", "--format=csv", "-o", "none/x.csv"],
            "cannot write 'none/x.csv': No such file or directory",
        ),
        (["kept", "--format=csv", "-o", "."], "cannot write '.': Is a directory"),
        (
            ["bad.snapshot", "--format=pprof", "-o", "x"],
            "cannot read the snapshot 'bad.snapshot': ",
        ),
    ],
)
def test_bad_input_is_one_clear_error(
    words: list[str],
    said: str,
    archive: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "bad.snapshot").write_bytes(b"no pickle")
    assert main(["export", *words]) == 2
    assert capsys.readouterr().err.startswith(f"veo export: {said}")
