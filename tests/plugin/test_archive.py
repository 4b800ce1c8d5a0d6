"""The archive of a session: whole, in order, and there after a kill."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

# Before any test: pytester takes modules away that were imported under it, and NumPy
# cannot be imported twice.
import pandas  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pytest

import pytest_veo
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.store import Run
from pytest_veo.archive.store import load_run
from pytest_veo.archive.store import run_ids
from pytest_veo.cli import main
from pytest_veo.verdict import Outcome


if TYPE_CHECKING:
    from tests.plugin.conftest import Check


def only_run(pytester: pytest.Pytester) -> Run:
    archive = pytester.path / "kept"
    (run_id,) = run_ids(archive)
    return load_run(archive, run_id)


def test_every_test_has_a_record(check: Check, pytester: pytest.Pytester) -> None:
    result = check(
        """
        import pytest

        kept = []

        def test_clean():
            pass

        def test_leaks():
            kept.append(bytearray(100_000))

        def test_fails():
            assert False

        def test_skips():
            pytest.skip("not here")

        @pytest.mark.veo_leak(allow=True, reason="upstream #12")
        def test_allowed():
            kept.append(bytearray(100_000))
        """,
        "--veo-archive=kept",
        "--veo-reruns=5",
    )
    run = only_run(pytester)
    assert [
        (record.nodeid.partition("::")[2], record.test_outcome, record.verdict.outcome)
        for record in run.records
    ] == [
        ("test_clean", "passed", Outcome.CLEAN),
        ("test_leaks", "failed", Outcome.LEAK),
        ("test_fails", "failed", Outcome.NOT_JUDGED),
        ("test_skips", "skipped", Outcome.NOT_JUDGED),
        ("test_allowed", "passed", Outcome.ALLOWED),
    ]
    leak = run.records[1]
    assert leak.duration_ns > 0
    assert leak.started_at.endswith("+00:00")
    (heap,) = [row for row in leak.counters if row.counter == "host.heap"]
    assert heap.after - heap.before == heap.growth > 90_000
    assert heap.unit == "bytes"
    assert 3 <= leak.verdict.runs <= 5
    assert leak.verdict.findings[0].counter == "host.heap"
    assert leak.verdict.evidence
    assert run.unread == ()
    assert run.header.finished_at
    assert dict(run.header.totals) == {
        "allowed": 1,
        "clean": 1,
        "leak": 1,
        "not judged": 2,
    }
    assert "host.heap" in run.header.watched
    result.stdout.fnmatch_lines([f"archived: kept/runs/{run.header.run_id}"])


def test_a_killed_session_keeps_what_was_finished(
    check: Check, pytester: pytest.Pytester
) -> None:
    result = check(
        """
        import os
        import signal

        def test_first():
            pass

        def test_second():
            pass

        def test_dies():
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        "--veo-archive=kept",
    )
    assert result.ret == -9
    run = only_run(pytester)
    assert [record.nodeid for record in run.records] == [
        "test_it.py::test_first",
        "test_it.py::test_second",
    ]
    assert run.header.finished_at == ""


def test_a_killed_worker_does_not_take_the_others_records_along(
    check: Check, pytester: pytest.Pytester
) -> None:
    result = check(
        """
        import os
        import signal

        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_it(number):
            if number == 1:
                os.kill(os.getpid(), signal.SIGKILL)
        """,
        "--veo-archive=kept",
        "-n2",
        plugins=["xdist.plugin"],
    )
    result.assert_outcomes(passed=3, failed=1)
    names = {record.nodeid.partition("::")[2] for record in only_run(pytester).records}
    assert names == {"test_it[0]", "test_it[2]", "test_it[3]"}


