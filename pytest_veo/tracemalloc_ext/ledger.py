"""The blocks that are in tracemalloc because of us, and the domains they are in."""

from __future__ import annotations

import ctypes
import dataclasses
import threading


HOST = 0
"""tracemalloc's domain of the interpreter's own memory."""
_BASE = 0x0EC00000  # far from what others use: NumPy has 389047, CPython 0
_DEVICES = 256

_TRACK = ctypes.pythonapi.PyTraceMalloc_Track
_TRACK.argtypes = (ctypes.c_uint, ctypes.c_size_t, ctypes.c_size_t)
_TRACK.restype = ctypes.c_int
_UNTRACK = ctypes.pythonapi.PyTraceMalloc_Untrack
_UNTRACK.argtypes = (ctypes.c_uint, ctypes.c_size_t)
_UNTRACK.restype = ctypes.c_int


@dataclasses.dataclass(frozen=True, slots=True)
class Domain:
    """One tracemalloc domain: the memory of one source on one device."""

    number: int
    source: str
    device: int | None = None

    @property
    def label(self) -> str:
        """`cupy device 0`."""
        return (
            self.source
            if self.device is None
            else f"{self.source} device {self.device}"
        )


HOST_DOMAIN = Domain(HOST, "host")


class _Arguments(threading.local):
    """The C arguments of a call, made once for each thread.

    Every object that a call makes is traced itself, which at 25 frames costs more
    than the call; so the same three are filled in again and again.
    """

    def __init__(self) -> None:
        self.number = ctypes.c_uint()
        self.address = ctypes.c_size_t()
        self.size_bytes = ctypes.c_size_t()
        self.is_filled = False
        """True inside a call: a free that the collector triggers there must not
        overwrite the arguments."""


class Ledger:
    """What is tracked at present. Every entry can be taken back."""

    def __init__(self) -> None:
        self._domains: dict[tuple[str, int], int] = {}
        self._live: dict[int, dict[int, int]] = {}
        self._arguments = _Arguments()
        self.untraced = 0
        """Allocations that tracemalloc refused: it was off, or out of memory."""

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The domains that have been used, in the order of their first use."""
        return tuple(
            Domain(number, source, device)
            for (source, device), number in self._domains.items()
        )

    @property
    def total_bytes(self) -> int:
        """All that is tracked at present."""
        return sum(sum(sizes.values()) for sizes in self._live.values())

    def number(self, source: str, device: int) -> int:
        """The domain of a source on a device; the same for as long as we live."""
        known = self._domains.get((source, device))
        if known is not None:
            return known
        sources = list(dict.fromkeys(name for name, _ in self._domains))
        index = sources.index(source) if source in sources else len(sources)
        number = _BASE + index * _DEVICES + device
        self._live[number] = {}
        self._domains[source, device] = number
        return number

    def track(self, number: int, address: int, size_bytes: int) -> None:
        """Add a block, with the caller's stack; the same address again replaces it."""
        arguments = self._arguments
        if arguments.is_filled:
            failed = _TRACK(number, address, size_bytes)
        else:
            arguments.is_filled = True
            arguments.number.value = number
            arguments.address.value = address
            arguments.size_bytes.value = size_bytes
            failed = _TRACK(arguments.number, arguments.address, arguments.size_bytes)
            arguments.is_filled = False
        if failed:
            self.untraced += 1
        else:
            self._live[number][address] = size_bytes

    def untrack(self, number: int, address: int) -> None:
        """Take a block out; one that was never in is ignored."""
        if self._live[number].pop(address, None) is None:
            return
        arguments = self._arguments
        if arguments.is_filled:
            _UNTRACK(number, address)
            return
        arguments.is_filled = True
        arguments.number.value = number
        arguments.address.value = address
        _UNTRACK(arguments.number, arguments.address)
        arguments.is_filled = False

    def clear(self) -> None:
        """Take everything out again."""
        for number, sizes in self._live.items():
            for address in list(sizes):
                self.untrack(number, address)
        self._domains.clear()
        self.untraced = 0
