"""NVML through `pynvml`: opened once, one device asked at a time, errors explained.

`pynvml` here is the module of NVIDIA's `nvidia-ml-py`. The package called `pynvml`
brings the same module and a warning at its import, which would fail suites that
turn warnings into errors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from pytest_veo.probes.gauges import Unreadable


Query = Callable[[Any], Any]
"""A function of `pynvml` that takes a device's handle."""

_MOST_BYTES = 1 << 62
"""Above this, a figure is the driver's mark for "not available"."""
_NATURE = {
    "ModuleNotFoundError": "nvidia-ml-py is not installed",
    "NVMLError_LibraryNotFound": "libnvidia-ml.so.1 is not here; a container needs the "
    "driver's utility capability",
    "NVMLError_DriverNotLoaded": "the NVIDIA kernel driver is not loaded",
    "NVMLError_NoPermission": "no permission for this query",
    "NVMLError_NotSupported": "this device does not support the query",
    "NVMLError_FunctionNotFound": "the driver is too old for the query",
    "NVMLLibraryMismatchError": "the driver is too old for the query",
    "NVMLError_NotFound": "NVML does not know the device",
    "NVMLError_ArgumentVersionMismatch": "the driver does not know this version of "
    "the query",
}
_FAULTS = {
    "NVMLError_LibRmVersionMismatch": "library and kernel driver differ in version; "
    "reboot after the update",
    "NVMLError_GpuIsLost": "the GPU has fallen off the bus",
    "NVMLError_ResetRequired": "the GPU needs a reset",
    "NVMLError_GpuNotFound": "the GPU is gone",
    "NVMLError_Unknown": "the driver reports an unknown error; a container may have "
    "lost its access to the device",
    "NVMLError_Uninitialized": "NVML was shut down by someone else in this process",
    "NVMLError_Timeout": "the driver did not answer in time",
}


class Unlisted(Unreadable):
    """The driver's process list lacks this process."""


class NotBooked(Unreadable):
    """The driver lists this process without its bytes."""


