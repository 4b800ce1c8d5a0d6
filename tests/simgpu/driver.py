"""The simulated driver, as tests see it: one state file, moved from outside.

    sim = Sim.create(tmp_path / "state", build)
    sim.device(0).other_used_bytes = 1 << 30
    sim.fail("nvmlDeviceGetMemoryInfo_v2", NvmlCode.GPU_IS_LOST, times=1)
    subprocess.run([...], env=sim.environment())

Every process that has the environment sees the same devices, at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import functools
import os
import pathlib
from collections.abc import Iterator

from tests.simgpu import layout
from tests.simgpu.build import Build
from tests.simgpu.layout import View


DOORS = pathlib.Path(__file__).parent / "site"
"""On PYTHONPATH of every child: opens CuPy's door when CuPy is imported."""


class SimulatorRefused(ImportError):
    """The simulator will not stand in here, and why."""


class NvmlCode(enum.IntEnum):
    """NVML's return codes, as its public documentation numbers them."""

    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    INSUFFICIENT_SIZE = 7
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    LIB_RM_VERSION_MISMATCH = 18
    UNKNOWN = 999


class CudaCode(enum.IntEnum):
    """CUDA error codes (the driver's and the runtime's are the same here)."""

    INVALID_VALUE = 1
    OUT_OF_MEMORY = 2
    NOT_INITIALIZED = 3
    NO_DEVICE = 100
    ILLEGAL_ADDRESS = 700
    LAUNCH_FAILURE = 719
    NOT_SUPPORTED = 801
    UNKNOWN = 999


def real_driver(root: pathlib.Path = pathlib.Path("/")) -> str:
    """Why this machine has a real NVIDIA driver; empty when it has none."""
    if (root / "dev/nvidiactl").exists():
        return "/dev/nvidiactl exists"
    cache = root / "etc/ld.so.cache"
    if cache.exists() and b"libcuda.so.1\0" in cache.read_bytes():
        return "libcuda.so.1 is in the loader's cache"
    return ""


