"""The state file's layout, as `src/veosim.h` has it.

`verify` compares this mirror with the compiled library's own sizes, so that a
drift between the two is refused instead of misread.
"""

from __future__ import annotations

import ctypes
import enum


DEVICES = 8
PROCESSES = 32
PENDING = 64
FAULTS = 32
NOT_AVAILABLE = 0xFFFFFFFFFFFFFFFF
FOREIGN_OFFSET = 1_000_000

_u32, _u64, _i32 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32


class ProcessKind(enum.IntFlag):
    """What a row of the process table is."""

    SYNTHETIC = 1
    """Put there by a test: listed although no such process lives."""
    COMPUTE = 2
    GRAPHICS = 4


class View(enum.IntEnum):
    """What NVML tells of the processes on a device."""

    VISIBLE = 0
    NO_BYTES = 1
    """Listed, `usedGpuMemory` not available (WSL, WDDM)."""
    EMPTY = 2
    """No process at all (a container)."""
    FOREIGN_PIDS = 3
    """The host's pids: nobody finds itself (a container)."""


class Process(ctypes.Structure):
    """One process on one device."""

    pid: int
    kind: int
    started: int
    used_bytes: int
    context_bytes: int
    requested_bytes: int
    pinned_bytes: int
    pending_bytes: int
    allocations: int

    _fields_ = [
        ("pid", _u32),
        ("kind", _u32),
        ("started", _u64),
        ("used_bytes", _u64),
        ("context_bytes", _u64),
        ("requested_bytes", _u64),
        ("pinned_bytes", _u64),
        ("pending_bytes", _u64),
        ("allocations", _u64),
    ]


class Pending(ctypes.Structure):
    """A free that the driver's counters do not show yet."""

    _fields_ = [
        ("due_ns", _u64),
        ("bytes", _u64),
        ("queries", _u32),
        ("pid", _u32),
    ]


class Device(ctypes.Structure):
    """One device: what it is, what happens to it, and its books."""

    name: bytes
    uuid: bytes
    mig_uuid: bytes
    bus_id: bytes
    total_bytes: int
    reserved_bytes: int
    other_used_bytes: int
    context_bytes: int
    granularity_bytes: int
    mig_total_bytes: int
    energy_mj: int
    event_reasons: int
    free_delay_ns: int
    free_delay_queries: int
    utilization_gpu: int
    utilization_memory: int
    clock_mhz: ctypes.Array[ctypes.c_uint32]
    max_clock_mhz: ctypes.Array[ctypes.c_uint32]
    pcie_kib_s: ctypes.Array[ctypes.c_uint32]
    temperature_c: int
    power_mw: int
    capability_major: int
    capability_minor: int
    multiprocessors: int
    mig_mode: int
    process_view: int
    integrated: int
    hold_events: int
    lost: int
    mallocs: int
    frees: int
    copies: int
    launches: int
    queries: int
    process: ctypes.Array[Process]

    _fields_ = [
        ("name", ctypes.c_char * 64),
        ("uuid", ctypes.c_char * 48),
        ("mig_uuid", ctypes.c_char * 48),
        ("bus_id", ctypes.c_char * 32),
        ("total_bytes", _u64),
        ("reserved_bytes", _u64),
        ("other_used_bytes", _u64),
        ("context_bytes", _u64),
        ("granularity_bytes", _u64),
        ("mig_total_bytes", _u64),
        ("energy_mj", _u64),
        ("event_reasons", _u64),
        ("free_delay_ns", _u64),
        ("free_delay_queries", _u32),
        ("utilization_gpu", _u32),
        ("utilization_memory", _u32),
        ("clock_mhz", _u32 * 4),
        ("max_clock_mhz", _u32 * 4),
        ("pcie_kib_s", _u32 * 2),
        ("temperature_c", _u32),
        ("power_mw", _u32),
        ("capability_major", _u32),
        ("capability_minor", _u32),
        ("multiprocessors", _u32),
        ("mig_mode", _i32),
        ("process_view", _u32),
        ("integrated", _u32),
        ("hold_events", _u32),
        ("lost", _u32),
        ("mallocs", _u64),
        ("frees", _u64),
        ("copies", _u64),
        ("launches", _u64),
        ("queries", _u64),
        ("process", Process * PROCESSES),
        ("pending", Pending * PENDING),
    ]


class Fault(ctypes.Structure):
    """An injected failure, matched by function name."""

    function: bytes
    code: int
    skip: int
    times: int
    hits: int

    _fields_ = [
        ("function", ctypes.c_char * 64),
        ("code", _i32),
        ("skip", _i32),
        ("times", _i32),
        ("hits", _i32),
    ]


class State(ctypes.Structure):
    """The whole file."""

    magic: int
    version: int
    size: int
    devices: int
    cuda_version: int
    driver_version: bytes
    nvml_version: bytes
    calls: int
    armed: int
    fault: ctypes.Array[Fault]
    device: ctypes.Array[Device]

    _fields_ = [
        ("magic", _u64),
        ("version", _u32),
        ("size", _u32),
        ("devices", _u32),
        ("cuda_version", _i32),
        ("driver_version", ctypes.c_char * 80),
        ("nvml_version", ctypes.c_char * 80),
        ("lock", _u64 * 8),
        ("calls", _u64),
        ("armed", _u32),
        ("padding", _u32),
        ("fault", Fault * FAULTS),
        ("device", Device * DEVICES),
    ]


def mirror() -> tuple[int, ...]:
    """The sizes and offsets that `veosim_layout` has, as this module has them."""
    return (
        ctypes.sizeof(State),
        ctypes.sizeof(Device),
        ctypes.sizeof(Process),
        ctypes.sizeof(Fault),
        _offset(State, "lock"),
        _offset(State, "fault"),
        _offset(State, "device"),
        _offset(Device, "process"),
        _offset(Device, "pending"),
    )


def _offset(structure: type[ctypes.Structure], field: str) -> int:
    return int(getattr(structure, field).offset)


def verify(library: ctypes.CDLL) -> None:
    """Hold the mirror against the compiled library.

    Raises:
        ImportError: they differ; `layout.py` must follow `veosim.h`.
    """
    compiled = tuple((ctypes.c_size_t * len(mirror())).in_dll(library, "veosim_layout"))
    if compiled != mirror():
        raise ImportError(
            f"tests/simgpu/layout.py does not match src/veosim.h: "
            f"{mirror()} here, {compiled} compiled"
        )
