from __future__ import annotations

import json
import sys

import pytest

from tests.frames.plugin.conftest import Run


SLOW_START = """
@pytest.mark.veo_jitter(max_ms=20)
def test_loop(veo_frames):
    steady(veo_frames.series("loop", clock=lambda: 0), slow=range(10))
"""
BASELINE = """
@pytest.mark.veo_jitter(baseline="p95_ms")
def test_loop(veo_frames):
    steady(veo_frames.series("loop", clock=lambda: 0))
"""


def test_ini_lines_are_defaults_of_the_marker(run: Run) -> None:
    run(SLOW_START).assert_outcomes(failed=1)
    run(SLOW_START, ini="veo_jitter =\n  warmup = 12").assert_outcomes(passed=1)
    run(SLOW_START, ini="veo_jitter = warmup = 100 ms").assert_outcomes(failed=1)
    run(SLOW_START, ini="veo_jitter = warmup = 400 ms").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("ini", "message"),
    [
        (
            "veo_jitter = warmup",
            "*veo_jitter: 'warmup': write name = value, e.g. warmup = 30",
        ),
        (
            "veo_jitter = warmup = soon",
            "*veo_jitter: warmup: 'soon': write a duration such as '16.7 ms'",
        ),
        (
            "veo_jitter = max_over = 3",
            "*veo_jitter: max_over=3: it must be 2 numbers in brackets",
        ),
    ],
    ids=["no-value", "no-duration", "no-pair"],
)
def test_an_ini_line_that_makes_no_sense_stops_the_session(
    run: Run, ini: str, message: str
) -> None:
    result = run(SLOW_START, ini=ini)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])


@pytest.mark.parametrize(("length", "has_run"), [("5 ms", True), ("0 ms", False)])
def test_the_null_loop_has_a_length(
    pytester: pytest.Pytester, run: Run, length: str, has_run: bool
) -> None:
    source = """
@pytest.mark.veo_jitter(max_ms=60_000)
def test_loop(veo_frames):
    veo_frames.tick()
    veo_frames.tick()
"""
    conftest = """
def pytest_runtest_logreport(report):
    if report.when == "call":
        (record,) = report.veo_frames
        print("null frames", record["noise"]["frames"] > 0)
"""
    result = run(source, "-s", ini=f"veo_jitter_null = {length}", conftest=conftest)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"*null frames {has_run}"])


def test_a_null_loop_of_no_length_stops_the_session(run: Run) -> None:
    result = run(SLOW_START, ini="veo_jitter_null = soon")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: veo_jitter_null: 'soon': write a duration*"])


def test_a_baseline_grows_by_passed_runs_and_is_held(
    pytester: pytest.Pytester, run: Run
) -> None:
    ini = "veo_jitter_baseline = frames.json"
    first = run(BASELINE, "--veo-jitter-update-baseline", ini=ini)
    first.assert_outcomes(passed=1)
    first.stdout.fnmatch_lines(["*no baseline of p95_ms yet: nothing to compare with"])
    document = json.loads((pytester.path / "frames.json").read_text())
    (figures,) = document["series"].values()
    assert list(document["series"]) == ["test_suite.py::test_loop::loop"]
    assert figures["p95_ms"] == [16.2]
    run(BASELINE, ini=ini).assert_outcomes(passed=1)
    slower = BASELINE.replace("steady(", "record(").replace(
        "lambda: 0))", "lambda: 0), [24.0, 24.1, 24.2] * 150)"
    )
    result = run(slower, "--veo-jitter-update-baseline", ini=ini)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["baseline p95_ms 24.2 ms, limit 21.06 ms, in loop"])
    again = json.loads((pytester.path / "frames.json").read_text())
    assert again == document


def test_the_option_of_the_leak_check_updates_this_baseline_too(
    pytester: pytest.Pytester, run: Run
) -> None:
    conftest = """
def pytest_addoption(parser):
    parser.addoption("--veo-update-baseline", action="store_true")
"""
    ini = "veo_jitter_baseline = frames.json"
    run(BASELINE, ini=ini, conftest=conftest).assert_outcomes(passed=1)
    assert not (pytester.path / "frames.json").exists()
    run(BASELINE, "--veo-update-baseline", ini=ini, conftest=conftest)
    document = json.loads((pytester.path / "frames.json").read_text())
    assert list(document["series"]) == ["test_suite.py::test_loop::loop"]
    (pytester.path / "frames.json").write_text("[]")
    result = run(SLOW_START, "--veo-update-baseline", ini=ini, conftest=conftest)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --veo-update-baseline: *frames.json: no frame baseline: *"]
    )


def test_a_baseline_that_is_not_named_or_not_readable_fails(
    pytester: pytest.Pytester, run: Run
) -> None:
    result = run(BASELINE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["veo_jitter: the baseline is not named: set veo_jitter_baseline in the *"]
    )
    (pytester.path / "frames.json").write_text("[]")
    result = run(BASELINE, ini="veo_jitter_baseline = frames.json")
    result.stdout.fnmatch_lines(["veo_jitter: *frames.json: no frame baseline: *"])


@pytest.mark.parametrize(
    ("text", "ini", "message"),
    [
        (
            None,
            "",
            "--veo-jitter-update-baseline: name the file: set veo_jitter_baseline in *",
        ),
        ("[]", "veo_jitter_baseline = x.json", "*x.json: no frame baseline: *"),
    ],
    ids=["not-named", "no-baseline"],
)
def test_a_baseline_that_cannot_be_updated_stops_the_session(
    pytester: pytest.Pytester, run: Run, text: str | None, ini: str, message: str
) -> None:
    if text is not None:
        (pytester.path / "x.json").write_text(text)
    result = run(SLOW_START, "--veo-jitter-update-baseline", ini=ini)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])


def test_a_baseline_that_cannot_be_written_is_an_error_of_one_line(
    pytester: pytest.Pytester, run: Run
) -> None:
    result = run(
        "def test_nothing():\n    pass",
        "--veo-jitter-update-baseline",
        ini="veo_jitter_baseline = kept/x.json",
        conftest="""
from pathlib import Path

def pytest_collection_finish():
    Path("kept").write_text("")
""",
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["Exit: --veo-jitter-update-baseline: *x.json: the baseline cannot be written*"]
    )


def test_a_null_loop_has_an_end(run: Run) -> None:
    result = run(SLOW_START, ini="veo_jitter_null = 100 h")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: veo_jitter_null: *"])


def test_the_marker_is_documented(run: Run) -> None:
    result = run("", "--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.veo_jitter(*, target_fps, p50_ms, *"])


def test_the_plugin_brings_no_numpy_until_frames_are_used(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        import sys

        def test_plain():
            assert "numpy" not in sys.modules
            assert "pytest_veo.frames" not in sys.modules
        """
    )
    result = pytester.run(
        sys.executable, "-m", "pytest", "-p", "pytest_veo.frames_plugin", "-q"
    )
    result.stdout.fnmatch_lines(["1 passed*"])
