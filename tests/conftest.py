"""What every test may rely on."""

from __future__ import annotations

import contextlib

import pytest


with contextlib.suppress(ImportError):  # a machine with a GPU may do without it
    from hypothesis import settings

    # A loaded machine is slow, and that is no failure of the code under test.
    settings.register_profile("no deadline", deadline=None)
    settings.load_profile("no deadline")


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions inside tests write 80 columns without colour, wherever this runs."""
    monkeypatch.setenv("COLUMNS", "80")
    for name in (
        "FORCE_COLOR",
        "PY_COLORS",
        "PYTEST_ADDOPTS",
        "CI",
        "BUILD_NUMBER",
        "GITHUB_ACTIONS",
    ):
        monkeypatch.delenv(name, raising=False)
