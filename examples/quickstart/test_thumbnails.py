"""What a leak check says of a clean test, a leak, a retention and an allowed leak.

pytest --veo-leak-check examples/quickstart
"""

from __future__ import annotations

import zlib

import pytest
from thumbnails import HEIGHT
from thumbnails import WIDTH
from thumbnails import Thumbnailer
from thumbnails import decode
from thumbnails import gamma
from thumbnails import note_for_crash_report


PACKED = zlib.compress(bytes(WIDTH * HEIGHT))


def test_decodes() -> None:
    """Clean: 128 KiB of pixels are used and given back."""
    assert len(decode(PACKED)) == WIDTH * HEIGHT


def test_gamma_is_monotonic() -> None:
    """Retention: the first use makes a table, further uses do not."""
    table = gamma()
    assert table == sorted(table)


def test_makes_thumbnail() -> None:
    """Leak: the cache on the method keeps every Thumbnailer for ever."""
    assert len(Thumbnailer(decode(PACKED)).thumbnail(8)) == WIDTH * HEIGHT // 8


@pytest.mark.veo_leak(
    allow=True, reason="crash notes are kept on purpose", until="2099-12-31"
)
def test_notes_for_crash_report() -> None:
    """Allowed leak: known, with a reason and a date after which it fails."""
    note_for_crash_report(decode(PACKED))
