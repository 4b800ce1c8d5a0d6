"""Frames on the GPU's clock, by the real events of PyTorch or CuPy.

The group is the library. The simulated GPU stamps an event with the host's monotonic
clock, which is also what the anchor is read from: host stamps before and after a tick
must enclose the frame's.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from typing import Literal

import pytest

from pytest_veo.frames import cuda
from tests.simgpu.driver import CudaCode
from tests.simgpu.lives.stage import Stage
from tests.simgpu.lives.stage import failure
from tests.simgpu.lives.stage import play


LIBRARY: Literal["torch", "cupy"] = "torch" if sys.argv[1] == "torch" else "cupy"
WAITS = {
    "torch": ("cudaEventSynchronize", "cudaStreamSynchronize", "cudaDeviceSynchronize"),
    "cupy": (
        "cupy:eventSynchronize",
        "cupy:streamSynchronize",
        "cupy:deviceSynchronize",
    ),
}
FRAMES = 120

library: Any = importlib.import_module(LIBRARY)

SUITE = """
import time

import pytest


@pytest.mark.veo_jitter(series="gpu", event="gpu_end", max_ms=60_000)
def test_steady(veo_frames):
    gpu = veo_frames.cuda()
    for _ in range(30):
        gpu.tick()


@pytest.mark.veo_jitter(series="gpu", event="gpu_end", max_ms=50)
def test_stall(veo_frames):
    gpu = veo_frames.cuda(library=LIBRARY)
    for number in range(30):
        time.sleep(0.4 if number == 20 else 0)
        gpu.tick()
"""


def framework(index: int) -> dict[str, int]:
    """Memory is not what this is about."""
    return {}


def use_gpu() -> None:
    """Frames are recorded by who uses the GPU: do so."""
    if LIBRARY == "torch":
        library.empty(1, device="cuda")
    else:
        library.empty(1)


def forbid_waiting(stage: Stage) -> list[Any]:
    """From now on a synchronise is an error."""
    return [stage.sim.fail(name, CudaCode.LAUNCH_FAILURE) for name in WAITS[LIBRARY]]


def refused_before_use(stage: Stage) -> None:
    """Nothing wakes the GPU for its clock."""
    stage.step("asked", failed=failure(lambda: cuda.events_of(LIBRARY)))


def chained(stage: Stage) -> None:
    """A chain of many links, and nothing waits while frames are made."""
    use_gpu()
    cuda.CHAIN_MS = 5.0
    frames = cuda.CudaFrames(cuda.events_of(LIBRARY))
    faults = forbid_waiting(stage)
    around = []
    for _ in range(FRAMES):
        before = time.perf_counter_ns()
        frames.tick()
        around.append((before, time.perf_counter_ns()))
        time.sleep(0.0005)
    waited = sum(fault.hits for fault in faults)
    stage.sim.heal()
    stage.step(
        "recorded",
        around=around,
        stamps=frames.series().t_ns.tolist(),
        uncertainty=frames.anchor.uncertainty_ns,
        waited=waited,
    )


def behind(stage: Stage) -> None:
    """A GPU that is all frames behind: they are recorded, and read at the end."""
    use_gpu()
    frames = cuda.CudaFrames(cuda.events_of(LIBRARY))
    with stage.sim.hold_events():
        faults = forbid_waiting(stage)
        for _ in range(FRAMES):
            frames.tick()
        waited = sum(fault.hits for fault in faults)
        refused = failure(frames.barrier)
        stage.sim.heal()
        recorded = len(frames)
        stamps = frames.series().t_ns.tolist()
    stage.step("read", waited=waited, refused=refused, recorded=recorded, stamps=stamps)


def own_stream(stage: Stage) -> None:
    """Events go into the stream that is named."""
    use_gpu()
    stream = library.cuda.Stream()
    frames = cuda.CudaFrames(cuda.events_of(LIBRARY, stream), event="gpu_start")
    for _ in range(5):
        frames.tick()
    series = frames.series()
    stage.step("read", frames=len(series), event=series.event, clock=series.clock)


class Outcomes:
    """What became of each test of a session."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the outcome, and of a failure its first line."""
        if report.when == "call":
            name = report.nodeid.partition("::")[2]
            first = report.longreprtext.partition("\n")[0]
            self.said[name] = f"{report.outcome} {first}".strip()


def session(stage: Stage) -> None:
    """The fixture and the marker, in a session of pytest."""
    use_gpu()
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder) / "test_frames.py"
        suite.write_text(f"LIBRARY = {LIBRARY!r}\n{SUITE}", encoding="utf-8")
        outcomes = Outcomes()
        plugins = ("-p", "pytest_veo.frames_plugin", "-p", "no:cacheprovider")
        status = pytest.main(
            [*plugins, "-q", "--rootdir", folder, str(suite)], [outcomes]
        )
    stage.step("over", status=int(status), said=outcomes.said)


GROUPS = dict.fromkeys(
    ("torch", "cupy"), (refused_before_use, chained, behind, own_stream, session)
)


if __name__ == "__main__":
    play(framework, (), GROUPS)
