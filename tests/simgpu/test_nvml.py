"""NVML as nvidia-ml-py sees it over the simulated driver."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.simgpu.build import Build
from tests.simgpu.driver import CudaCode
from tests.simgpu.driver import NvmlCode
from tests.simgpu.driver import Sim
from tests.simgpu.layout import ProcessKind
from tests.simgpu.layout import View


pytestmark = pytest.mark.sim


pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")

GIB = 1 << 30
MEMORY_V2 = 0x02000028
RESERVED = 256 << 20


class NvmlError(Exception):
    """What pynvml raised in the child."""

    def __init__(self, name: str, code: int, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name, self.code, self.text = name, code, text


class Nvml:
    """A child process with pynvml in it."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._child = subprocess.Popen(
            [sys.executable, str(pathlib.Path(__file__).with_name("nvml_child.py"))],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        return self._child.pid

    def __call__(
        self,
        function: str,
        *args: object,
        on: int | tuple[str, object] | None = None,
        want: bool = True,
        **kwargs: object,
    ) -> Any:
        handle = ("Index", on) if isinstance(on, int) else on
        request = {
            "function": function,
            "handle": handle,
            "args": args,
            "kwargs": kwargs,
            "want": want,
        }
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(request) + "\n")
        self._child.stdin.flush()
        answer = json.loads(self._child.stdout.readline())
        if "error" in answer:
            raise NvmlError(answer["error"], answer["code"], answer["text"])
        return answer["value"]

    def close(self) -> None:
        self._child.communicate(timeout=10)


@pytest.fixture(scope="module")
def bench(
    sim_build: Build, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Sim, Nvml]]:
    sim = Sim.create(tmp_path_factory.mktemp("nvml") / "state", sim_build, devices=2)
    child = Nvml(sim.environment())
    yield sim, child
    child.close()
    sim.close()


@pytest.fixture
def sim(bench: tuple[Sim, Nvml]) -> Sim:
    """The one state of this module, as new for every test."""
    bench[0].reset(devices=2)
    return bench[0]


@pytest.fixture
def nvml(sim: Sim, bench: tuple[Sim, Nvml]) -> Iterator[Nvml]:
    bench[1]("nvmlInit")
    yield bench[1]
    sim.heal()
    sim.device(0).lost = 0
    bench[1]("nvmlShutdown")


def test_every_device_is_named_simulated(nvml: Nvml) -> None:
    assert nvml("nvmlDeviceGetCount") == 2
    for index in range(2):
        assert nvml("nvmlDeviceGetName", on=index) == "Simulated GPU"


def test_a_device_is_the_same_by_index_uuid_and_bus_id(sim: Sim, nvml: Nvml) -> None:
    uuid = nvml("nvmlDeviceGetUUID", on=1)
    assert uuid == sim.uuid(1) == "GPU-51300000-0000-4000-8000-000000000001"
    assert nvml("nvmlDeviceGetIndex", on=("UUID", uuid)) == 1
    bus_id = nvml("nvmlDeviceGetPciInfo", on=1)["busId"]
    assert nvml("nvmlDeviceGetIndex", on=("PciBusId", bus_id)) == 1


@pytest.mark.parametrize(
    ("how", "which", "name"),
    [
        ("Index", 2, "NVMLError_InvalidArgument"),
        ("UUID", "GPU-none", "NVMLError_NotFound"),
        ("PciBusId", "0000:77:00.0", "NVMLError_NotFound"),
        ("PciBusId", "nonsense", "NVMLError_InvalidArgument"),
    ],
)
def test_a_device_that_is_not_there_is_refused(
    nvml: Nvml, how: str, which: object, name: str
) -> None:
    with pytest.raises(NvmlError) as caught:
        nvml("nvmlDeviceGetName", on=(how, which))
    assert caught.value.name == name


