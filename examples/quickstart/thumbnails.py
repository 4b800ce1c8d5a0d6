"""A small image service, as teams write them: four lines of it are worth a test."""

from __future__ import annotations

import functools
import zlib


WIDTH, HEIGHT = 512, 256
_gamma_table: list[int] = []
_crash_notes: list[bytearray] = []


def decode(packed: bytes) -> bytearray:
    """The pixels of a packed image."""
    return bytearray(zlib.decompress(packed))


def gamma() -> list[int]:
    """The table for gamma correction; made when it is first needed."""
    if not _gamma_table:
        _gamma_table.extend(int(step**2.2) for step in range(20_000))
    return _gamma_table


def note_for_crash_report(pixels: bytearray) -> None:
    """Keep an image for a crash report; nobody ever throws one away."""
    _crash_notes.append(pixels)


class Thumbnailer:
    """Makes thumbnails, and remembers them."""

    def __init__(self, pixels: bytearray) -> None:
        self.pixels = pixels

    @functools.cache
    def thumbnail(self, step: int) -> bytes:
        """Every `step`-th pixel. The cache keeps `self`, and with it the image."""
        return bytes(self.pixels[::step])


class Model:
    """Weights that take long to load: one for a whole test module."""

    def __init__(self) -> None:
        self.weights: list[float] = [0.5] * 100_000

    def close(self) -> None:
        """Give the weights back."""
        self.weights.clear()

    def score(self, pixels: bytearray) -> float:
        """How much there is to see."""
        return self.weights[0] * sum(pixels[::997])
