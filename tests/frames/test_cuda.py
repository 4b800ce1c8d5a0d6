from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pytest_veo.errors import FramesError
from pytest_veo.frames.collection import Frames
from pytest_veo.frames.cuda import CudaFrames
from pytest_veo.frames.cuda import CupyEvents
from pytest_veo.frames.cuda import EventSource
from pytest_veo.frames.cuda import TorchEvents
from pytest_veo.frames.cuda import events_of
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from tests.frames.shapes import MS


class Gpu:
    """A device that passes events some time after they are recorded."""

    def __init__(self, behind_ns: int = 0) -> None:
        self.now_ns = 0
        self.behind_ns = behind_ns
        self.waits = 0
        self.made = 0

    def host_ns(self) -> int:
        self.now_ns += 1000
        return self.now_ns


class DeviceEvent:
    """What the libraries' events have in common."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.at_ns = -1
        gpu.made += 1

    def record(self, stream: object = None) -> None:
        self.at_ns = self.gpu.now_ns + self.gpu.behind_ns

    def query(self) -> bool:
        return self.gpu.now_ns >= self.at_ns

    @property
    def done(self) -> bool:
        return self.query()

    def synchronize(self) -> None:
        self.gpu.waits += 1
        self.gpu.now_ns = max(self.gpu.now_ns, self.at_ns)

    def elapsed_time(self, later: DeviceEvent) -> float:
        assert self.query()
        assert later.query()
        return float(np.float32((later.at_ns - self.at_ns) / 1e6))


def fake_torch(gpu: Gpu, *, initialised: bool = True) -> types.ModuleType:
    torch: Any = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(
        Event=lambda enable_timing: DeviceEvent(gpu),
        current_stream=lambda: "stream 0",
        is_initialized=lambda: initialised,
    )
    module: types.ModuleType = torch
    return module


def fake_cupy(gpu: Gpu) -> types.ModuleType:
    cupy: Any = types.ModuleType("cupy")
    cupy.cuda = types.SimpleNamespace(
        Event=lambda: DeviceEvent(gpu),
        get_current_stream=lambda: "stream 0",
        get_elapsed_time=lambda start, end: start.elapsed_time(end),
    )
    module: types.ModuleType = cupy
    return module


Sources = Callable[[Gpu], EventSource]


@pytest.fixture(params=["torch", "cupy"])
def events(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Sources:
    def make(gpu: Gpu) -> EventSource:
        fake = fake_torch if request.param == "torch" else fake_cupy
        monkeypatch.setitem(sys.modules, request.param, fake(gpu))
        return events_of(request.param)

    return make


def test_frames_are_stamped_on_the_gpus_clock(events: Sources) -> None:
    gpu = Gpu(behind_ns=30 * MS)
    frames = CudaFrames(events(gpu), clock=gpu.host_ns)
    begin = gpu.now_ns
    for _ in range(50):
        gpu.now_ns += 16 * MS
        frames.tick()
    series = frames.series()
    assert (series.event, series.clock) == (Event.GPU_END, Clock.CUDA_EVENT)
    assert series.intervals_ns.tolist() == pytest.approx([16 * MS] * 49, abs=100)
    assert abs(int(series.t_ns[0]) - (begin + 46 * MS)) <= 15 * MS
    assert series.resolution_ns == 500


def test_nothing_waits_for_the_gpu_between_frames(events: Sources) -> None:
    gpu = Gpu(behind_ns=40 * MS)
    frames = CudaFrames(events(gpu), clock=gpu.host_ns)
    assert gpu.waits == 1
    for _ in range(100):
        gpu.now_ns += 16 * MS
        frames.tick()
    assert gpu.waits == 1
    assert len(frames) == 100
    frames.series()
    assert gpu.waits == 2


def test_events_are_used_again_once_they_have_passed(events: Sources) -> None:
    gpu = Gpu(behind_ns=40 * MS)
    frames = CudaFrames(events(gpu), clock=gpu.host_ns)
    for _ in range(1000):
        gpu.now_ns += 16 * MS
        frames.tick()
    assert gpu.made < 10


def test_the_anchor_stands_between_two_host_stamps(events: Sources) -> None:
    gpu = Gpu(behind_ns=2 * MS)
    frames = CudaFrames(events(gpu), clock=gpu.host_ns)
    assert frames.anchor.uncertainty_ns == pytest.approx(1 * MS, rel=0.01)
    assert frames.anchor.host_ns == pytest.approx(1 * MS, rel=0.01)


def test_a_long_run_keeps_its_stamps_to_a_few_microseconds(events: Sources) -> None:
    gpu = Gpu()
    frames = CudaFrames(events(gpu), clock=gpu.host_ns)
    rng = np.random.default_rng(5)
    offset = gpu.now_ns - frames.anchor.host_ns
    for _ in range(36_000):
        gpu.now_ns += int(rng.integers(15 * MS, 18 * MS))
        frames.tick()
    series = frames.series()
    drift = abs(gpu.now_ns - offset - int(series.t_ns[-1]))
    assert gpu.now_ns > 580 * 1_000 * MS
    assert drift < 20_000
    assert (series.intervals_ns >= 14.99 * MS).all()
    assert (series.intervals_ns <= 18.01 * MS).all()


def test_a_barrier_waits_for_the_last_frame_only(events: Sources) -> None:
    gpu = Gpu(behind_ns=40 * MS)
    frames = CudaFrames(events(gpu), clock=gpu.host_ns)
    frames.barrier()
    assert gpu.waits == 1
    frames.tick()
    due = gpu.now_ns + 40 * MS
    frames.barrier()
    assert (gpu.waits, gpu.now_ns) == (2, due)


def test_a_stream_of_ones_own_is_recorded_into(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, streams = Gpu(), []
    monkeypatch.setattr(
        DeviceEvent, "record", lambda event, stream: streams.append(stream)
    )
    monkeypatch.setitem(sys.modules, "torch", fake_torch(gpu))
    source = TorchEvents("mine")
    source.record(source.make())
    TorchEvents().record(source.make())
    assert streams == ["mine", "stream 0"]


def test_a_library_that_is_not_in_use_is_not_brought_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    for make in (TorchEvents, CupyEvents):
        with pytest.raises(FramesError, match=r"is not imported$"):
            make()
    with pytest.raises(FramesError, match=r"neither torch nor cupy is imported$"):
        events_of()
    assert "torch" not in sys.modules
    with pytest.raises(
        FramesError, match=r"^no CUDA events of 'jax': use torch or cupy"
    ):
        events_of("jax")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "torch", fake_torch(Gpu(), initialised=False))
    with pytest.raises(FramesError, match="PyTorch has not initialised CUDA yet"):
        events_of()


def test_gpu_frames_are_a_series_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu()
    monkeypatch.setitem(sys.modules, "torch", fake_torch(gpu))
    frames = Frames()
    for _ in range(3):
        gpu.now_ns += 16 * MS
        frames.cuda().tick()
    recorded = frames.recorded()
    assert list(recorded) == ["gpu"]
    assert recorded["gpu"].intervals_ns.tolist() == [16 * MS] * 2
    with pytest.raises(FramesError, match="this test has a series 'gpu' already"):
        frames.series("gpu")