def test_memory_v1_counts_the_reserved_part_as_used(sim: Sim, nvml: Nvml) -> None:
    sim.device(0).other_used_bytes = GIB
    v1 = nvml("nvmlDeviceGetMemoryInfo", on=0)
    v2 = nvml("nvmlDeviceGetMemoryInfo", MEMORY_V2, on=0)
    assert v2["used"] == GIB
    assert v2["reserved"] == RESERVED
    assert v1["used"] == GIB + RESERVED
    assert v1["free"] == v2["free"] == 8 * GIB - GIB - RESERVED


def test_an_old_driver_has_no_memory_v2(sim: Sim, nvml: Nvml) -> None:
    sim.fail("nvmlDeviceGetMemoryInfo_v2", NvmlCode.FUNCTION_NOT_FOUND)
    with pytest.raises(NvmlError) as caught:
        nvml("nvmlDeviceGetMemoryInfo", MEMORY_V2, on=0)
    assert caught.value.name == "NVMLError_FunctionNotFound"
    assert nvml("nvmlDeviceGetMemoryInfo", on=0)["used"] == RESERVED


def test_a_wrong_structure_version_is_a_mismatch(nvml: Nvml) -> None:
    with pytest.raises(NvmlError) as caught:
        nvml("nvmlDeviceGetMemoryInfo", 0x02000020, on=0)
    assert caught.value.name == "NVMLError_ArgumentVersionMismatch"


def test_processes_and_their_bytes_are_listed(sim: Sim, nvml: Nvml) -> None:
    sim.add_process(4242, 5 << 20)
    sim.add_process(4243, None)
    sim.add_process(4244, 7 << 20, kind=ProcessKind.GRAPHICS)
    sim.add_process(4245, 9 << 20, kind=ProcessKind.COMPUTE | ProcessKind.GRAPHICS)
    sim.add_process(4246, 1 << 20, device=1)
    compute = nvml("nvmlDeviceGetComputeRunningProcesses", on=0)
    graphics = nvml("nvmlDeviceGetGraphicsRunningProcesses", on=0)
    assert [(row["pid"], row["usedGpuMemory"]) for row in compute] == [
        (4242, 5 << 20),
        (4243, None),
        (4245, 9 << 20),
    ]
    assert [row["pid"] for row in graphics] == [4244, 4245]
    used = nvml("nvmlDeviceGetMemoryInfo", MEMORY_V2, on=0)["used"]
    assert used == (5 + 7 + 9) << 20


@pytest.mark.parametrize(
    ("view", "seen"),
    [
        (View.VISIBLE, [(4242, 5 << 20)]),
        (View.NO_BYTES, [(4242, None)]),
        (View.EMPTY, []),
        (View.FOREIGN_PIDS, [(1_004_242, 5 << 20)]),
    ],
    ids=lambda value: value.name if isinstance(value, View) else "",
)
def test_process_memory_can_be_hidden(
    sim: Sim, nvml: Nvml, view: View, seen: list[tuple[int, int | None]]
) -> None:
    sim.add_process(4242, 5 << 20)
    sim.hide_process_memory(view)
    rows = nvml("nvmlDeviceGetComputeRunningProcesses", on=0)
    assert [(row["pid"], row["usedGpuMemory"]) for row in rows] == seen
    # whatever is hidden, the device as a whole still counts it
    assert nvml("nvmlDeviceGetMemoryInfo", MEMORY_V2, on=0)["used"] == 5 << 20


def test_an_integrated_device_has_no_memory_figures(sim: Sim, nvml: Nvml) -> None:
    sim.add_process(4242, 5 << 20)
    sim.device(0).integrated = 1
    for version in ((), (MEMORY_V2,)):
        with pytest.raises(NvmlError) as caught:
            nvml("nvmlDeviceGetMemoryInfo", *version, on=0)
        assert caught.value.code == NvmlCode.NOT_SUPPORTED
    rows = nvml("nvmlDeviceGetComputeRunningProcesses", on=0)
    assert rows[0]["usedGpuMemory"] == 5 << 20


def test_without_mig_the_mode_is_not_supported(nvml: Nvml) -> None:
    with pytest.raises(NvmlError) as caught:
        nvml("nvmlDeviceGetMigMode", on=0)
    assert caught.value.code == NvmlCode.NOT_SUPPORTED


