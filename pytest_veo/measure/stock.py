"""malloc's stock of freed memory: counted as in use, and filled by chance.

glibc keeps for each thread a few freed chunks of every size up to 1 KiB and counts
them as in use. Which thread's stock a chunk ends in depends on timing, so a test with
threads of its own grows for hundreds of runs, by some hundred bytes, ever more seldom.
A stock that is full cannot grow; one that is empty hides what is taken from it. Without
that, what frees all it takes goes on growing for dozens of runs, up to 180 KiB in all.
"""

from __future__ import annotations

import ctypes


CHUNKS = 16
"""So many of a size are kept at most: 7, with newer releases 16."""
SIZES = range(24, 1_040, 16)


_BYTES_HEADER = b"".__sizeof__()
_PIECES = [size - _BYTES_HEADER for size in SIZES if size > 512] * CHUNKS
"""What Python's own allocator leaves to malloc."""


def refill() -> None:
    """Fill this thread's stock of what Python takes: in a fraction of the time."""
    pieces = [bytes(size) for size in _PIECES]
    pieces.clear()


def fill() -> None:
    """Fill this thread's stock: what grows after that does not go into it."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    libc.free.restype = None
    for size in SIZES:
        chunks = [libc.malloc(size) for _ in range(2 * CHUNKS)]
        for chunk in chunks:
            libc.free(chunk)
