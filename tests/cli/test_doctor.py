from __future__ import annotations

import ctypes
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_veo.cli import doctor
from pytest_veo.cli import main
from pytest_veo.options import PROBES


def lines() -> dict[str, tuple[str, str]]:
    return {line.probe: (line.state, line.reason) for line in doctor.examine()}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of packages that stands for all that is installed."""
    monkeypatch.syspath_prepend(str(tmp_path))
    found = importlib.util.find_spec

    def find_here(name: str, package: str | None = None) -> object:
        return found(name, package) if (tmp_path / name).is_dir() else None

    monkeypatch.setattr(importlib.util, "find_spec", find_here)
    return tmp_path


def install(site: Path, module: str, distribution: str, version: str) -> None:
    folder = site / module
    folder.mkdir()
    (folder / "__init__.py").write_text("raise SystemExit('imported')\n")
    told = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    )
    (told / "RECORD").write_text(f"{module}/__init__.py,,\n")


def test_every_probe_is_examined_in_the_order_of_the_catalogue() -> None:
    seen = dict.fromkeys(line.probe for line in doctor.examine())
    assert tuple(seen) == PROBES


def test_json_has_what_the_lines_have(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["probes"] == [line._asdict() for line in doctor.examine()]
    assert found["pytest"] == pytest.__version__


def test_the_host_is_ready_everywhere() -> None:
    state, reason = lines()["host"]
    assert state == "ready"
    assert reason.startswith("reads python_blocks, ")


@pytest.mark.parametrize(
    ("probe", "reason"),
    [
        ("torch", "torch is not installed"),
        ("cupy", "cupy is not installed"),
        ("cuda", "neither torch nor cupy nor numba nor cuda.core is installed"),
        ("nvml", "nvidia-ml-py is not installed"),
    ],
)
def test_what_is_not_installed_is_named(site: Path, probe: str, reason: str) -> None:
    assert lines()[probe] == ("absent", reason)


def test_an_installed_framework_is_named_with_its_version_and_not_imported(
    site: Path,
) -> None:
    install(site, "cupy", "cupy-cuda12x", "14.2.0")
    assert lines()["cupy"] == (
        "waits",
        "cupy 14.2.0: reads once a test has used a CuPy device",
    )
    assert "cupy" not in sys.modules


def test_one_of_several_frameworks_is_enough(site: Path) -> None:
    install(site, "torch", "torch", "2.14.1")
    assert lines()["cuda"] == (
        "waits",
        "torch 2.14.1: reads once a test has imported one of them",
    )


def test_a_framework_without_metadata_is_named_without_a_version(site: Path) -> None:
    (site / "jax").mkdir()
    (site / "jax" / "__init__.py").touch()
    assert lines()["jax"] == (
        "waits",
        "jax: reads once a test has initialised a JAX backend",
    )


@pytest.mark.parametrize("has_driver", [True, False], ids=["driver", "no-driver"])
def test_nvml_waits_for_the_driver_and_says_when_there_is_none(
    site: Path, monkeypatch: pytest.MonkeyPatch, has_driver: bool
) -> None:
    install(site, "pynvml", "nvidia-ml-py", "13.0")

    def load(name: str) -> object:
        assert name == "libnvidia-ml.so.1"
        if has_driver:
            return object()
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", load)
    assert doctor._nvml() == (
        doctor.Line("nvml", "waits", "reads once a test has loaded the CUDA driver")
        if has_driver
        else doctor.Line(
            "nvml",
            "absent",
            "no NVIDIA driver: libnvidia-ml.so.1: cannot open shared object file",
        )
    )


def test_the_command_prints_the_versions_and_a_line_for_each_probe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("pytest-veo 0.1.0, pytest ")
    assert {line.split()[0] for line in rest} == set(PROBES)
    assert {line.split()[1] for line in rest} <= {"ready", "waits", "absent"}


def test_a_probe_that_cannot_be_opened_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As on a system without glibc's mallinfo2.
    monkeypatch.setattr("pytest_veo.probes.host._find_mallinfo", lambda: None)
    host = [line for line in doctor.examine() if line.probe == "host"]
    assert host[0].state == "ready"
    assert [line.reason for line in host[1:]] == [
        "host.heap: unavailable, malloc is not glibc's: no mallinfo2",
        "host.mapped: unavailable, needs /proc/self/statm and mallinfo2",
    ]


def test_it_imports_no_framework_and_no_binding() -> None:
    script = (
        "import sys; from pytest_veo.cli import main; main(['doctor']);"
        "print(*(m for m in ('torch', 'cupy', 'numba', 'jax', 'onnxruntime', 'rmm',"
        "'cuda', 'pynvml', 'numpy') if m in sys.modules))"
    )
    said = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert said.stdout.splitlines()[-1] == ""