def test_under_mig_only_the_instance_tells_its_memory(sim: Sim, nvml: Nvml) -> None:
    sim.device(0).mig_mode = 1
    sim.add_process(4242, 5 << 20)
    assert nvml("nvmlDeviceGetMigMode", on=0) == [1, 1]
    with pytest.raises(NvmlError) as caught:
        nvml("nvmlDeviceGetMemoryInfo", MEMORY_V2, on=0)
    assert caught.value.name == "NVMLError_NoPermission"
    instance = ("mig", 0)
    uuid = nvml("nvmlDeviceGetUUID", on=instance)
    assert uuid == "MIG-51300000-0000-4000-9000-000000000000"
    memory = nvml("nvmlDeviceGetMemoryInfo", MEMORY_V2, on=instance)
    assert (memory["total"], memory["used"]) == (GIB, 5 << 20)
    assert nvml("nvmlDeviceGetMemoryInfo", MEMORY_V2, on=("UUID", uuid)) == memory
    assert nvml("nvmlDeviceIsMigDeviceHandle", on=instance) == 1
    with pytest.raises(NvmlError) as caught:
        nvml("nvmlDeviceGetUtilizationRates", on=instance)
    assert caught.value.code == NvmlCode.NOT_SUPPORTED


# research: errors to classify, not to crash on. Each can come at any call.
ERRORS = [
    (NvmlCode.DRIVER_NOT_LOADED, "NVMLError_DriverNotLoaded"),
    (NvmlCode.LIBRARY_NOT_FOUND, "NVMLError_LibraryNotFound"),
    (NvmlCode.LIB_RM_VERSION_MISMATCH, "NVMLError_LibRmVersionMismatch"),
    (NvmlCode.UNKNOWN, "NVMLError_Unknown"),
    (NvmlCode.GPU_IS_LOST, "NVMLError_GpuIsLost"),
    (NvmlCode.RESET_REQUIRED, "NVMLError_ResetRequired"),
    (NvmlCode.NO_PERMISSION, "NVMLError_NoPermission"),
    (NvmlCode.NOT_SUPPORTED, "NVMLError_NotSupported"),
    (NvmlCode.FUNCTION_NOT_FOUND, "NVMLError_FunctionNotFound"),
    (NvmlCode.TIMEOUT, "NVMLError_Timeout"),
]
CALLS = [
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetCurrentClocksEventReasons",
]
ENTRY = {
    "nvmlDeviceGetComputeRunningProcesses": "nvmlDeviceGetComputeRunningProcesses_v3"
}
# Where pynvml raises something else than its own error for the code: a class that is
# no NVMLError, so that `except NVMLError` does not catch it.
ODD = {
    (CALLS[1], NvmlCode.FUNCTION_NOT_FOUND): "NVMLLibraryMismatchError",
}


@pytest.mark.parametrize(("code", "name"), ERRORS, ids=[name for _, name in ERRORS])
@pytest.mark.parametrize("call", CALLS)
def test_every_class_of_error_can_come_mid_session(
    sim: Sim, nvml: Nvml, call: str, code: NvmlCode, name: str
) -> None:
    nvml(call, on=0)
    fault = sim.fail(ENTRY.get(call, call), code, times=1)
    with pytest.raises(NvmlError) as caught:
        nvml(call, on=0)
    assert caught.value.name == ODD.get((call, code), name)
    assert caught.value.code == code
    assert fault.hits == 1
    nvml(call, on=0)


@pytest.mark.parametrize(("code", "name"), ERRORS, ids=[name for _, name in ERRORS])
def test_every_class_of_error_can_come_at_init(
    sim: Sim, bench: tuple[Sim, Nvml], code: NvmlCode, name: str
) -> None:
    nvml = bench[1]
    sim.fail("nvmlInitWithFlags", code, times=1)
    with pytest.raises(NvmlError) as caught:
        nvml("nvmlInit")
    assert caught.value.name == name
    nvml("nvmlInit")
    nvml("nvmlShutdown")


