"""Checked sessions inside tests.

Only the plugins a test names are loaded, so that a suite means the same whatever
is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Protocol

import pytest


if TYPE_CHECKING:
    from collections.abc import Sequence


class Check(Protocol):
    """Writes a test module and checks it for leaks."""

    def __call__(
        self,
        source: str | None = None,
        *args: str,
        plugins: Sequence[str] = (),
        level: str = "fast",
        inprocess: bool = False,
    ) -> pytest.RunResult: ...


@pytest.fixture
def check(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Check `test_it.py`.

    In a process of its own, for pytester keeps every hook call that it sees in this
    one: each run of a test would leak it. In this process where nothing is measured.
    """
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(
        source: str | None = None,
        *args: str,
        plugins: Sequence[str] = (),
        level: str = "fast",
        inprocess: bool = False,
    ) -> pytest.RunResult:
        if source is not None:
            pytester.makepyfile(test_it=source)
        start = [f"-pno:{name}" for name in ("randomly", "cacheprovider")]
        start += [f"-p{name}" for name in ("pytest_veo.plugin", *plugins)]
        if level:
            start.append(f"--veo-leak-check={level}")
        if not any(arg.startswith("--veo-probes") for arg in args):
            start.append("--veo-probes=host")
        if inprocess:
            return pytester.runpytest_inprocess(*start, *args)
        return pytester.runpytest_subprocess(*start, *args, timeout=100)

    return run
