"""Which real GPUs are here: asked in a process of its own, which holds no device.

`python -m tests.gpu.cards` prints them as a line of JSON. With status 3 it prints why
there is none, with status 1 what is wrong with a driver that should work.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import pathlib
import subprocess
import sys

from pytest_veo.probes.cuda_driver import CudaDriver


ROOT = pathlib.Path(__file__).parents[2]
NODES = (pathlib.Path("/dev/nvidiactl"), pathlib.Path("/dev/dxg"))
"""A driver's door to user space: Linux's, and WSL's."""
NONE_HERE = 3
ASK_S = 60
_NO_DEVICE = 100
_SIMULATED = "Simulated GPU"


class NoCard(Exception):
    """There is no GPU here; the message has the reason."""


class DriverBroken(Exception):
    """There is a driver, and it does not work; the message has what it said."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """The GPUs that CUDA shows to a process, in CUDA's order."""

    uuids: tuple[str, ...]
    names: tuple[str, ...]
    unlisted: str = ""
    """Why the driver does not tell a process's bytes; empty: it does."""


def find(nodes: tuple[pathlib.Path, ...]) -> Cards:
    """Ask the driver, which this process then has initialised.

    Args:
        nodes: of which a machine with a driver has one.

    Raises:
        NoCard: none of the nodes is there, or CUDA shows no device, or simulated ones.
        DriverBroken: the driver cannot be loaded or does not start.
    """
    if not any(node.exists() for node in nodes):
        raise NoCard(f"no GPU here: {nodes[0]} is not there")
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DriverBroken(f"the CUDA driver cannot be loaded: {error}") from error
    status = library.cuInit(0)
    driver = CudaDriver(library)
    count = driver.device_count() if status == 0 else 0
    if status == _NO_DEVICE or (status == 0 and count == 0):
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        told = "" if visible is None else f" (CUDA_VISIBLE_DEVICES={visible!r})"
        raise NoCard(f"no GPU here: the CUDA driver shows none{told}")
    if status != 0:
        raise DriverBroken(f"the CUDA driver does not start: cuInit gives {status}")
    names = tuple(_name(library, ordinal) for ordinal in range(count))
    if _SIMULATED in names:
        raise NoCard("no GPU here: the driver is the simulated one")
    uuids = tuple(driver.device_name(ordinal) for ordinal in range(count))
    return Cards(uuids=uuids, names=names, unlisted=_unlisted(library, uuids[0]))


def _name(library: ctypes.CDLL, ordinal: int) -> str:
    buffer = ctypes.create_string_buffer(96)
    status = library.cuDeviceGetName(buffer, len(buffer), ordinal)
    if status != 0:
        raise DriverBroken(f"cuDeviceGetName of device {ordinal} gives {status}")
    return buffer.value.decode()


def _unlisted(library: ctypes.CDLL, uuid: str) -> str:
    """Whether NVML lists this process, with its bytes, once it has a context."""
    try:
        import pynvml
    except ImportError:
        return "nvidia-ml-py (module pynvml) is not installed"
    context = ctypes.c_void_p()
    status = library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    if status != 0:
        raise DriverBroken(f"no context on device 0: CUDA error {status}")
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        rows = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except pynvml.NVMLError as error:
        return f"NVML does not list processes: {error}"
    own = [row.usedGpuMemory for row in rows if row.pid == os.getpid()]
    if not own:
        return "NVML does not list this process (a container with its own process ids?)"
    return "" if own[0] else "NVML hides the bytes of processes"


def ask(python: str = sys.executable) -> Cards:
    """The same, from a process of its own.

    Args:
        python: the interpreter that is asked.

    Raises:
        NoCard: there is no GPU.
        DriverBroken: the driver does not work, or gives no answer in a minute.
    """
    command = [python, "-m", "tests.gpu.cards"]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=ASK_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DriverBroken(f"the CUDA driver gives no answer in {ASK_S} s") from error
    said = done.stdout.strip() or done.stderr.strip()
    if done.returncode == NONE_HERE:
        raise NoCard(said)
    if done.returncode != 0:
        raise DriverBroken(said or f"asking ended with status {done.returncode}")
    told = json.loads(said)
    return Cards(
        uuids=tuple(told["uuids"]),
        names=tuple(told["names"]),
        unlisted=told["unlisted"],
    )


def main(nodes: tuple[pathlib.Path, ...] = NODES) -> int:
    """Print what is here, or why nothing is."""
    try:
        cards = find(nodes)
    except NoCard as reason:
        print(reason)
        return NONE_HERE
    except DriverBroken as reason:
        print(reason)
        return 1
    print(json.dumps(dataclasses.asdict(cards)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
