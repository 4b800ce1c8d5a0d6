from __future__ import annotations

import json
import xml.etree.ElementTree

import pytest

from tests.frames.plugin.conftest import Run


SUITE = """
@pytest.mark.veo_jitter(p99_ms=20)
def test_good(veo_frames):
    steady(veo_frames.series("loop", clock=lambda: 0))

@pytest.mark.veo_jitter(p99_ms=20)
def test_bad(veo_frames):
    steady(veo_frames.series("loop", clock=lambda: 0), slow=range(0, 400, 7))

def test_own_failure(veo_frames):
    steady(veo_frames.series("loop", clock=lambda: 0))
    assert False

@pytest.mark.veo_jitter(p99_ms=20)
def test_open(veo_frames):
    steady(veo_frames.series("loop", clock=lambda: 0), count=50)
"""
KEEP_REPORTS = """
import json
import pytest

kept = {}

def pytest_runtest_logreport(report):
    if report.when == "call":
        kept[report.nodeid] = getattr(report, "veo_frames", None)

def pytest_sessionfinish(session):
    if not hasattr(session.config, "workerinput"):
        text = json.dumps(kept, allow_nan=False)
        (session.config.rootpath / "kept.json").write_text(text)
"""


@pytest.mark.parametrize(
    "options", [(), ("-p", "xdist.plugin", "-n", "2")], ids=["one-process", "xdist"]
)
def test_records_reach_the_controller_as_plain_values(
    pytester: pytest.Pytester, run: Run, options: tuple[str, ...]
) -> None:
    if options:
        pytest.importorskip("xdist")
    result = run(SUITE, *options, conftest=KEEP_REPORTS)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*= veo frames =*", "test_suite.py::test_open"])
    kept = json.loads((pytester.path / "kept.json").read_text())
    outcomes = {
        nodeid.partition("::")[2]: [each["outcome"] for each in records]
        for nodeid, records in kept.items()
    }
    assert outcomes == {
        "test_good": ["pass"],
        "test_bad": ["fail"],
        "test_own_failure": [None],
        "test_open": ["not enough frames"],
    }
    (bad,) = kept["test_suite.py::test_bad"]
    assert bad["series"] == "loop"
    assert bad["stats"]["spread"]["p99_ns"] == 30_000_000
    assert len(bad["intervals_ns"]) == 400
    assert bad["findings"][0]["rule"] == "p99_ms"


def test_junit_names_the_figure(pytester: pytest.Pytester, run: Run) -> None:
    run(SUITE, "--junitxml=out.xml")
    tree = xml.etree.ElementTree.parse(pytester.path / "out.xml")
    case = tree.find(".//testcase[@name='test_bad']")
    assert case is not None
    failure = case.find("failure")
    assert failure is not None
    assert "p99_ms 30 ms, limit 20 ms, in loop" in failure.attrib["message"]


def test_a_sweep_is_one_table(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(target_fps=60, p99_ms=20, max_drop_rate=0.1)
def test_sweep(veo_frames):
    for cell in veo_frames.sweep(depth=[2, 4], latency_ms=[8, 16]):
        bad = cell["depth"] == 2 and cell["latency_ms"] == 16
        slow = range(0, 400, 7) if bad else ()
        now = 0
        for n in range(400):
            cell.frames.add(now, sequence=n)
            now += 30_000_000 if n in slow else 16_000_000 + n % 3 * 100_000
""",
        ini="veo_jitter = on_inconclusive = pass",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "p99_ms 30 ms, limit 20 ms, in depth=2, latency_ms=16*",
            "depth  latency_ms  frames  dropped  p99 ms  order  verdict",
            "    2           8     400    0.00%    16.2      0  pass",
            "    2          16     400    *      30      0  fail",
            "    4           8     400    0.00%    16.2      0  pass",
            "    4          16     400    0.00%    16.2      0  pass",
        ]
    )


def test_a_sweep_that_holds_is_told_too(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(p99_ms=20)
def test_sweep(veo_frames):
    for cell in veo_frames.sweep(depth=[2, 4]):
        steady(cell.frames)
"""
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "test_suite.py::test_sweep",
            "depth  frames  dropped  p99 ms  order  verdict",
            "    2     401        -    16.2      -  pass",
        ]
    )


def test_async_tests_are_judged(run: Run) -> None:
    pytest.importorskip("pytest_asyncio")
    result = run(
        """
import asyncio

@pytest.mark.asyncio
@pytest.mark.veo_jitter(max_ms=20)
async def test_loop(veo_frames):
    frames = veo_frames.series("loop", clock=lambda: 0)
    await asyncio.sleep(0)
    steady(frames, slow=[3])
""",
        "-p",
        "pytest_asyncio.plugin",
        ini="asyncio_default_fixture_loop_scope = function",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["max_ms 30 ms, limit 20 ms, in loop"])


def test_a_comparison_fails_by_its_ratio_and_is_kept(
    pytester: pytest.Pytester, run: Run
) -> None:
    result = run(
        """
def test_depth(veo_frames):
    turns = veo_frames.turns("depth 4", "depth 8", pairs=5)
    for variant, frames in turns:
        record(frames, [16.0, 16.1] * 50 if variant == "depth 4" else [20.0, 20.1] * 50)
    turns.check("p95_ms", margin=0.3)
    turns.check("p95_ms", margin=0.1)
""",
        conftest=KEEP_REPORTS,
    )
    result.assert_outcomes(failed=1)
    text = (
        "depth 8 takes 1.248 [1.248, 1.248] of depth 4's p95_ms (20.1 against 16.1 ms, "
        "5 pairs of runs), allowed 1.1: fail"
    )
    assert f"AssertionError: {text}" in result.stdout.str()
    kept = json.loads((pytester.path / "kept.json").read_text())
    passed, failed = kept["test_suite.py::test_depth"]
    assert passed["comparison"]["outcome"] == "pass"
    assert failed["text"] == text


def test_a_comparison_that_passes_is_told_in_the_summary(run: Run) -> None:
    result = run(
        """
def test_depth(veo_frames):
    turns = veo_frames.turns("depth 4", "depth 8", pairs=5)
    for variant, frames in turns:
        record(frames, [16.0, 16.1] * 50)
    turns.compare("p95_ms")
"""
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*= veo frames =*",
            "test_suite.py::test_depth",
            "depth 8 takes 1.000 [[]1.000, 1.000[]] of depth 4's p95_ms (16.1 against "
            "16.1 ms, 5 pairs of runs), allowed 1.05: pass",
        ]
    )


def test_a_unittest_case_that_failed_by_itself_is_not_judged(run: Run) -> None:
    result = run(
        """
import unittest

class TestLoop(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def frames(self, veo_frames):
        self.loop = veo_frames.series("loop", clock=lambda: 0)

    @pytest.mark.veo_jitter(max_ms=20)
    def test_own_failure(self):
        steady(self.loop, slow=[3])
        self.assertEqual(1, 2)

    @pytest.mark.veo_jitter(max_ms=20)
    def test_slow_frame(self):
        steady(self.loop, slow=[3])
"""
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "FAILED *::test_own_failure - AssertionError: 1 != 2",
            "FAILED *::test_slow_frame - JitterExceeded: max_ms 30 ms, limit 20 ms, *",
        ]
    )
