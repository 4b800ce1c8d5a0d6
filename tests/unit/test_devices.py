"""Names of devices: asked of what is loaded already, and of nothing else."""

from __future__ import annotations

import ctypes
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from pytest_veo.telemetry import devices
from pytest_veo.telemetry.environment import Surroundings


class Cuda:
    """A driver with two devices of one kind."""

    def __init__(self, status: int = 0) -> None:
        self.status = status

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = 2
        return self.status

    def cuDeviceGetName(self, name: Any, size: int, ordinal: int) -> int:
        name.value = b"H100"
        return 0


class Nvml:
    """The management library."""

    def nvmlSystemGetDriverVersion(self, version: Any, size: int) -> int:
        version.value = b"550.54.15"
        return 0


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    loaded: dict[str, object] = {}
    monkeypatch.setattr(devices, "_loaded", loaded.get)
    monkeypatch.setattr(Path, "read_text", _no_file)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    return loaded


def _no_file(*_: object, **__: object) -> str:
    raise FileNotFoundError


def test_devices_in_use_are_named_once_with_their_driver(
    libraries: dict[str, object],
) -> None:
    libraries.update({"libcuda.so.1": Cuda(), "libnvidia-ml.so.1": Nvml()})
    assert devices.describe() == {"gpu": "H100", "driver": "550.54.15"}


@pytest.mark.parametrize(
    "loaded",
    [
        pytest.param({}, id="nothing-loaded"),
        pytest.param({"libcuda.so.1": Cuda(status=3)}, id="not-initialised"),
        pytest.param(
            {"libcuda.so.1": object(), "libnvidia-ml.so.1": object()},
            id="other-library",
        ),
    ],
)
def test_what_is_not_in_use_is_not_named(
    libraries: dict[str, object], loaded: dict[str, object]
) -> None:
    libraries.update(loaded)
    assert devices.describe() == {}


def test_without_nvidias_driver_pytorch_names_the_devices_it_has_initialised(
    libraries: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = types.SimpleNamespace(
        is_initialized=lambda: False,
        device_count=lambda: 1,
        get_device_name=lambda number: f"MI300 {number}",
    )
    torch = types.SimpleNamespace(cuda=cuda)
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert devices.describe() == {}
    cuda.is_initialized = lambda: True
    assert devices.describe() == {"gpu": "MI300 0"}


def test_a_library_that_is_not_loaded_is_not_loaded_for_the_asking() -> None:
    # On every machine with glibc, and in no process of ours.
    assert devices._loaded("libnss_hesiod.so.2") is None
    assert isinstance(devices._loaded("libc.so.6"), ctypes.CDLL)


def test_an_environment_is_described_when_it_is_new_and_named_afterwards(
    libraries: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def extra() -> dict[str, str]:
        asked.append(1)
        return {"scene": "forest"}

    surroundings = Surroundings(extra)
    name, rows = surroundings.name(0)
    assert dict(rows)["scene"] == "forest"
    assert surroundings.name(0) == (name, ())
    assert len(asked) == 1
    libraries["libcuda.so.1"] = Cuda()
    other, rows = surroundings.name(3)
    assert other != name
    assert dict(rows)["gpu"] == "H100"
    assert surroundings.name(3) == (other, ())
