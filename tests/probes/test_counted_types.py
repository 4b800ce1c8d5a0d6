from __future__ import annotations

import gc

import pytest

from pytest_veo.memory.snapshot import HOST
from pytest_veo.probes.base import Probe
from pytest_veo.probes.cuda_objects import CudaObjectsProbe
from pytest_veo.probes.live_objects import count_live
from pytest_veo.probes.live_objects import is_countable
from pytest_veo.probes.onnxruntime_sessions import OnnxruntimeSessionsProbe
from tests.probes.conformance import ProbeConformance
from tests.probes.stubs import StubWatch
from tests.probes.stubs import by_name
from tests.probes.stubs import install
from tests.probes.stubs import said


class Stream:
    pass


class Event:
    pass


class ForeignStream(Stream):
    """A subclass that only wraps what someone else owns."""


class Session:
    pass


class Suspicious(type):
    def __hash__(cls) -> int:
        pytest.fail("a metaclass was asked for a hash")

    def __eq__(cls, _other: object) -> bool:
        pytest.fail("a metaclass was asked to compare")

    def __instancecheck__(cls, _instance: object) -> bool:
        pytest.fail("isinstance was asked")


class Lazy(metaclass=Suspicious):
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        pytest.fail("__class__ was asked")


class TestCudaObjectsProbe(ProbeConformance):
    can_break = False  # Python's own collector is the source

    def make_probe(self) -> Probe:
        self.watch = StubWatch()
        return CudaObjectsProbe(self.watch)

    def start_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        install(monkeypatch, torch__cuda={"Stream": Stream})
        self.watch.use_device(0)


class TestOnnxruntimeSessionsProbe(ProbeConformance):
    can_break = False  # Python's own collector is the source

    def make_probe(self) -> Probe:
        return OnnxruntimeSessionsProbe()

    def start_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        install(monkeypatch, onnxruntime={"InferenceSession": Session})


@pytest.fixture
def probe() -> CudaObjectsProbe:
    watch = StubWatch()
    watch.use_device(0)
    probe = CudaObjectsProbe(watch)
    probe.open()
    return probe


def test_objects_of_exactly_the_type_are_counted(
    monkeypatch: pytest.MonkeyPatch, probe: CudaObjectsProbe
) -> None:
    install(monkeypatch, torch__cuda={"Stream": Stream, "Event": Event})
    kept = [Stream(), Stream(), ForeignStream(), Event()]
    assert probe.glance() == ()
    assert by_name(probe.read()) == {
        ("torch_streams", HOST): 2,
        ("torch_events", HOST): 1,
    }
    kept.clear()
    assert by_name(probe.read())["torch_streams", HOST] == 0


def test_a_library_that_is_imported_later_is_counted_later(
    monkeypatch: pytest.MonkeyPatch, probe: CudaObjectsProbe
) -> None:
    install(monkeypatch, torch__cuda={"Stream": Stream})
    probe.read()
    install(monkeypatch, cupy__cuda={"Event": Event})
    assert set(by_name(probe.read())) == {
        ("torch_streams", HOST),
        ("cupy_events", HOST),
    }


def test_objects_the_collector_does_not_list_are_unavailable(
    monkeypatch: pytest.MonkeyPatch, probe: CudaObjectsProbe
) -> None:
    install(monkeypatch, cuda__core={"Stream": int, "Event": Event})
    assert set(by_name(probe.read())) == {("core_events", HOST)}
    assert said(probe) == [
        "cuda.core_streams: unavailable, "
        "Python's collector does not list objects of int"
    ]


def test_what_is_no_type_is_left_out(
    monkeypatch: pytest.MonkeyPatch, probe: CudaObjectsProbe
) -> None:
    install(monkeypatch, torch__cuda={"Stream": lambda: None, "Event": Event})
    assert set(by_name(probe.read())) == {("torch_events", HOST)}


def test_a_modules_own_getattr_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, probe: CudaObjectsProbe
) -> None:
    def lazy(name: str) -> object:
        pytest.fail(f"the module was asked for {name}")

    install(monkeypatch, torch__cuda={"__getattr__": lazy, "Event": Event})
    assert set(by_name(probe.read())) == {("torch_events", HOST)}


def test_that_objects_were_frozen_is_asked_until_it_is_so_and_told_for_good(
    monkeypatch: pytest.MonkeyPatch, probe: CudaObjectsProbe
) -> None:
    install(monkeypatch, torch__cuda={"Stream": Stream})
    frozen = gc.get_freeze_count()
    monkeypatch.setattr(gc, "get_freeze_count", lambda: frozen)
    probe.read()
    assert said(probe) == []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: frozen + 1)
    probe.read()
    told = ["cuda: unavailable, objects put aside by gc.freeze() are not counted"]
    assert said(probe) == told
    monkeypatch.setattr(gc, "get_freeze_count", lambda: pytest.fail("walked again"))
    probe.read()
    assert said(probe) == told


def test_no_library_no_question_to_the_driver() -> None:
    class Watch(StubWatch):
        def driver(self) -> None:
            pytest.fail("the loader was asked")

    assert CudaObjectsProbe(Watch()).is_active() is False


def test_the_arena_of_onnxruntime_is_named_as_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, onnxruntime={"InferenceSession": Session})
    probe = OnnxruntimeSessionsProbe()
    probe.open()
    kept = Session()
    assert by_name(probe.read()) == {("sessions", HOST): 1}
    assert said(probe) == [
        "onnxruntime.arena: unavailable, "
        "ONNX Runtime tells Python nothing of it; see nvml.process"
    ]
    del kept


def test_counting_runs_no_code_of_the_objects() -> None:
    kept = Lazy()
    assert count_live([Stream]) == (0,)
    del kept


@pytest.mark.parametrize(
    ("kind", "countable"),
    [(Stream, True), (int, False), (list, True), (memoryview, True)],
)
def test_a_type_is_countable_if_the_collector_lists_it(
    kind: type, countable: bool
) -> None:
    assert is_countable(kind) is countable
