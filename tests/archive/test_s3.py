"""S3 as a server on this machine speaks it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_veo
from pytest_veo.archive.compact import compact
from pytest_veo.archive.merge import merge
from pytest_veo.archive.query import Engine
from pytest_veo.archive.retention import Limits
from pytest_veo.archive.retention import prune
from pytest_veo.archive.store import load_run
from pytest_veo.archive.store import run_ids
from pytest_veo.errors import ArchiveError
from tests.archive.history import NOW
from tests.archive.history import header
from tests.archive.history import record
from tests.archive.history import write
from tests.archive.history import write_history
from tests.archive.server import s3_server


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as address:
        yield address


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    import s3fs

    for name, value in {
        "AWS_ENDPOINT_URL": server,
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    name = f"bucket-{uuid.uuid4().hex}"
    s3fs.S3FileSystem.clear_instance_cache()
    s3fs.S3FileSystem().mkdir(name)
    yield name
    s3fs.S3FileSystem.clear_instance_cache()


def test_an_archive_in_a_bucket_is_written_read_gathered_asked_and_pruned(
    bucket: str, tmp_path: Path
) -> None:
    url = f"s3://{bucket}/team/archive"
    runs = write_history(tmp_path, runs=1)
    runs.append(write(url, header(1), record("test_x", 1), record("test_y", 1)))
    assert merge([tmp_path], url).added == (runs[0],)
    assert run_ids(url) == runs
    run = load_run(url, runs[1])
    assert run.header == header(1)
    assert [each.counters[0].growth for each in run.records] == [1, 1]
    before = pytest_veo.load(url)
    assert len(before) == 8
    assert compact(url, now=NOW).runs == 2
    found = Engine(url).sql(
        "SELECT run_id, sum(growth) FROM counters WHERE nodeid = ? GROUP BY ALL "
        "ORDER BY 1",
        "test_a.py::test_x",
    )
    assert found == [(runs[0], 0), (runs[1], 1)]
    assert prune(url, Limits(keep=1), now=NOW).removed == (runs[0],)
    assert set(pytest_veo.load(url)["run_id"]) == {runs[1]}


def test_a_bucket_that_is_not_there_is_named(bucket: str) -> None:
    with pytest.raises(ArchiveError, match="there is no archive at 's3://gone-"):
        pytest_veo.load(f"s3://gone-{bucket}/archive")


def test_a_session_without_its_bucket_passes_and_says_where_the_records_are(
    bucket: str,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    spool: Path,
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile("def test_it(): pass")
    url = f"s3://gone-{bucket}/archive"
    options = ("-ppytest_veo.plugin", f"--veo-archive={url}")
    result = pytester.runpytest_subprocess(*options, timeout=100)
    assert result.ret == pytest.ExitCode.OK
    said = " ".join(result.outlines)
    assert f"archive: cannot write {url}/runs/" in said
    assert f"veo merge {spool} -o {url}" in said
    assert len(load_run(spool, *run_ids(spool)).records) == 1