def test_fixtures_that_do_not_give_back_are_kept_too(
    check: Check, pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    check(
        """
        import pytest

        kept = []

        @pytest.fixture(scope="module")
        def keeping():
            kept.append(bytearray(5_000_000))

        def test_one(keeping):
            pass
        """,
        "--veo-archive=kept",
    )
    run = only_run(pytester)
    ((name, verdict),) = run.header.fixtures
    assert (name, verdict.outcome) == ("keeping (module)", Outcome.RETENTION)
    assert RunHeader.from_dict(run.header.to_dict()) == run.header
    capsys.readouterr()
    assert main(["show", str(pytester.path / "kept")]) == 0
    shown = capsys.readouterr().out
    assert "fixtures that did not give back: 1\n  keeping (module): kept 4.8" in shown
    words = ["html", str(pytester.path / "kept"), "-o", str(pytester.path / "x.html")]
    assert main(words) == 0
    assert "keeping (module)" in (pytester.path / "x.html").read_text()


def test_numbers_and_strings_only(check: Check, pytester: pytest.Pytester) -> None:
    check(
        "def test_it(): pass\n",
        "--veo-archive=kept",
    )
    (lines,) = (pytester.path / "kept" / "runs").glob("*/records.jsonl")

    def leaves(value: object) -> list[object]:
        if isinstance(value, dict):
            return [leaf for child in value.values() for leaf in leaves(child)]
        if isinstance(value, list):
            return [leaf for child in value for leaf in leaves(child)]
        return [value]

    found = leaves(json.loads(lines.read_text()))
    assert {type(leaf) for leaf in found} <= {int, float, str, bool, type(None)}


def test_an_archive_that_fails_midway_is_told_once_and_strict_fails(
    check: Check, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest("""
        from pytest_veo.archive import store
        from pytest_veo.errors import ArchiveError

        def full(self, record):
            raise ArchiveError("cannot write it: No space left on device")

        store.RunWriter.add = full
    """)
    source = """
        def test_first():
            pass

        def test_second():
            pass
        """
    result = check(source, "--veo-archive=kept")
    assert result.ret == pytest.ExitCode.OK
    text = result.stdout.str()
    assert text.count("archive: cannot write it: No space left on device") == 1
    result = check(None, "--veo-archive=kept", "--veo-strict")
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_plugins_see_records_and_add_to_the_environment(
    check: Check, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest("""
        def pytest_veo_environment():
            return {"scene": "forest"}

        def pytest_veo_record(record):
            print("SEEN", record["nodeid"], record["verdict"]["outcome"])
    """)
    result = check("def test_it(): pass\n", "--veo-archive=kept", "-s")
    result.stdout.fnmatch_lines(["*SEEN test_it.py::test_it clean"])
    assert dict(only_run(pytester).header.environment)["scene"] == "forest"


def test_without_a_leak_check_outcomes_times_and_frames_are_kept(
    check: Check, pytester: pytest.Pytester
) -> None:
    result = check(
        """
        import pytest

        def test_passes(veo_frames):
            for number in range(50):
                veo_frames.add(number * 16_000_000)

        def test_fails():
            assert False

        def test_skips():
            pytest.skip("not here")
        """,
        "--veo-archive=kept",
        level="",
        plugins=["pytest_veo.frames_plugin"],
    )
    run = only_run(pytester)
    assert [(r.test_outcome, r.verdict.outcome) for r in run.records] == [
        ("passed", Outcome.NOT_JUDGED),
        ("failed", Outcome.NOT_JUDGED),
        ("skipped", Outcome.NOT_JUDGED),
    ]
    assert run.records[0].verdict.reason == "the leak check is off"
    assert run.records[0].duration_ns > 0
    assert [series["stats"]["frames"] for series in run.records[0].frames] == [50]
    assert run.records[1].frames == ()
    assert run.header.finished_at
    result.stdout.fnmatch_lines([f"archived: kept/runs/{run.header.run_id}"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_without_a_leak_check_workers_are_told_apart(
    check: Check, pytester: pytest.Pytester
) -> None:
    check(
        """
        import pytest

        @pytest.mark.parametrize("number", range(6))
        def test_it(number):
            pass
        """,
        "--veo-archive=kept",
        "-n2",
        level="",
        plugins=["xdist.plugin"],
    )
    run = only_run(pytester)
    assert len(run.records) == 6
    assert {record.worker for record in run.records} == {"gw0", "gw1"}


def test_frames_of_a_checked_test_are_in_its_record_and_its_table(
    check: Check, pytester: pytest.Pytester
) -> None:
    check(
        """
        import pytest

        @pytest.mark.veo_jitter(p50_ms=100)
        def test_frames(veo_frames):
            for number in range(200):
                veo_frames.add(number * 16_000_000)

        def test_none():
            pass
        """,
        "--veo-archive=kept",
        plugins=["pytest_veo.frames_plugin"],
    )
    first, second = only_run(pytester).records
    assert [series["outcome"] for series in first.frames] == ["pass"]
    assert second.frames == ()
    found = pytest_veo.load(pytester.path / "kept", "frames").set_index("statistic")
    assert found.loc["frames", "value"] == 200
    assert found.loc["p50_ns", "value"] == 16_000_000
    assert found.loc["p50_ms", "budget"] == 100
    assert found.loc["p50_ms", "verdict"] == "pass"


def test_a_record_names_the_environment_that_it_was_made_in(
    check: Check, pytester: pytest.Pytester
) -> None:
    check(
        """
        import sys
        import types

        def test_before():
            pass

        def test_imports():
            sys.modules["cupy"] = types.ModuleType("cupy")
            sys.modules["cupy"].__version__ = "99.1"

        def test_after():
            pass
        """,
        "--veo-archive=kept",
    )
    run = only_run(pytester)
    before, imports, after = run.records
    assert run.header.environment
    assert "module.cupy" not in run.environment_of(before)
    assert run.environment_of(imports)["module.cupy"] == "99.1"
    assert imports.environment == after.environment != before.environment
    assert after.environment_rows == ()
    assert run.environment_of(after) == run.environment_of(imports)
    assert dict(run.header.environment)["module.cupy"] == "99.1"


def test_an_archive_that_cannot_be_written_decides_over_no_test(
    check: Check, pytester: pytest.Pytester
) -> None:
    (pytester.path / "taken").write_text("a file")
    for level in ("fast", ""):
        result = check("def test_it(): pass\n", "--veo-archive=taken", level=level)
        assert result.ret == pytest.ExitCode.OK
        place = str(pytester.path / "taken")
        assert (
            f"archive: cannot write the archive {place!r}: Not a directory"
        ) in result.outlines


def test_a_run_knows_its_commit_branch_job_and_shard(
    check: Check, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "GITLAB_CI": "true",
        "CI_COMMIT_SHA": "c0ffee1234567",
        "CI_COMMIT_REF_NAME": "topic/x",
        "CI_JOB_NAME": "gpu",
        "CI_PIPELINE_ID": "7",
        "CI_NODE_INDEX": "2",
        "CI_NODE_TOTAL": "8",
    }.items():
        monkeypatch.setenv(name, value)
    check("def test_it(): pass\n", "--veo-archive=kept", level="")
    header = only_run(pytester).header
    assert (header.commit, header.branch) == ("c0ffee1234567", "topic/x")
    assert (header.ci, header.ci_job, header.shard) == ("gitlab", "gpu-7", "2/8")
    assert "-c0ffee1234-topic_x-gpu_7-2of8-" in header.run_id


def test_collecting_alone_archives_nothing(
    check: Check, pytester: pytest.Pytester
) -> None:
    check("def test_it(): pass\n", "--veo-archive=kept", "--collect-only")
    assert not (pytester.path / "kept").exists()
