"""Frames by the real events of PyTorch and CuPy over the simulated driver."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from pytest_veo.frames.budget import JitterBudget
from pytest_veo.frames.jitter import judge
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import FrameSeries
from pytest_veo.frames.verdict import Outcome
from tests.simgpu import contract
from tests.simgpu import fixtures
from tests.simgpu.contract import Lives


pytestmark = pytest.mark.sim

FRAMES = 120
ROUNDING_NS = 1_000
"""Links of the chain are floats of milliseconds."""


@pytest.fixture(scope="module", params=["torch", "cupy", "cupy13"])
def environment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def play(environment: str, tmp_path_factory: pytest.TempPathFactory) -> Lives:
    """Every life, lived once with each library."""
    library = environment.rstrip("13")
    where = fixtures.environment(environment)
    lives = Lives()
    lives.add(
        *contract.play(
            "frames_life.py",
            library,
            where,
            fixtures.libraries(where, library),
            tmp_path_factory.mktemp(environment),
        )
    )
    return lives


def notes(play: Lives, life: str) -> dict[str, Any]:
    (moment,) = play(life).values()
    return moment.notes


def test_the_clock_is_refused_until_the_program_uses_the_gpu(
    play: Lives, environment: str
) -> None:
    failed = notes(play, "refused_before_use")["failed"]
    if environment == "torch":
        assert failed.startswith("FramesError: CUDA frames need a GPU that the program")
    else:
        assert failed == ""  # CuPy has no such state: its events make the context


def test_every_stamp_lies_between_the_hosts_own(play: Lives) -> None:
    said = notes(play, "chained")
    stamps = np.array(said["stamps"])
    before, after = np.array(said["around"]).T
    slack = said["uncertainty"] + ROUNDING_NS
    assert len(stamps) == FRAMES
    assert (stamps >= before - slack).all()
    assert (stamps <= after + slack).all()


def test_frame_times_hold_over_every_link_of_the_chain(play: Lives) -> None:
    said = notes(play, "chained")
    intervals = np.diff(said["stamps"])
    before, after = np.array(said["around"]).T
    assert intervals.sum() > 4 * 5e6
    assert (intervals >= before[1:] - after[:-1] - ROUNDING_NS).all()
    assert (intervals <= after[1:] - before[:-1] + ROUNDING_NS).all()


@pytest.mark.parametrize("life", ["chained", "behind"])
def test_no_frame_waits_for_the_gpu(play: Lives, life: str) -> None:
    assert notes(play, life)["waited"] == 0


def test_the_barrier_is_what_waits(play: Lives) -> None:
    # The twin of the test above: had a frame waited, it would have been refused.
    refused = notes(play, "behind")["refused"]
    assert re.search("(?i)launch ?failure", refused)


def test_frames_that_the_gpu_has_not_reached_are_kept(play: Lives) -> None:
    said = notes(play, "behind")
    assert said["recorded"] == FRAMES
    assert len(said["stamps"]) == FRAMES
    assert (np.diff(said["stamps"]) >= 0).all()


def test_a_stream_of_ones_own_is_stamped(play: Lives) -> None:
    assert notes(play, "own_stream") == {
        "frames": 5,
        "event": "gpu_start",
        "clock": "cuda_event",
    }


def test_such_frames_are_judged(play: Lives) -> None:
    series = FrameSeries(
        t_ns=np.array(notes(play, "chained")["stamps"]),
        event=Event.GPU_END,
        clock=Clock.CUDA_EVENT,
        name="gpu",
        source="recorder",
        resolution_ns=500,
    )
    longest_ms = float(np.diff(series.t_ns).max()) / 1e6
    for limit_ms, outcome in ((2, Outcome.PASS), (0.5, Outcome.FAIL)):
        budget = JitterBudget(max_ms=limit_ms * longest_ms)
        assert judge(series, budget).outcome is outcome


def test_the_fixture_and_the_marker_hold_them_to_a_budget(play: Lives) -> None:
    said = notes(play, "session")
    assert said["status"] == pytest.ExitCode.TESTS_FAILED
    assert said["said"]["test_steady"] == "passed"
    assert re.fullmatch(
        r"failed max_ms [\d.]+ ms, limit 50 ms, in gpu", said["said"]["test_stall"]
    )
