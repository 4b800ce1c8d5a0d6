from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from tests.probes.stubs import StubWatch


# `tests.probes.conformance` is imported by its full name, which needs the root.
ROOT = str(Path(__file__).parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

pytest.register_assert_rewrite("tests.probes.conformance")


@pytest.fixture
def watch() -> StubWatch:
    """A process that holds a CUDA context on the first device."""
    from tests.probes.stubs import StubWatch

    watch = StubWatch()
    watch.use_device(0)
    return watch
