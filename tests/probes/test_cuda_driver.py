from __future__ import annotations

import ctypes
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from pytest_veo.probes.cuda_driver import CudaDriver
from pytest_veo.probes.cuda_driver import DriverWatch
from pytest_veo.probes.cuda_driver import device_name
from tests.probes.stubs import GPU_0
from tests.probes.stubs import GPU_1
from tests.probes.stubs import UUIDS
from tests.probes.stubs import StubWatch


NOT_INITIALIZED = 3
INVALID_DEVICE = 101


class Function:
    """A C function, written in Python."""

    def __init__(self, body: Callable[..., int]) -> None:
        self.body = body
        self.argtypes: tuple[Any, ...] = ()

    def __call__(self, *arguments: Any) -> int:
        return self.body(*arguments)


class Library:
    """As much of `libcuda.so.1` as the driver's questions need."""

    def __init__(self, *, is_initialised: bool = True) -> None:
        self.is_initialised = is_initialised
        self.contexts = {0}
        self.cuDeviceGetCount = Function(self.count)
        self.cuDevicePrimaryCtxGetState = Function(self.state)
        self.cuDeviceGetUuid = Function(self.uuid)

    def count(self, place: Any) -> int:
        if not self.is_initialised:
            return NOT_INITIALIZED
        place._obj.value = len(UUIDS)
        return 0

    def state(self, ordinal: int, flags: int, active: int) -> int:
        if not self.is_initialised:
            return NOT_INITIALIZED
        ctypes.c_int.from_address(active).value = int(ordinal in self.contexts)
        return 0

    def uuid(self, raw: Any, ordinal: int) -> int:
        if ordinal >= len(UUIDS):
            return INVALID_DEVICE
        raw[:] = bytes.fromhex(UUIDS[ordinal].replace("-", ""))
        return 0


def driver(library: Library) -> CudaDriver:
    return CudaDriver(library)  # type: ignore[arg-type]


def test_an_initialised_driver_tells_devices_contexts_and_names() -> None:
    asked = driver(Library())
    assert asked.device_count() == 2
    assert [asked.has_context(ordinal) for ordinal in range(2)] == [True, False]
    assert [asked.device_name(ordinal) for ordinal in range(2)] == [GPU_0, GPU_1]


def test_before_cu_init_there_are_no_devices_and_no_contexts() -> None:
    asked = driver(Library(is_initialised=False))
    assert asked.device_count() == 0
    assert asked.has_context(0) is False


def test_a_context_that_was_there_is_not_remembered() -> None:
    library = Library()
    asked = driver(library)
    assert asked.has_context(0) is True
    library.is_initialised = False
    assert asked.has_context(0) is False


def test_a_slice_is_named_by_its_own_identifier() -> None:
    library: Any = Library()
    library.cuDeviceGetUuid_v2 = Function(lambda raw, ordinal: library.uuid(raw, 1))
    assert driver(library).device_name(0) == GPU_1.replace("GPU-", "MIG-")


def test_a_device_without_identifier_is_an_error() -> None:
    with pytest.raises(OSError, match="cuDeviceGetUuid of device 7: CUDA error 101"):
        driver(Library()).device_name(7)


def test_a_name_is_the_one_that_nvidia_smi_prints() -> None:
    assert device_name(bytes(range(16))) == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"


@pytest.mark.parametrize(("ordinals", "held"), [((), False), ((1,), True)])
def test_any_context_counts(ordinals: tuple[int, ...], held: bool) -> None:
    watch = StubWatch()
    for ordinal in ordinals:
        watch.use_device(ordinal)
    assert watch.has_any_context() is held


@pytest.mark.skipif(sys.platform != "linux", reason="reads the loader of Linux")
def test_the_driver_is_noticed_when_the_program_loads_it(tmp_path: Any) -> None:
    """A library under the driver's name; the C compiler makes it, if there is one."""
    source = tmp_path / "driver.c"
    source.write_text(
        "int cuDeviceGetCount(int *n) { *n = 1; return 0; }\n"
        "int cuDevicePrimaryCtxGetState(int d, unsigned *f, int *a)"
        " { *f = 0; *a = d == 0; return 0; }\n"
        "int cuDeviceGetUuid(char *u, int d)"
        " { for (int i = 0; i < 16; i++) u[i] = (char)(i + d); return 0; }\n"
    )
    library = tmp_path / "libcuda.so.1"
    command = ["gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]
    try:
        subprocess.run([*command, "-o", library, source], check=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("no C compiler")
    script = f"""
        import ctypes
        from pytest_veo.probes.cuda_driver import DriverWatch
        watch = DriverWatch()
        print(watch.driver(), watch.has_any_context())
        ctypes.CDLL({str(library)!r})
        driver = watch.driver()
        print(driver.device_count(), watch.has_any_context(), driver.device_name(0))
    """
    output = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.splitlines()
    assert output == [
        "None False",
        "1 True GPU-00010203-0405-0607-0809-0a0b0c0d0e0f",
    ]


def test_the_loader_is_searched_only_after_something_was_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads = [7]
    searches = []

    def search() -> None:
        searches.append(loads[0])

    monkeypatch.setattr(
        "pytest_veo.probes.cuda_driver._load_counter", lambda: lambda: loads[0]
    )
    monkeypatch.setattr("pytest_veo.probes.cuda_driver._loaded_driver", search)
    watch = DriverWatch()
    for _look in range(3):
        assert watch.driver() is None
    loads[0] = 8
    watch.driver()
    assert searches == [7, 8]
