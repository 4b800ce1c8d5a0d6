"""The blocks that are in tracemalloc because of us, and the domains they are in."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any


HOST = 0
"""tracemalloc's domain of the interpreter's own memory."""
_BASE = 0x0EC00000  # far from what others use: NumPy has 389047, CPython 0
_DEVICES = 256

# Without `argtypes`, a converted argument is passed on as it is. To convert a number
# makes an object, and every object that is made here is traced itself, which at 25
# frames costs more than the call: so arguments are converted once and kept.
_TRACK = ctypes.pythonapi["PyTraceMalloc_Track"]
_UNTRACK = ctypes.pythonapi["PyTraceMalloc_Untrack"]
_domain_argument = ctypes.c_uint.from_param
_word_argument = ctypes.c_size_t.from_param
_MOST_ARGUMENTS = 8192


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


class Ledger:
    """What is tracked at present. Every entry can be taken back."""

    def __init__(self) -> None:
        self._domains: dict[tuple[str, int], int] = {}
        self._live: dict[int, dict[int, int]] = {}
        self._numbers: dict[int, Any] = {}
        self._words: dict[int, Any] = {}
        """Addresses and sizes, converted: pools hand out the same ones again."""
        self._is_open = True
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
        self._numbers[number] = _domain_argument(number)
        self._live[number] = {}
        self._domains[source, device] = number
        return number

    def track(self, number: int, address: int, size_bytes: int) -> None:
        """Add a block, with the caller's stack; the same address again replaces it."""
        if not self._is_open:
            return
        words = self._words
        place = words.get(address) or self._word(address)
        size = words.get(size_bytes) or self._word(size_bytes)
        if _TRACK(self._numbers[number], place, size):
            self.untraced += 1
        else:
            self._live[number][address] = size_bytes

    def _word(self, value: int) -> Any:
        if len(self._words) >= _MOST_ARGUMENTS:
            self._words.clear()
        made = self._words[value] = _word_argument(value)
        return made

    def untrack(self, number: int, address: int) -> None:
        """Take a block out; one that was never in is ignored."""
        if self._live[number].pop(address, None) is not None:
            place = self._words.get(address) or self._word(address)
            _UNTRACK(self._numbers[number], place)

    def clear(self) -> None:
        """Take everything out again, and take nothing in any more."""
        self._is_open = False
        for number, sizes in self._live.items():
            for address in list(sizes):
                self.untrack(number, address)
        self._domains.clear()
        self.untraced = 0
