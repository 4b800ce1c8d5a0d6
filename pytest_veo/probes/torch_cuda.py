"""PyTorch's CUDA allocators: what they have handed out, and what they keep.

Read through `torch._C` where the public function does the same work six times over:
`torch.cuda.memory_stats` flattens and sorts 123 figures, 64 us, of which the
allocator's own answer is 10 us.

Never `empty_cache`, not even in `settle`. It changes no figure that proves a leak
(`allocated` is what counts), slows the tests that follow, and with expandable
segments it unmaps memory under work queued on another device (pytorch#196258).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from typing import cast

from pytest_veo.memory.snapshot import HOST
from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Kind
from pytest_veo.memory.snapshot import Rung
from pytest_veo.probes.cuda_driver import DriverWatch
from pytest_veo.probes.gauges import Gauge
from pytest_veo.probes.gauges import GaugedProbe
from pytest_veo.units import Unit


_ROUNDING = 512
"""The caching allocator rounds every request up to this many bytes."""
_SEGMENT = 2 << 20
"""It asks the driver for no less than this."""
_LARGE_SEGMENT = 20 << 20
_COMMON_POOL = (0, 0)
_DRIVER_POOL = "cudaMallocAsync"
_NOTHING_YET = f"the {_DRIVER_POOL} backend has reported no byte so far"


class TorchCudaProbe(GaugedProbe):
    """Counters of every CUDA device that this process has a context on."""

    name = "torch"

    def __init__(self) -> None:
        super().__init__()
        self._unseen: tuple[int, ...] | None = None
        self._unproven: tuple[int, ...] = ()
        self._watched: dict[int, str] = {}
        self._is_driver_pool = False

    def is_active(self) -> bool:
        """Whether `torch.cuda` is imported and initialised, and usable after a fork."""
        cuda = sys.modules.get("torch.cuda")
        if cuda is None:
            return False
        is_initialized = getattr(cuda, "is_initialized", None)
        return is_initialized is not None and is_initialized() is True

    def close(self) -> None:
        """Let go of the gauges."""
        super().close()
        self._unseen = None
        self._unproven = ()
        self._watched = {}

    def _bring_to_rest(self) -> None:
        """Wait for every device in use, then let the allocators book what came back.

        A block used by several streams, and a pinned buffer of an asynchronous copy,
        is booked as returned when the next request is served: where one may be
        waiting, a byte is asked for and given back.
        """
        if not self._watched:
            return
        torch = sys.modules["torch"]
        if torch.cuda.is_current_stream_capturing():
            return  # waiting would break the user's capture
        for ordinal, device in tuple(self._watched.items()):
            try:
                torch.cuda.synchronize(ordinal)
                _book_returned_blocks(torch, ordinal)
            except Exception as error:  # a lost device answers with anything
                del self._watched[ordinal]
                self._lose_device(device, self._reason(error))
        _book_returned_buffers(torch)

    def _discover(self) -> None:
        torch = sys.modules["torch"]
        if self._unseen is None:
            self._unseen = tuple(range(torch.cuda.device_count()))
            self._is_driver_pool = torch.cuda.get_allocator_backend() == _DRIVER_POOL
            self._add_pinned(torch)
        for ordinal in self._unseen:
            if _has_context(torch, ordinal):
                self._unseen = tuple(left for left in self._unseen if left != ordinal)
                self._watched[ordinal] = _name_of(torch, ordinal)
                self._add_device(torch, ordinal)
        for ordinal in self._unproven:
            self._prove_driver_pool(torch, ordinal)

    def _add_device(self, torch: Any, ordinal: int) -> None:
        device = self._watched[ordinal]
        try:
            stats = torch._C._cuda_memoryStats(ordinal)
        except Exception as error:  # a pluggable allocator keeps no statistics
            self._report(self._reason(error), device)
            return
        if self._is_driver_pool:
            self._unproven = (*self._unproven, ordinal)
            self._report(_NOTHING_YET, device)
        elif "reserved_bytes_by_private_pools" in stats:
            self._add_allocator(torch, ordinal, device)
        else:
            self._add_older_allocator(torch, ordinal, device)

    def _add_allocator(self, torch: Any, ordinal: int, device: str) -> None:
        stats_of = _quick_stats(torch)
        pools = _PrivatePools(torch, ordinal)

        def take() -> tuple[int, ...]:
            stats = stats_of(ordinal)
            return (*_quick_figures(stats), pools.reserved(stats))

        counters = (
            *self._quick_counters(device, reserved_gate=_LARGE_SEGMENT),
            self._held("private_pools", device, step=_SEGMENT),
        )
        self._add_quick(Gauge(counters, take))
        self._add_requested(torch, ordinal, device)

    def _add_older_allocator(self, torch: Any, ordinal: int, device: str) -> None:
        """Only a snapshot tells of private pools, so `reserved` is watched closely."""

        def quick() -> tuple[int, ...]:
            return _quick_figures(torch._C._cuda_memoryStats(ordinal))

        def slow() -> tuple[int, ...]:
            return (_private_segments(torch.cuda.memory_snapshot(), ordinal),)

        self._add_quick(Gauge(self._quick_counters(device, reserved_gate=0), quick))
        self._add_requested(torch, ordinal, device)
        self._add_slow(
            Gauge((self._held("private_pools", device, step=_SEGMENT),), slow)
        )

    def _add_requested(self, torch: Any, ordinal: int, device: str) -> None:
        def take() -> tuple[int, ...]:
            stats = torch._C._cuda_memoryStats(ordinal)
            requested = stats["requested_bytes"]["all"]["current"]
            return requested, stats["allocated_bytes"]["all"]["peak"]

        counters = (self._live("requested", device), _peak(device))
        self._add_slow(Gauge(counters, take))

    def _quick_counters(
        self, device: str, *, reserved_gate: int
    ) -> tuple[Counter, ...]:
        return (
            self._live("allocated", device, step=_ROUNDING),
            self._live("allocations", device, Unit.COUNT),
            # Blocks on their way back are in here: more than what is live.
            self._held("active", device, gate=_SEGMENT, step=_ROUNDING),
            self._held("reserved", device, gate=reserved_gate, step=_SEGMENT),
        )

    def _prove_driver_pool(self, torch: Any, ordinal: int) -> None:
        """Watch the driver's stream-ordered pool once it has reported any byte.

        Where the driver does not tell, every figure of this backend is 0.
        """

        def take() -> tuple[int, ...]:
            stats = torch._C._cuda_memoryStats(ordinal)
            allocated = stats["allocated_bytes"]["all"]["current"]
            return allocated, stats["reserved_bytes"]["all"]["current"]

        stats = torch._C._cuda_memoryStats(ordinal)
        if stats["reserved_bytes"]["all"]["peak"] == 0:
            return
        device = self._watched[ordinal]
        self._unproven = tuple(left for left in self._unproven if left != ordinal)
        self._retract(_NOTHING_YET, device)
        for counter in ("allocations", "active", "requested", "private_pools"):
            self._report(f"the {_DRIVER_POOL} backend keeps no count", device, counter)
        allocated = self._live("allocated", device, exact=False, step=_ROUNDING)
        reserved = self._held("reserved", device, gate=_LARGE_SEGMENT, step=_SEGMENT)
        self._add_quick(Gauge((allocated, reserved), take))

    def _add_pinned(self, torch: Any) -> None:
        stats_of = getattr(torch._C, "_cuda_hostMemoryStats", None)
        if stats_of is None:
            reason = f"PyTorch {torch.__version__} keeps no statistics of pinned memory"
            self._report(reason, counter="pinned")
            return

        def out() -> tuple[int, ...]:
            return (stats_of()["active_bytes"]["current"],)

        def held() -> tuple[int, ...]:
            return (stats_of()["allocated_bytes"]["current"],)

        self._add_quick(Gauge((self._live("pinned", HOST),), out))
        self._add_slow(Gauge((self._held("pinned_held", HOST, step=_SEGMENT),), held))


class _PrivatePools:
    """Bytes kept by pools of their own: those of CUDA graphs and of `MemPool`.

    The allocator lists every pool that ever was, so the question grows dearer with
    every graph. It is asked again only after a segment came or went.
    """

    def __init__(self, torch: Any, ordinal: int) -> None:
        self._stats_of = torch._C._cuda_memoryStats
        self._ordinal = ordinal
        self._came_and_went = (-1, -1)
        self._reserved = 0

    def reserved(self, stats: dict[str, Any]) -> int:
        """Bytes now, given the device's other figures."""
        segments = stats["reserved_bytes"]["all"]
        came_and_went = (segments["allocated"], segments["freed"])
        if came_and_went != self._came_and_went:
            pools = self._stats_of(self._ordinal)["reserved_bytes_by_private_pools"]
            self._reserved = sum(pool["all"]["current"] for pool in pools.values())
            self._came_and_went = came_and_went
        return self._reserved


