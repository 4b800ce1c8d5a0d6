"""What the simulator refuses: a real driver beside it, a state not its own."""

from __future__ import annotations

import ctypes
import pathlib
import subprocess
import sys

import pytest

from tests.simgpu import driver
from tests.simgpu import layout
from tests.simgpu.build import Build
from tests.simgpu.children import run
from tests.simgpu.driver import Sim
from tests.simgpu.driver import SimulatorRefused


pytestmark = pytest.mark.sim


REFUSED = 78
LOAD_NVML = "import ctypes; ctypes.CDLL('libnvidia-ml.so.1')"


@pytest.mark.parametrize(
    ("path", "content", "because"),
    [
        ("dev/nvidiactl", b"", "/dev/nvidiactl exists"),
        (
            "etc/ld.so.cache",
            b"\0libcuda.so.1\0/usr/lib/libcuda.so.1\0",
            "libcuda.so.1 is in the loader's cache",
        ),
    ],
    ids=["device", "library"],
)
def test_beside_a_real_driver_it_refuses_to_load(
    sim: Sim, tmp_path: pathlib.Path, path: str, content: bytes, because: str
) -> None:
    root = tmp_path / "root"
    (root / path).parent.mkdir(parents=True)
    (root / path).write_bytes(content)
    assert driver.real_driver(root) == because
    refused = run(sim, LOAD_NVML, VEOSIM_GUARD_ROOT=str(root))
    assert refused.returncode == REFUSED
    assert refused.stderr == (
        f"veosim: refused to load: a real NVIDIA driver is present ({because}); "
        f"VEOSIM_FORCE=1 overrides\n"
    )
    forced = run(sim, LOAD_NVML, VEOSIM_GUARD_ROOT=str(root), VEOSIM_FORCE="1")
    assert forced.returncode == 0, forced.stderr


def test_a_toolkit_without_a_driver_is_no_driver(tmp_path: pathlib.Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/ld.so.cache").write_bytes(b"\0libcudart.so.13\0libcuda.so.12\0")
    assert driver.real_driver(tmp_path) == ""


@pytest.mark.parametrize("library", ["libnvidia-ml.so.1", "libcuda.so.1"])
def test_without_a_state_file_it_refuses_to_load(sim: Sim, library: str) -> None:
    refused = run(sim, f"import ctypes; ctypes.CDLL({library!r})", VEOSIM_STATE="")
    assert refused.returncode == REFUSED
    assert refused.stderr == (
        "veosim: refused to load: VEOSIM_STATE names no state file (made by "
        "driver.py)\n"
    )


def damaged(sim: Sim, how: str) -> str:
    """Spoil a state file; what is said of it."""
    path, size = sim.path, ctypes.sizeof(layout.State)
    content = bytearray(path.read_bytes())
    if how == "foreign":
        content[:8] = b"SQLite f"
        path.write_bytes(content)
        return f"{path} is not a state file of the simulator (magic 66206574694c5153)"
    if how == "empty":
        path.write_bytes(b"")
        return f"{path} is not a state file of the simulator (0 bytes)"
    if how == "short":
        path.write_bytes(content[: size - 8])
        return (
            f"{path} is cut short or padded ({size - 8} bytes, {size} expected): "
            f"delete it"
        )
    content[8:12] = (2).to_bytes(4, sys.byteorder)
    path.write_bytes(content)
    return (
        f"{path} was written by another version of the simulator (version 2, {size} "
        f"bytes; this one has version 3, {size} bytes): delete it"
    )


@pytest.mark.parametrize("how", ["foreign", "empty", "short", "stale"])
def test_a_stale_or_foreign_state_file_is_refused(
    sim_build: Build, tmp_path: pathlib.Path, how: str
) -> None:
    sim = Sim.create(tmp_path / "spoilt", sim_build)
    environment = sim.environment()
    reason = damaged(sim, how)
    with pytest.raises(SimulatorRefused) as caught:
        Sim.open(sim.path, sim_build)
    assert str(caught.value) == f"veosim: {reason}"
    child = subprocess.run(
        [sys.executable, "-c", LOAD_NVML],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert child.returncode == REFUSED
    assert child.stderr == f"veosim: refused to load: {reason}\n"


def test_a_state_file_is_not_made_twice(sim: Sim, sim_build: Build) -> None:
    with pytest.raises(SimulatorRefused, match="cannot be opened: File exists"):
        Sim.create(sim.path, sim_build)


def test_two_views_of_one_file_are_one_state(sim: Sim, sim_build: Build) -> None:
    other = Sim.open(sim.path, sim_build)
    sim.device(1).other_used_bytes = 7
    assert other.device(1).other_used_bytes == 7
    other.close()
    with pytest.raises(IndexError, match="device 8: the simulator has 8"):
        sim.device(8)


def test_a_mirror_that_drifted_is_refused(
    sim_build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = ctypes.CDLL(str(sim_build.folder / "libveosim.so"))
    layout.verify(library)
    monkeypatch.setattr(layout, "mirror", lambda: (1, 2, 3))
    with pytest.raises(ImportError, match=r"does not match src/veosim\.h"):
        layout.verify(library)


PRELOAD = """
    import os, pathlib
    from tests.simgpu import build
    from tests.simgpu.driver import Sim, SimulatorRefused
    sim = Sim.create(pathlib.Path(os.environ["FOLDER"]) / "one", build.build())
    sim.preload()
    import pynvml
    pynvml.nvmlInit()
    sim.device(0).other_used_bytes = 5 << 20
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    print(pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2).used)
    other = Sim.create(pathlib.Path(os.environ["FOLDER"]) / "two", build.build())
    try:
        other.preload()
    except SimulatorRefused as refused:
        print(refused)
"""


def test_a_process_can_be_given_nvml_and_then_has_one_state(
    sim: Sim, tmp_path: pathlib.Path
) -> None:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    child = run(sim, PRELOAD, FOLDER=str(tmp_path), VEOSIM_STATE="", LD_LIBRARY_PATH="")
    assert child.stdout.splitlines() == [
        str(5 << 20),
        f"veosim: this process already uses {tmp_path / 'one'}",
    ], child.stderr
