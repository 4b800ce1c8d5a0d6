"""What every pytest run pays for having the plugin installed, in modules."""

from __future__ import annotations

import subprocess
import sys

import pytest


# `-X importtime` tells seconds; those are the benchmark's. Modules do not flicker.
HEAVY = {
    "cupy",
    "distributed",
    "duckdb",
    "fsspec",
    "jax",
    "numba",
    "numpy",
    "onnxruntime",
    "pandas",
    "pyarrow",
    "pynvml",
    "rmm",
    "scipy",
    "torch",
    "tqdm",
}
# What an inactive plugin may import of its own.
NEEDED = {
    "pytest_veo",
    "pytest_veo.errors",
    "pytest_veo.hookspec",
    "pytest_veo.options",
    "pytest_veo.plugin",
}


def modules_after(script: str) -> set[str]:
    said = subprocess.run(
        [sys.executable, "-c", f"{script}\nimport sys\nprint(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(said.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "module",
    [
        "pytest_veo.plugin",
        "pytest_veo.frames_plugin",
        "pytest_veo.session",
        "pytest_veo.cli.show",
        "pytest_veo.cli.compact",
        "pytest_veo.archive.query",
        "pytest_veo.archive.upload",
        "pytest_veo.unchecked",
    ],
)
def test_importing_it_imports_no_heavy_library(module: str) -> None:
    assert not HEAVY & modules_after(f"import {module}")


def test_an_inactive_plugin_imports_a_handful_of_its_own_modules() -> None:
    without = modules_after("import pytest")
    added = modules_after("import pytest, pytest_veo.plugin") - without
    assert {name for name in added if name.startswith("pytest_veo")} <= NEEDED
    assert not added - NEEDED, "imports beyond pytest's own"


@pytest.mark.parametrize("archive", [(), ("--veo-archive=kept",)], ids=["", "archive"])
def test_a_checked_session_imports_no_heavy_library(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    archive: tuple[str, ...],
) -> None:
    # Other plugins import what they like: pytest-randomly imports NumPy.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        import sys

        def test_one():
            pass

        def test_two():
            print("\\nmodules:", *sys.modules)
        """
    )
    said = pytester.run(
        *(sys.executable, "-m", "pytest", "-p", "pytest_veo.plugin"),
        *("--veo-leak-check", "-q", "-s", *archive),
    )
    (line,) = [line for line in said.outlines if line.startswith("modules:")]
    loaded = set(line.split())
    assert "pytest_veo.measure.watch" in loaded
    assert not (HEAVY | {"http.client", "ssl"}) & loaded