def _quick_stats(torch: Any) -> Callable[[int], dict[str, Any]]:
    """The allocator's figures without its list of pools, where PyTorch offers that."""
    stats_of = getattr(torch._C, "_accelerator_getDeviceStats", None)
    if stats_of is None or torch.accelerator.current_accelerator().type != "cuda":
        return cast("Callable[[int], dict[str, Any]]", torch._C._cuda_memoryStats)
    return cast("Callable[[int], dict[str, Any]]", stats_of)


def _has_context(torch: Any, ordinal: int) -> bool:
    """Whether there can be anything to read on a device; makes no context there."""
    has_context = getattr(torch._C, "_cuda_hasPrimaryContext", None)
    if has_context is not None:
        return bool(has_context(ordinal))
    stats = torch._C._cuda_memoryStats(ordinal)
    return bool(stats["reserved_bytes"]["all"]["peak"])


def _name_of(torch: Any, ordinal: int) -> str:
    """The driver's own name, which tells a MIG slice from its parent.

    PyTorch counts the devices as the driver does.
    """
    driver = DriverWatch().driver()
    if driver is not None:
        return driver.device_name(ordinal)
    uuid = getattr(torch.cuda.get_device_properties(ordinal), "uuid", None)
    return f"GPU-{uuid}" if uuid is not None else f"cuda:{ordinal}"


