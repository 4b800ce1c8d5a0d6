from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy
import pytest
import scipy.special

from pytest_veo import frames_plugin
from pytest_veo.frames import session


STEADY = """
    MS = 1_000_000

    def record(frames, intervals_ms):
        now = 0
        frames.extend([0])
        for interval in intervals_ms:
            now += round(interval * MS)
            frames.extend([now])

    def steady(frames, count=400, slow=()):
        usual = [16.0 + n % 3 * 0.1 for n in range(count)]
        record(frames, [30.0 if n in slow else usual[n] for n in range(count)])
"""
"""Helpers of the suites under test: exact frames, whatever the machine does."""

INI = """[pytest]
filterwarnings =
    error
    ignore:Module already imported
"""

try:
    AV: object = importlib.import_module("av")
except ImportError:
    AV = None

# A suite run in this process must find these loaded: pytester takes away what the
# suite loaded, and numpy cannot be loaded twice.
PRELOADED = (numpy, scipy.special, AV, frames_plugin, session)

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a suite that records exact frames: `run(source, *options, ini=...)`."""
    for variable in ("PYTEST_ADDOPTS", "CI", "FORCE_COLOR", "PY_COLORS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    # Others' plugins have no part in it, and loading them takes longer than the run.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run_suite(
        source: str, *options: str, ini: str = "", conftest: str = ""
    ) -> pytest.RunResult:
        null = "" if "veo_jitter_null" in ini else "veo_jitter_null = 0 ms"
        pytester.makeini("\n".join((INI, null, ini)))
        pytester.makeconftest(conftest)
        pytester.makepyfile(shapes_of_frames=STEADY)
        header = "import pytest\nfrom shapes_of_frames import record, steady\n"
        has_own = "import pytest" in source
        pytester.makepyfile(test_suite=source if has_own else header + source)
        plugins = ("-p", "pytest_veo.frames_plugin", "-p", "no:cacheprovider")
        return pytester.runpytest(*plugins, *options)

    return run_suite