class Sim:
    """One state file: the devices that every process with its environment has."""

    def __init__(
        self, path: pathlib.Path, libraries: pathlib.Path, *, create: bool
    ) -> None:
        self.path = path
        self.libraries = libraries
        self._library = _library(libraries)
        reason = ctypes.create_string_buffer(4600)
        self._address = self._library.veosim_map(
            os.fsencode(path), int(create), reason, len(reason)
        )
        if not self._address:
            raise SimulatorRefused(f"veosim: {reason.value.decode()}")
        self.state = layout.State.from_address(self._address)

    @classmethod
    def create(cls, path: pathlib.Path, build: Build, *, devices: int = 1) -> Sim:
        """A new state file with `devices` idle 8 GiB devices."""
        sim = cls(path, build.folder, create=True)
        sim.state.devices = devices
        return sim

    @classmethod
    def open(cls, path: pathlib.Path, build: Build) -> Sim:
        """A state file that exists.

        Raises:
            SimulatorRefused: it is none, or of another version.
        """
        return cls(path, build.folder, create=False)

    @classmethod
    @functools.cache
    def here(cls) -> Sim:
        """The devices of this very process, a child with `environment()`.

        One view for all: a mapping made at every call would be a leak of its own.
        """
        path, libraries = os.environ["VEOSIM_STATE"], os.environ["VEOSIM_BUILD"]
        return cls(pathlib.Path(path), pathlib.Path(libraries), create=False)

    def close(self) -> None:
        """Let go of the mapping; the file and other processes' views stay."""
        if self._address:
            self._library.veosim_unmap(self._address)
            self._address = 0
            del self.state

    def reset(self, *, devices: int = 1) -> None:
        """Every device as new and idle, every injected failure taken back."""
        self._library.veosim_reset(self._address)
        self.state.devices = devices

    def device(self, index: int) -> layout.Device:
        """Device `index`: reading sees the present, assigning moves it for all."""
        if not 0 <= index < layout.DEVICES:
            raise IndexError(f"device {index}: the simulator has {layout.DEVICES}")
        return self.state.device[index]

    def uuid(self, index: int) -> str:
        """Device `index`'s name as NVML gives it."""
        return self.device(index).uuid.decode()

    @contextlib.contextmanager
    def locked(self) -> Iterator[layout.State]:
        """The state with no other process moving it."""
        self._library.veosim_lock(self._address)
        try:
            yield self.state
        finally:
            self._library.veosim_unlock(self._address)

    def process(self, pid: int, device: int = 0) -> layout.Process | None:
        """The row of `pid` on a device; None when it has none (or is dead)."""
        with self.locked():
            self._library.veosim_reclaim(self._address)
        for row in self.device(device).process:
            if row.pid == pid:
                return row
        return None

    def process_bytes(self, pid: int, device: int = 0) -> int:
        """The driver's own count of a process's bytes on a device."""
        row = self.process(pid, device)
        return row.used_bytes if row else 0

    def add_process(
        self,
        pid: int,
        used_bytes: int | None,
        device: int = 0,
        kind: layout.ProcessKind = layout.ProcessKind.COMPUTE,
    ) -> None:
        """List a process that does not exist; None: its bytes are not available."""
        with self.locked():
            for row in self.device(device).process:
                if row.pid == 0:
                    row.kind = kind | layout.ProcessKind.SYNTHETIC
                    row.used_bytes = (
                        layout.NOT_AVAILABLE if used_bytes is None else used_bytes
                    )
                    row.pid = pid
                    return
        raise SimulatorRefused(f"device {device}: all process rows are in use")

    def fail(
        self, function: str, code: int, *, skip: int = 0, times: int = -1
    ) -> layout.Fault:
        """Let `function` return `code`, after `skip` calls, `times` times (-1: on).

        The CuPy functions behind its door are named `cupy:malloc`, `cupy:free`, ...
        """
        if times == 0 or len(function) >= 64:
            raise ValueError(f"fault on {function!r}, {times} times: means nothing")
        with self.locked() as state:
            for slot in state.fault:
                if slot.times == 0:
                    slot.function = function.encode()
                    slot.code, slot.skip, slot.hits = code, skip, 0
                    slot.times = times
                    state.armed += 1
                    return slot
        raise SimulatorRefused("all fault slots are in use: call heal()")

    def heal(self) -> None:
        """Take back every injected failure."""
        with self.locked() as state:
            for slot in state.fault:
                slot.times = 0
            state.armed = 0

    def hide_process_memory(self, view: View = View.NO_BYTES, device: int = 0) -> None:
        """What NVML tells of processes from now on."""
        self.device(device).process_view = view

    @contextlib.contextmanager
    def hold_events(self, device: int = 0) -> Iterator[None]:
        """Work on the device is not done until it is synchronised with, or we leave."""
        self.device(device).hold_events = 1
        try:
            yield
        finally:
            self.device(device).hold_events = 0

    def delay_frees(self, *, ms: int = 0, queries: int = 0, device: int = 0) -> None:
        """Frees show in the driver's counters after `ms` and `queries` queries."""
        self.device(device).free_delay_ns = ms * 1_000_000
        self.device(device).free_delay_queries = queries

    def environment(self, base: dict[str, str] | None = None) -> dict[str, str]:
        """What a child process needs to find these devices."""
        env = dict(os.environ if base is None else base)
        paths = [str(self.libraries), env.get("LD_LIBRARY_PATH", "")]
        env["LD_LIBRARY_PATH"] = os.pathsep.join(path for path in paths if path)
        doors = [str(DOORS), env.get("PYTHONPATH", "")]
        env["PYTHONPATH"] = os.pathsep.join(path for path in doors if path)
        env["VEOSIM_STATE"] = str(self.path)
        env["VEOSIM_BUILD"] = str(self.libraries)
        env["JAX_PLATFORMS"] = "cuda"
        env["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
        env["CUPY_CACHE_IN_MEMORY"] = "1"  # no simulated kernel in the user's cache
        env["CUDA_PATH"] = str(self.libraries / "toolkit")
        return env

    def preload(self) -> None:
        """Put the simulated NVML into this very process.

        It cannot be taken out again: one state a process.

        Raises:
            SimulatorRefused: a real driver is here, or another state is loaded.
        """
        real = real_driver()
        if real and os.environ.get("VEOSIM_FORCE") != "1":
            raise SimulatorRefused(
                f"veosim: a real NVIDIA driver is present ({real}); "
                f"VEOSIM_FORCE=1 overrides"
            )
        loaded = os.environ.get("VEOSIM_STATE") or str(self.path)
        os.environ["VEOSIM_STATE"] = loaded
        if loaded != str(self.path):
            raise SimulatorRefused(f"veosim: this process already uses {loaded}")
        ctypes.CDLL(str(self.libraries / "libnvidia-ml.so.1"), ctypes.RTLD_GLOBAL)


def _library(folder: pathlib.Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(folder / "libveosim.so"))
    layout.verify(library)
    library.veosim_map.restype = ctypes.c_void_p
    library.veosim_map.argtypes = [
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]
    for name in ("unmap", "reset", "lock", "unlock", "reclaim"):
        function = getattr(library, f"veosim_{name}")
        function.restype = None
        function.argtypes = [ctypes.c_void_p]
    return library
