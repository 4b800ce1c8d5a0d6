from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from pytest_veo.probes.nvml import NvmlProbe
from tests.probes.fake_nvml import MIB
from tests.probes.fake_nvml import Card
from tests.probes.fake_nvml import FakeNvml
from tests.probes.stubs import GPU_0
from tests.probes.stubs import GPU_1
from tests.probes.stubs import StubWatch
from tests.probes.stubs import figures
from tests.probes.stubs import said


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    nvml = FakeNvml()
    nvml.install(monkeypatch)
    return nvml


@pytest.fixture
def probe(watch: StubWatch) -> NvmlProbe:
    return NvmlProbe(watch)


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
