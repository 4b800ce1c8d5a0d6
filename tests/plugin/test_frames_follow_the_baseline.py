"""The one option of both baselines: frames are held to the runs it names, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from tests.plugin.conftest import Check


FRAMES = """
import os
import pytest

@pytest.mark.veo_jitter(baseline="p95_ms", warmup=0)
def test_frames(veo_frames):
    step = int(os.environ.get("STEP_MS", "10")) * 1_000_000
    for number in range(400):
        veo_frames.add(number * step)
"""


def test_frames_are_compared_with_the_archives_runs(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = ("--veo-archive=kept", "--veo-baseline=median:20")
    plugins = ["pytest_veo.frames_plugin"]
    for _ in range(2):
        assert check(FRAMES, *args, plugins=plugins, level="").ret == 0
    monkeypatch.setenv("STEP_MS", "20")
    result = check(FRAMES, *args, plugins=plugins, level="")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*p95_ms 20 ms*limit 13 ms*"])


def test_one_update_writes_both_files(check: Check, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nveo_jitter_baseline = frames.json")
    plugins = ["pytest_veo.frames_plugin"]
    update = ("--veo-baseline=base.json", "--veo-update-baseline")
    assert check(FRAMES, *update, plugins=plugins).ret == 0
    assert "p95_ms" in (pytester.path / "frames.json").read_text()
    assert "test_frames" in (pytester.path / "base.json").read_text()


def test_a_file_of_the_leak_check_is_no_baseline_of_frames(check: Check) -> None:
    plugins = ["pytest_veo.frames_plugin"]
    result = check(FRAMES, plugins=plugins)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*the baseline is not named: set veo_jitter_baseline in the ini file, or *"]
    )
