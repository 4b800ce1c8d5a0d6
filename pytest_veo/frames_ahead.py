"""What judging frames needs, loaded before the first test.

A leak check holds whatever a test brings in against it. Which test is the first to
compare runs, or to read a capture, is chance: of what we need ourselves no test may
be charged, now or in a baseline.
"""

from __future__ import annotations

import contextlib
import importlib
import tempfile
from collections.abc import Iterable
from pathlib import Path

from pytest_veo.errors import VeoError


_LARGEST_BYTES = 16 << 20


def load_judge() -> None:
    """All that budgets need."""
    from pytest_veo.frames.session import warm_up

    warm_up()


def load_all(captures: Iterable[Path], *, previews: bool) -> None:
    """What tests may need beside their budgets, for a session that is watched.

    Args:
        captures: the files that markers name, there already or not.
        previews: whether preview streams are received.
    """
    from pytest_veo.frames.session import warm_up_comparing

    load_judge()
    warm_up_comparing()
    paths = set(captures)
    if paths:
        _load_readers(paths)
    if previews:
        importlib.import_module("pytest_veo.readers.preview_streams")
        # What is missing is told by the test that needs it.
        with contextlib.suppress(ImportError):
            importlib.import_module("websockets.asyncio.client")


def _load_readers(paths: Iterable[Path]) -> None:
    registry = importlib.import_module("pytest_veo.readers.registry")
    registry.readers()
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder, "sample.csv")
        sample.write_text("frame_ms\n" + 40 * "16.5\n17.0\n")
        for path in (sample, *paths):
            # Files the test is yet to write, and damaged ones, are its own affair.
            with contextlib.suppress(VeoError, OSError):
                if path.stat().st_size <= _LARGEST_BYTES:
                    registry.read_capture(path)
