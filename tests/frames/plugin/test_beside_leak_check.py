"""Leak check and frames in one session: what they need is no test's growth."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from pytest_veo.frames_reports import Spool
from tests.frames.plugin.conftest import INI
from tests.frames.plugin.conftest import Run


SUITE = """
import pytest

kept = []
limits = pytest.mark.veo_jitter(max_ms=60_000, p99_ms=60_000)

@limits
def test_ticks(veo_frames):
    for _ in range(20_000):
        veo_frames.tick()

@limits
def test_blocks(veo_frames):
    for number in range(3_000):
        with veo_frames.frame(sequence=number, render_scale=1.0) as frame:
            frame.mark("submit")

@limits
def test_cells(veo_frames):
    for cell in veo_frames.sweep(depth=[2, 4]):
        for _ in range(500):
            cell.frames.tick()

def test_without_a_budget(veo_frames):
    for _ in range(20_000):
        veo_frames.tick()

@limits
def test_leaks(veo_frames):
    kept.append(bytearray(1_572_832))
    for _ in range(400):
        veo_frames.tick()
"""


@pytest.mark.parametrize("level", ["fast", "deep"])
def test_what_frames_need_is_nobodys_growth(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "200")
    pytester.makeini(f"{INI}\nveo_jitter_null = 20 ms\n")
    pytester.makepyfile(SUITE)
    plugins = ("-p", "pytest_veo.plugin", "-p", "pytest_veo.frames_plugin")
    said = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, f"--veo-leak-check={level}"],
        cwd=pytester.path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    ).stdout
    assert "1 failed, 4 passed" in said
    told = said.partition("= veo =")[2].partition("= veo frames =")[0]
    # The same from malloc's heap and from a mapping of its own, to the printed digit.
    assert "::test_leaks: leaked 1.5 MiB a run (host.heap)\n" in told
    # Of suspicions nobody followed up the largest is told: an empty test's, as like.
    lines = [line for line in told.splitlines() if "the largest is" not in line]
    blamed = [line for line in lines if "::" in line]
    assert len(blamed) == 1, told


RERUNS = """
class Rerun:
    pass

def pytest_runtest_protocol(item, nextitem):
    if "again" in item.name:
        item.config.pluginmanager.register(Rerun(), "veo-rerun")
"""


def test_a_run_for_the_leak_check_is_not_judged_again(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(max_ms=20)
def test_loop(veo_frames):
    steady(veo_frames.series("loop", clock=lambda: 0), slow=[3])

@pytest.mark.veo_jitter(max_ms=20)
def test_loop_again(veo_frames):
    steady(veo_frames.series("loop", clock=lambda: 0), slow=[3])
""",
        conftest=RERUNS,
    )
    result.assert_outcomes(passed=1, failed=1)


def test_reports_hold_their_records_while_they_are_logged(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(max_ms=20)
def test_loop(veo_frames):
    steady(veo_frames.series("loop", clock=lambda: 0))
""",
        "-s",
        conftest="""
seen = []

def pytest_runtest_logreport(report):
    if report.when == "call":
        seen.append(report)
        print("logged with", len(report.veo_frames[0]["intervals_ns"]))

def pytest_sessionfinish():
    print("kept", hasattr(seen[0], "veo_frames"))
""",
    )
    result.stdout.fnmatch_lines(["*logged with 400", "*kept False"])


def test_records_come_back_from_the_file_as_they_were() -> None:
    spool = Spool()
    first: list[dict[str, Any]] = [
        {"series": "a", "intervals_ns": [1, 2, 1 << 62]},
        {"series": "b", "intervals_ns": None},
        {"sweep": [], "text": "Größe"},
        {"series": "c", "intervals_ns": []},
    ]
    second = [{"series": "d", "intervals_ns": [5]}]
    slips = [spool.write(first), spool.write(second)]
    assert [spool.read(slip, whole=True) for slip in slips] == [first, second]
    (light,) = spool.read(slips[1], whole=False)
    assert light == {"series": "d", "intervals_ns": 1}
    spool.close()
