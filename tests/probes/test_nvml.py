from __future__ import annotations

import dataclasses
import os
import sys
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_veo.memory.snapshot import Rung
from pytest_veo.probes.base import Probe
from pytest_veo.probes.nvml import NvmlProbe
from tests.probes.conformance import ProbeConformance
from tests.probes.stubs import GPU_0
from tests.probes.stubs import GPU_1
from tests.probes.stubs import StubWatch
from tests.probes.stubs import by_name
from tests.probes.stubs import figures
from tests.probes.stubs import install
from tests.probes.stubs import said


MIB = 1 << 20
V2 = 0x2000028
UNLISTED = (
    "the driver does not list this process; in a container, share the host's process "
    "ids (--pid=host)"
)
UNBOOKED = "the driver does not book bytes per process here (WDDM, WSL or vGPU)"


class NVMLError(Exception):
    """Stands for `pynvml.NVMLError`; one class an error code, as there."""


WORDS = {
    "Uninitialized": "Uninitialized",
    "InvalidArgument": "Invalid Argument",
    "NotSupported": "Not Supported",
    "NoPermission": "Insufficient Permissions",
    "NotFound": "Not Found",
    "InsufficientSize": "Insufficient Size",
    "DriverNotLoaded": "Driver Not Loaded",
    "LibraryNotFound": "NVML Shared Library Not Found",
    "FunctionNotFound": "Function Not Found",
    "GpuIsLost": "GPU is lost",
    "ResetRequired": "GPU requires restart",
    "LibRmVersionMismatch": "RM has detected an NVML/RM version mismatch.",
    "Timeout": "Timeout",
    "Unknown": "Unknown Error",
    "ArgumentVersionMismatch": "Argument version mismatch",
}
ERRORS: dict[str, type[NVMLError]] = {
    name: type(f"NVMLError_{name}", (NVMLError,), {}) for name in WORDS
}


def error(name: str) -> NVMLError:
    return ERRORS[name](WORDS[name])


@dataclasses.dataclass
class Card:
    """One device, or one slice of one."""

    used: int = 400 * MIB
    reserved: int = 256 * MIB
    compute: list[tuple[int, int | None]] = dataclasses.field(default_factory=list)
    graphics: list[tuple[int, int | None]] = dataclasses.field(default_factory=list)
    is_sliced: bool = False
    slices: list[Card | None] = dataclasses.field(default_factory=list)


class FakeNvml:
    """As much of `pynvml` as the probe may call; counts calls, fails on demand."""

    def __init__(self) -> None:
        self.cards = {
            GPU_0: Card(compute=[(os.getpid(), 300 * MIB), (1, 100 * MIB)]),
            GPU_1: Card(compute=[(os.getpid(), 320 * MIB)]),
        }
        self.faults: dict[str, str | list[str | None]] = {}
        self.calls: deque[str] = deque(maxlen=8)
        self.users = 0

    def fail(self, function: str, *names: str | None) -> None:
        """Fail for good with one error, or call by call (None: that call succeeds)."""
        only = names[0]
        lasts = len(names) == 1 and only is not None
        self.faults[function] = only if lasts and only else list(names)

    def enter(self, function: str) -> None:
        self.calls.append(function)
        fault = self.faults.get(function)
        name = (fault.pop(0) if fault else None) if isinstance(fault, list) else fault
        if name is not None:
            raise error(name)
        if self.users <= 0 and function != "nvmlInit":
            raise error("Uninitialized")

    def init(self) -> None:
        self.enter("nvmlInit")
        self.users += 1

    def shutdown(self) -> None:
        self.enter("nvmlShutdown")
        self.users -= 1

    def by_uuid(self, name: str) -> Card:
        self.enter("nvmlDeviceGetHandleByUUID")
        if name not in self.cards:
            raise error("NotFound")
        return self.cards[name]

    def memory(self, card: Card, version: int | None = None) -> SimpleNamespace:
        self.enter(f"nvmlDeviceGetMemoryInfo{'_v2' if version == V2 else ''}")
        reserved = 0 if version == V2 else card.reserved
        return SimpleNamespace(used=card.used + reserved)

    def lists(self, kind: str, version: str) -> Callable[[Card], list[Any]]:
        def query(card: Card) -> list[Any]:
            self.enter(f"{kind}{version}")
            entries = {"compute": card.compute, "graphics": card.graphics}
            return [
                SimpleNamespace(pid=pid, usedGpuMemory=used)
                for pid, used in entries.get(kind, [])
            ]

        return query

    def mig_mode(self, card: Card) -> tuple[int, int]:
        self.enter("nvmlDeviceGetMigMode")
        return int(card.is_sliced), int(card.is_sliced)

    def most_slices(self, card: Card) -> int:
        self.enter("nvmlDeviceGetMaxMigDeviceCount")
        return len(card.slices)

    def slice_at(self, card: Card, index: int) -> Card:
        self.enter("nvmlDeviceGetMigDeviceHandleByIndex")
        found = card.slices[index]
        if found is None:
            raise error("NotFound")
        return found

    def install(self, monkeypatch: pytest.MonkeyPatch, **changes: object) -> None:
        contents: dict[str, object] = {
            "NVMLError": NVMLError,
            "nvmlMemory_v2": V2,
            "nvmlInit": self.init,
            "nvmlShutdown": self.shutdown,
            "nvmlDeviceGetHandleByUUID": self.by_uuid,
            "nvmlDeviceGetMemoryInfo": self.memory,
            "nvmlDeviceGetMigMode": self.mig_mode,
            "nvmlDeviceGetMaxMigDeviceCount": self.most_slices,
            "nvmlDeviceGetMigDeviceHandleByIndex": self.slice_at,
        }
        contents |= {f"NVMLError_{name}": kind for name, kind in ERRORS.items()}
        kinds = {"Compute": "compute", "Graphics": "graphics", "MPSCompute": "mps"}
        for kind, short in kinds.items():
            for version in ("_v3", "_v2"):
                name = f"nvmlDeviceGet{kind}RunningProcesses{version}"
                contents[name] = self.lists(short, version)
        contents |= changes
        install(monkeypatch, pynvml=contents)


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    nvml = FakeNvml()
    nvml.install(monkeypatch)
    return nvml