def _quick_figures(stats: dict[str, Any]) -> tuple[int, ...]:
    return (
        stats["allocated_bytes"]["all"]["current"],
        stats["allocation"]["all"]["current"],
        stats["active_bytes"]["all"]["current"],
        stats["reserved_bytes"]["all"]["current"],
    )


def _peak(device: str) -> Counter:
    """PyTorch's own running peak: read, never reset, for the user may be at it."""
    return Counter(
        probe=TorchCudaProbe.name,
        name="allocated_peak",
        unit=Unit.BYTES,
        device=device,
        rung=Rung.DEVICE,
        kind=Kind.PEAK,
        exact=False,
        step=_ROUNDING,
    )


def _private_segments(segments: list[dict[str, Any]], ordinal: int) -> int:
    return sum(
        segment["total_size"]
        for segment in segments
        if segment["device"] == ordinal
        and tuple(segment.get("segment_pool_id", _COMMON_POOL)) != _COMMON_POOL
    )


def _book_returned_blocks(torch: Any, ordinal: int) -> None:
    stats = torch._C._cuda_memoryStats(ordinal)
    active = stats["active_bytes"]["all"]["current"]
    if active == stats["allocated_bytes"]["all"]["current"]:
        return
    try:
        torch.empty(1, dtype=torch.uint8, device=f"cuda:{ordinal}")
    except torch.cuda.OutOfMemoryError:
        return  # the device is full: `active` stays as high as it is


def _book_returned_buffers(torch: Any) -> None:
    stats_of = getattr(torch._C, "_cuda_hostMemoryStats", None)
    if stats_of is not None and stats_of()["active_bytes"]["current"]:
        torch.empty(1, dtype=torch.uint8, pin_memory=True)
