from __future__ import annotations

import pytest

from tests.frames.plugin.conftest import Run


READER = """
import sys
import types

from pytest_veo.errors import FramesError
from pytest_veo.frames.series import FrameSeries

def read_series(path, **choice):
    if not path.exists():
        raise FramesError(f"{path.name}: no such capture")
    intervals = [round(float(each) * 1e6) for each in path.read_text().split()]
    name = " ".join(["game.exe", *map(str, choice.values())])
    return FrameSeries.from_intervals(
        intervals, event=choice.get("event", "present"), clock="tool", name=name,
        source=path.name, resolution_ns=100,
    )

registry = types.ModuleType("pytest_veo.readers.registry")
registry.read_series = read_series
sys.modules["pytest_veo.readers.registry"] = registry
"""
"""Stands for the readers: a file of frame times in milliseconds."""


def test_a_capture_that_the_test_wrote_is_judged(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(frames_from="run.txt", max_ms=20)
def test_game(request):
    (request.config.rootpath / "run.txt").write_text("16.5 " * 300 + "40")
""",
        conftest=READER,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["max_ms 40 ms, limit 20 ms, in game.exe"])


def test_a_capture_is_chosen_from_and_named(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(max_ms=30)
@pytest.mark.veo_jitter(
    series="game", frames_from="run.txt", process="game.exe", swapchain=7,
    event="display", max_ms=20,
)
def test_game(request, veo_frames):
    steady(veo_frames.series("loop", clock=lambda: 0))
    (request.config.rootpath / "run.txt").write_text("16.5 " * 300 + "25")
""",
        conftest=READER,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "max_ms 25 ms, limit 20 ms, in game",
            "  302 frames in *: display stamps of run.txt, clock tool, step 100 ns",
        ]
    )


def test_a_capture_that_cannot_be_read_fails_with_its_reason(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(frames_from="none.txt", max_ms=20)
def test_game():
    pass
""",
        conftest=READER,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["veo_jitter: none.txt: no such capture"])


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        (
            "max_ms=20, process='game.exe'",
            "process chooses among the series of frames_from: name it",
        ),
        ("max_ms=20, frames_from=3", "frames_from=3: it must be the path of a capture"),
    ],
    ids=["no-file", "no-path"],
)
def test_a_capture_that_is_not_named_right_stops_the_session(
    run: Run, marker: str, message: str
) -> None:
    result = run(
        f"""
@pytest.mark.veo_jitter({marker})
def test_game():
    pass
"""
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: *::test_game: veo_jitter: {message}"])