@pytest.fixture
def watch() -> StubWatch:
    watch = StubWatch()
    watch.use_device(0)
    return watch


@pytest.fixture
def probe(watch: StubWatch) -> NvmlProbe:
    return NvmlProbe(watch)


class TestNvmlProbe(ProbeConformance):
    def make_probe(self) -> Probe:
        self.watch = StubWatch()
        return NvmlProbe(self.watch)

    def start_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nvml = FakeNvml()
        self.nvml.install(monkeypatch)
        self.watch.use_device(0)

    def break_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for function in ("nvmlDeviceGetMemoryInfo_v2", "compute_v3"):
            self.nvml.fail(function, "GpuIsLost")


def test_nvml_is_neither_imported_nor_initialised_without_a_context(
    nvml: FakeNvml,
) -> None:
    probe = NvmlProbe(StubWatch())
    probe.open()
    assert probe.is_active() is False
    assert list(nvml.calls) == []


def test_this_process_and_the_device_are_told_apart(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    assert figures(probe) == {
        ("device_used", GPU_0): 400 * MIB,
        ("process", GPU_0): 300 * MIB,
    }
    rungs = {counter.name: counter.rung for counter in probe.counters}
    assert rungs == {"device_used": Rung.DEVICE, "process": Rung.DRIVER}


def test_a_device_without_a_context_of_ours_is_not_asked(
    nvml: FakeNvml, probe: NvmlProbe, watch: StubWatch
) -> None:
    probe.glance()
    assert {counter.device for counter in probe.counters} == {GPU_0}
    watch.use_device(1)
    assert figures(probe)["process", GPU_1] == 320 * MIB


def test_a_glance_at_an_unchanged_device_is_one_call(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    probe.glance()
    nvml.calls.clear()
    probe.glance()
    assert list(nvml.calls) == ["nvmlDeviceGetMemoryInfo_v2"]


def test_when_the_device_moves_only_the_lists_that_name_us_are_asked(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    probe.glance()
    nvml.cards[GPU_0].used += 2 * MIB
    nvml.cards[GPU_0].compute[0] = (os.getpid(), 302 * MIB)
    nvml.calls.clear()
    assert figures(probe)["process", GPU_0] == 302 * MIB
    assert list(nvml.calls) == ["nvmlDeviceGetMemoryInfo_v2", "compute_v3"]


def test_a_full_reading_asks_every_list_afresh(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    probe.glance()
    nvml.cards[GPU_0].compute[0] = (os.getpid(), 302 * MIB)
    assert figures(probe)["process", GPU_0] == 300 * MIB
    assert by_name(probe.read())["process", GPU_0] == 302 * MIB


def test_a_glance_after_settling_asks_afresh(nvml: FakeNvml, probe: NvmlProbe) -> None:
    probe.glance()
    nvml.cards[GPU_0].compute[0] = (os.getpid(), 302 * MIB)
    probe.settle()
    assert figures(probe)["process", GPU_0] == 302 * MIB


def test_a_process_in_two_lists_counts_once(nvml: FakeNvml, probe: NvmlProbe) -> None:
    nvml.cards[GPU_0].graphics = [(os.getpid(), 310 * MIB)]
    assert figures(probe)["process", GPU_0] == 310 * MIB


def test_a_drawing_process_is_found_in_the_graphics_list(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    nvml.cards[GPU_0].compute = []
    nvml.cards[GPU_0].graphics = [(os.getpid(), 310 * MIB)]
    assert figures(probe)["process", GPU_0] == 310 * MIB


def test_an_unlisted_process_is_unavailable_and_never_0(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    nvml.cards[GPU_0].compute = [(1, 100 * MIB)]
    assert figures(probe) == {("device_used", GPU_0): 400 * MIB}
    assert said(probe) == [f"nvml.process {GPU_0}: unavailable, {UNLISTED}"]


def test_a_process_that_is_listed_late_is_trusted_from_then_on(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    nvml.cards[GPU_0].compute = []
    probe.glance()
    nvml.cards[GPU_0].compute = [(os.getpid(), 300 * MIB)]
    assert figures(probe)["process", GPU_0] == 300 * MIB
    assert said(probe) == []


def test_the_search_for_an_unlisted_process_ends(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    nvml.cards[GPU_0].compute = []
    for _glance in range(20):
        probe.glance()
    nvml.calls.clear()
    probe.glance()
    assert list(nvml.calls) == ["nvmlDeviceGetMemoryInfo_v2"]
    assert said(probe) == [f"nvml.process {GPU_0}: unavailable, {UNLISTED}"]


@pytest.mark.parametrize("used", [None, (1 << 64) - 1], ids=["None", "all ones"])
def test_a_process_without_bytes_is_unavailable(
    nvml: FakeNvml, probe: NvmlProbe, used: int | None
) -> None:
    nvml.cards[GPU_0].compute = [(os.getpid(), used)]
    assert figures(probe) == {("device_used", GPU_0): 400 * MIB}
    assert said(probe) == [f"nvml.process {GPU_0}: unavailable, {UNBOOKED}"]


def test_a_process_that_vanishes_from_the_list_is_an_error(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    probe.glance()
    nvml.cards[GPU_0].compute = []
    nvml.cards[GPU_0].used = 0
    assert figures(probe) == {("device_used", GPU_0): 0}
    assert said(probe) == [
        f"nvml.process {GPU_0}: error, this process is not in the driver's list"
    ]


def test_a_context_that_was_destroyed_really_has_0_bytes(
    nvml: FakeNvml, probe: NvmlProbe, watch: StubWatch
) -> None:
    watch.use_device(1)
    probe.glance()
    assert watch.loaded is not None
    watch.loaded.contexts.remove(0)
    nvml.cards[GPU_0].compute = []
    nvml.cards[GPU_0].used = 0
    assert figures(probe)["process", GPU_0] == 0
    assert said(probe) == []


AT_INIT = {
    "LibraryNotFound": "libnvidia-ml.so.1 is not here; a container needs the driver's "
    "utility capability (NVML Shared Library Not Found)",
    "DriverNotLoaded": "the NVIDIA kernel driver is not loaded (Driver Not Loaded)",
    "LibRmVersionMismatch": "library and kernel driver differ in version; reboot after "
    "the update (RM has detected an NVML/RM version mismatch.)",
    "NoPermission": "no permission for this query (Insufficient Permissions)",
    "Unknown": "the driver reports an unknown error; a container may have lost its "
    "access to the device (Unknown Error)",
}


@pytest.mark.parametrize("name", AT_INIT)
def test_a_library_that_does_not_start_is_unavailable_and_not_tried_again(
    nvml: FakeNvml, probe: NvmlProbe, name: str
) -> None:
    nvml.fail("nvmlInit", name)
    assert probe.glance() == ()
    assert probe.read() == ()
    assert said(probe) == [f"nvml: unavailable, {AT_INIT[name]}"]
    assert list(nvml.calls) == ["nvmlInit"]


def test_a_missing_binding_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, probe: NvmlProbe
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert probe.glance() == ()
    (line,) = said(probe)
    assert line.startswith("nvml: unavailable, nvidia-ml-py is not installed (")


DURING_THE_SESSION = {
    "NotSupported": "this device does not support the query (Not Supported)",
    "NoPermission": "no permission for this query (Insufficient Permissions)",
    "GpuIsLost": "the GPU has fallen off the bus (GPU is lost)",
    "ResetRequired": "the GPU needs a reset (GPU requires restart)",
    "Timeout": "the driver did not answer in time (Timeout)",
    "Unknown": "the driver reports an unknown error; a container may have lost its "
    "access to the device (Unknown Error)",
    "InvalidArgument": "NVMLError_InvalidArgument: Invalid Argument",
}


@pytest.mark.parametrize("name", DURING_THE_SESSION)
def test_a_query_that_worked_and_fails_is_an_error(
    nvml: FakeNvml, probe: NvmlProbe, name: str
) -> None:
    probe.glance()
    nvml.fail("nvmlDeviceGetMemoryInfo_v2", name)
    assert figures(probe) == {("process", GPU_0): 300 * MIB}
    assert said(probe) == [
        f"nvml.device_used {GPU_0}: error, {DURING_THE_SESSION[name]}"
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("NotSupported", "unavailable"),
        ("NoPermission", "unavailable"),
        ("GpuIsLost", "error"),
        ("Unknown", "error"),
    ],
)
def test_a_query_that_never_worked_is_an_error_unless_it_is_missing_by_nature(
    nvml: FakeNvml, probe: NvmlProbe, name: str, kind: str
) -> None:
    for version in ("_v3", "_v2"):
        nvml.fail(f"compute{version}", name)
        nvml.fail(f"graphics{version}", name)
        nvml.fail(f"mps{version}", name)
    assert figures(probe) == {("device_used", GPU_0): 400 * MIB}
    assert said(probe) == [f"nvml.process {GPU_0}: {kind}, {DURING_THE_SESSION[name]}"]


def test_one_lost_device_leaves_the_other(
    nvml: FakeNvml, probe: NvmlProbe, watch: StubWatch
) -> None:
    watch.use_device(1)
    probe.glance()
    # Two readings a device; the first device's fail.
    nvml.fail("nvmlDeviceGetMemoryInfo_v2", "GpuIsLost", None)
    assert set(figures(probe)) == {
        ("process", GPU_0),
        ("device_used", GPU_1),
        ("process", GPU_1),
    }


def test_unified_memory_has_process_bytes_only(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    nvml.fail("nvmlDeviceGetMemoryInfo_v2", "NotSupported")
    nvml.fail("nvmlDeviceGetMemoryInfo", "NotSupported")
    assert figures(probe) == {("process", GPU_0): 300 * MIB}
    nvml.cards[GPU_0].compute[0] = (os.getpid(), 302 * MIB)
    assert figures(probe) == {("process", GPU_0): 302 * MIB}
    assert said(probe) == [
        f"nvml.device_used {GPU_0}: unavailable, "
        "this device does not support the query (Not Supported)"
    ]


@pytest.mark.parametrize("name", ["FunctionNotFound", "ArgumentVersionMismatch"])
def test_an_older_driver_counts_reserved_bytes_under_another_name(
    nvml: FakeNvml, probe: NvmlProbe, name: str
) -> None:
    nvml.fail("nvmlDeviceGetMemoryInfo_v2", name)
    assert figures(probe)["device_used_and_reserved", GPU_0] == 656 * MIB
    nvml.faults.clear()
    assert figures(probe)["device_used_and_reserved", GPU_0] == 656 * MIB


def test_an_older_binding_knows_one_memory_query(
    monkeypatch: pytest.MonkeyPatch, probe: NvmlProbe
) -> None:
    FakeNvml().install(monkeypatch, nvmlMemory_v2=None)
    assert figures(probe)["device_used_and_reserved", GPU_0] == 656 * MIB


def test_an_older_driver_answers_the_older_process_query(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    nvml.fail("compute_v3", "FunctionNotFound")
    assert figures(probe)["process", GPU_0] == 300 * MIB
    assert "compute_v2" in nvml.calls


@pytest.mark.parametrize(
    ("bare", "expected"),
    [
        pytest.param(True, {("process", GPU_0): 300 * MIB}, id="one query"),
        pytest.param(False, {}, id="no query"),
    ],
)
def test_a_binding_without_versions_is_asked_by_the_bare_name(
    monkeypatch: pytest.MonkeyPatch,
    probe: NvmlProbe,
    bare: bool,
    expected: dict[tuple[str, str], int],
) -> None:
    nvml = FakeNvml()
    changes: dict[str, object] = {
        f"nvmlDeviceGet{kind}RunningProcesses{version}": None
        for kind in ("Compute", "Graphics", "MPSCompute")
        for version in ("_v3", "_v2")
    }
    if bare:
        changes["nvmlDeviceGetComputeRunningProcesses"] = nvml.lists("compute", "")
    nvml.install(monkeypatch, **changes)
    assert figures(probe) == {("device_used", GPU_0): 400 * MIB, **expected}
    told = f"nvml.process {GPU_0}: unavailable, nvidia-ml-py lacks process queries"
    assert said(probe) == ([] if bare else [told])


def test_a_list_that_grew_between_size_and_answer_is_asked_again(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    probe.glance()
    nvml.fail("compute_v3", "InsufficientSize", None)
    nvml.cards[GPU_0].used += 2 * MIB
    assert figures(probe)["process", GPU_0] == 300 * MIB
    assert said(probe) == []


def test_a_shutdown_by_someone_else_is_undone(nvml: FakeNvml, probe: NvmlProbe) -> None:
    probe.glance()
    nvml.users = 0
    assert figures(probe)["device_used", GPU_0] == 400 * MIB
    assert said(probe) == []


def test_a_slice_is_found_by_its_own_identifier(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    nvml.cards = {GPU_0.replace("GPU-", "MIG-"): nvml.cards[GPU_0]}
    assert figures(probe)["process", GPU_0] == 300 * MIB


def test_on_a_sliced_device_the_slice_that_lists_us_is_read(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    ours = Card(used=50 * MIB, compute=[(os.getpid(), 40 * MIB)])
    nvml.cards[GPU_0] = Card(
        is_sliced=True, slices=[None, Card(compute=[(1, MIB)]), ours]
    )
    assert figures(probe) == {
        ("device_used", GPU_0): 50 * MIB,
        ("process", GPU_0): 40 * MIB,
    }


def test_on_a_sliced_device_no_slice_is_guessed(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    nvml.cards[GPU_0] = Card(is_sliced=True, slices=[Card(), Card()])
    assert figures(probe) == {}
    assert said(probe) == [
        f"nvml {GPU_0}: unavailable, MIG is on and none of its 2 slices lists this "
        "process"
    ]


@pytest.mark.parametrize("name", ["NotSupported", "FunctionNotFound"])
def test_a_device_that_knows_no_slices_is_read_whole(
    nvml: FakeNvml, probe: NvmlProbe, name: str
) -> None:
    nvml.fail("nvmlDeviceGetMigMode", name)
    assert figures(probe)["process", GPU_0] == 300 * MIB


def test_a_device_nvml_does_not_know_is_unavailable(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    nvml.cards = {}
    assert figures(probe) == {}
    assert said(probe) == [
        f"nvml {GPU_0}: unavailable, NVML does not know the device (Not Found)"
    ]


def test_a_device_that_hides_its_identifier_is_never_guessed(
    nvml: FakeNvml, probe: NvmlProbe, watch: StubWatch
) -> None:
    assert watch.loaded is not None
    watch.loaded.refuses_names = True
    assert probe.glance() == ()
    assert said(probe) == [
        "nvml: unavailable, OSError: cuDeviceGetUuid of device 0: CUDA error 999"
    ]


def test_a_forked_child_starts_afresh_and_leaves_the_parents_library_open(
    nvml: FakeNvml,
    probe: NvmlProbe,
    watch: StubWatch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    probe.glance()
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    watch.loaded = None  # CUDA does not survive a fork
    assert probe.is_active() is False
    assert probe.counters == ()
    probe.close()
    assert nvml.users == 1


def test_closing_gives_the_library_back_once(nvml: FakeNvml, probe: NvmlProbe) -> None:
    probe.glance()
    assert nvml.users == 1
    probe.close()
    probe.close()
    assert nvml.users == 0


def test_closing_after_a_shutdown_by_someone_else_is_fine(
    nvml: FakeNvml, probe: NvmlProbe
) -> None:
    probe.glance()
    nvml.users = 0
    probe.close()


def test_the_warning_of_the_other_package_is_not_the_suites(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, watch: StubWatch
) -> None:
    (tmp_path / "pynvml.py").write_text(
        "import warnings\n"
        "warnings.warn('use nvidia-ml-py', FutureWarning)\n"
        "def nvmlInit(): raise RuntimeError('as far as the test goes')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    probe = NvmlProbe(watch)
    probe.glance()
    assert said(probe) == ["nvml: unavailable, RuntimeError: as far as the test goes"]