class NvmlLibrary:
    """The initialised library; NVML counts its users, so closing harms no other."""

    def __init__(self) -> None:
        """Raises: ImportError, pynvml.NVMLError."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            import pynvml
        self.nvml: Any = pynvml
        pynvml.nvmlInit()

    def reopen(self) -> None:
        """Take up the library again after someone else has shut it down."""
        self.nvml.nvmlInit()

    def close(self) -> None:
        """Give the library back; one that is shut down already is fine."""
        try:
            self.nvml.nvmlShutdown()
        except self.nvml.NVMLError_Uninitialized:
            return

    def find(self, name: str, pid: int) -> Any:
        """The handle of a device, or of the MIG slice that lists the process.

        Raises:
            pynvml.NVMLError: the device is not there, or not for us.
            Unlisted: the device is cut into slices and none lists the process.
        """
        nvml = self.nvml
        try:
            handle = nvml.nvmlDeviceGetHandleByUUID(name)
        except (nvml.NVMLError_NotFound, nvml.NVMLError_InvalidArgument):
            # CUDA gives a slice's identifier without telling that it is one.
            mig_name = name.replace("GPU-", "MIG-", 1)
            return nvml.nvmlDeviceGetHandleByUUID(mig_name)
        if not self._is_sliced(handle):
            return handle
        return self._own_slice(handle, pid)

    def _is_sliced(self, handle: Any) -> bool:
        nvml = self.nvml
        try:
            current, _pending = nvml.nvmlDeviceGetMigMode(handle)
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound):
            return False
        return bool(current)

    def _own_slice(self, parent: Any, pid: int) -> Any:
        nvml = self.nvml
        slices = 0
        for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(parent)):
            try:
                handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, index)
            except nvml.NVMLError_NotFound:
                continue
            slices += 1
            queries = process_queries(nvml, handle)
            if any(entry.pid == pid for query in queries for entry in query(handle)):
                return handle
        raise Unlisted(f"MIG is on and none of its {slices} slices lists this process")


class NvmlCard:
    """One device, asked by handle. Every method raises `pynvml.NVMLError`."""

    def __init__(self, library: NvmlLibrary, name: str, pid: int) -> None:
        self.name = name
        self._library = library
        self._pid = pid
        self._handle = library.find(name, pid)
        self._ask_used = self._memory_query()
        self._queries: tuple[Query, ...] = ()
        self._lists_us: tuple[Query, ...] = ()
        self._used = -1
        self._used_before = -1
        self._own = 0

    def used(self) -> int:
        """Bytes in use on the whole device, by everyone."""
        self._used = -1
        self._used = self._call(self._ask_used)
        return self._used

    def own(self) -> int:
        """Bytes the driver books on this process.

        Asked again only when the device's use has moved since, or is not known.

        Raises:
            Unlisted: the driver does not list this process.
            NotBooked: it does, without its bytes.
        """
        if self._used < 0 or self._used != self._used_before:
            self._own = self._own_now(self._lists_us or self._all_queries())
            self._used_before = self._used
        return self._own

    def forget(self) -> None:
        """Ask every list afresh at the next look."""
        self._used_before = -1
        self._lists_us = ()

    def _all_queries(self) -> tuple[Query, ...]:
        if not self._queries:
            self._queries = process_queries(self._library.nvml, self._handle)
        return self._queries

    def _own_now(self, queries: tuple[Query, ...]) -> int:
        """The largest figure of our entries.

        A process that computes and draws is in two lists, with all its bytes in each.
        """
        found: list[int] = []
        lists_us: list[Query] = []
        for query in queries:
            entries = self._call(query)
            ours = [entry for entry in entries if entry.pid == self._pid]
            if ours:
                lists_us.append(query)
                found += [_booked(entry) for entry in ours]
        if not found:
            raise Unlisted("this process is not in the driver's list")
        self._lists_us = tuple(lists_us)
        return max(found)

    def _memory_query(self) -> Query:
        """One version of the memory query, for good.

        The older one counts what the driver reserves as used, so figures of the two
        must never meet in one difference.
        """
        nvml = self._library.nvml
        self.counts_reserved = False
        version = getattr(nvml, "nvmlMemory_v2", None)
        if version is not None:
            try:
                nvml.nvmlDeviceGetMemoryInfo(self._handle, version=version)
            except (
                nvml.NVMLError_FunctionNotFound,
                nvml.NVMLError_ArgumentVersionMismatch,
            ):
                version = None
            except nvml.NVMLError:
                pass  # the first reading meets it again, and keeps its reason
        if version is None:
            self.counts_reserved = True
            return lambda handle: int(nvml.nvmlDeviceGetMemoryInfo(handle).used)
        return lambda handle: int(nvml.nvmlDeviceGetMemoryInfo(handle, version).used)

    def _call(self, query: Query) -> Any:
        """Ask; once more after a shutdown by someone else or a list that grew."""
        nvml = self._library.nvml
        try:
            return query(self._handle)
        except nvml.NVMLError_InsufficientSize:
            return query(self._handle)
        except nvml.NVMLError_Uninitialized:
            self._library.reopen()
            self._handle = self._library.find(self.name, self._pid)
            return query(self._handle)


def process_queries(nvml: Any, handle: Any) -> tuple[Query, ...]:
    """The queries this driver answers: who computes, draws, and shares through MPS.

    Raises:
        pynvml.NVMLError: it answers none.
        Unreadable: the binding has none.
    """
    found: list[Query] = []
    missing: list[Exception] = []
    for kind in ("Compute", "Graphics", "MPSCompute"):
        for query in _versions_of(nvml, f"nvmlDeviceGet{kind}RunningProcesses"):
            try:
                query(handle)
            except (
                nvml.NVMLError_FunctionNotFound,
                nvml.NVMLError_NotSupported,
            ) as error:
                missing.append(error)
                continue
            found.append(query)
            break
    if found:
        return tuple(found)
    raise missing[0] if missing else Unreadable("nvidia-ml-py lacks process queries")


def _versions_of(nvml: Any, name: str) -> list[Query]:
    """The versions of a query, newest first; the bare name only where it is all."""
    versions = [getattr(nvml, f"{name}_v{version}", None) for version in (3, 2)]
    known = [query for query in versions if query is not None]
    return known or [query for query in (getattr(nvml, name, None),) if query]


def _booked(entry: Any) -> int:
    value = entry.usedGpuMemory
    if value is None or value >= _MOST_BYTES:
        raise NotBooked(
            "the driver does not book bytes per process here (WDDM, WSL or vGPU)"
        )
    return int(value)


def explain(error: Exception) -> str:
    """What an error of NVML means here, with NVML's own words."""
    if isinstance(error, Unreadable):
        return str(error)
    kind = type(error).__name__
    meaning = _NATURE.get(kind) or _FAULTS.get(kind)
    words = str(error).strip() or kind
    return f"{meaning} ({words})" if meaning else f"{kind}: {words}"


def is_fault(error: Exception) -> bool:
    """Whether an error is more than something this system does not offer."""
    kind = type(error).__name__
    return kind.startswith("NVMLError") and kind not in _NATURE