def test_before_init_and_after_shutdown_nothing_answers(
    bench: tuple[Sim, Nvml],
) -> None:
    with pytest.raises(NvmlError) as caught:
        bench[1]("nvmlDeviceGetCount")
    assert caught.value.name == "NVMLError_Uninitialized"


def test_a_fault_waits_for_its_turn_and_ends(sim: Sim, nvml: Nvml) -> None:
    fault = sim.fail("nvmlDeviceGetCount_v2", NvmlCode.UNKNOWN, skip=2, times=2)
    outcomes = []
    for _ in range(5):
        try:
            outcomes.append(nvml("nvmlDeviceGetCount"))
        except NvmlError as error:
            outcomes.append(error.name)
    assert outcomes == [2, 2, "NVMLError_Unknown", "NVMLError_Unknown", 2]
    assert fault.hits == 2


def test_a_fault_that_means_nothing_is_refused(sim: Sim) -> None:
    with pytest.raises(ValueError, match="means nothing"):
        sim.fail("nvmlInit_v2", CudaCode.UNKNOWN, times=0)


def test_a_lost_device_fails_everywhere_and_its_neighbour_nowhere(
    sim: Sim, nvml: Nvml
) -> None:
    sim.device(0).lost = 1
    for call in CALLS:
        with pytest.raises(NvmlError) as caught:
            nvml(call, on=0)
        assert caught.value.name == "NVMLError_GpuIsLost"
        nvml(call, on=1)


def test_a_function_that_the_library_lacks_is_not_found(nvml: Nvml) -> None:
    with pytest.raises(NvmlError) as caught:
        nvml("nvmlDeviceGetFanSpeed", on=0)
    assert caught.value.name == "NVMLError_FunctionNotFound"


def test_clocks_reasons_power_and_load_are_what_the_state_says(
    sim: Sim, nvml: Nvml
) -> None:
    device = sim.device(0)
    device.clock_mhz[1] = 900
    device.event_reasons = 0x4
    device.utilization_gpu = 97
    device.power_mw = 123_000
    device.temperature_c = 71
    device.energy_mj = 5_000
    device.pcie_kib_s[0] = 42
    assert nvml("nvmlDeviceGetClockInfo", 1, on=0) == 900
    assert nvml("nvmlDeviceGetMaxClockInfo", 1, on=0) == 1410
    assert nvml("nvmlDeviceGetCurrentClocksEventReasons", on=0) == 0x4
    assert nvml("nvmlDeviceGetCurrentClocksThrottleReasons", on=0) == 0x4
    assert nvml("nvmlDeviceGetUtilizationRates", on=0)["gpu"] == 97
    assert nvml("nvmlDeviceGetPowerUsage", on=0) == 123_000
    assert nvml("nvmlDeviceGetTemperature", 0, on=0) == 71
    assert nvml("nvmlDeviceGetTotalEnergyConsumption", on=0) == 5_000
    assert nvml("nvmlDeviceGetPcieThroughput", 0, on=0) == 42


def test_a_dead_process_is_taken_off_the_books(sim: Sim, nvml: Nvml) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(30)
    row = sim.device(0).process[0]
    row.pid, row.kind, row.used_bytes = gone.pid, ProcessKind.COMPUTE, GIB
    row.started = 1
    assert nvml("nvmlDeviceGetComputeRunningProcesses", on=0) == []
    assert nvml("nvmlDeviceGetMemoryInfo", MEMORY_V2, on=0)["used"] == 0
    assert sim.process(gone.pid) is None


def test_a_pid_used_again_does_not_inherit_bytes(sim: Sim, nvml: Nvml) -> None:
    row = sim.device(0).process[0]
    row.pid, row.kind, row.used_bytes = os.getppid(), ProcessKind.COMPUTE, GIB
    row.started = 1  # another process had this pid then
    assert nvml("nvmlDeviceGetComputeRunningProcesses", on=0) == []


def test_more_processes_than_the_first_buffer_holds_are_all_listed(
    sim: Sim, nvml: Nvml
) -> None:
    for pid in range(100, 130):
        sim.add_process(pid, 1 << 20)
    assert len(nvml("nvmlDeviceGetComputeRunningProcesses", on=0)) == 30
