"""`veo doctor`: which probes can read something here, and why not.

Looks at what is installed. Imports no framework, initialises no device.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import importlib.util
import platform
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple

import pytest

from pytest_veo.cli.answer import answer
from pytest_veo.errors import ProbeUnavailable


_NVML_LIBRARY = "libnvidia-ml.so.1"
_NVML_BINDING = "pynvml"


class Line(NamedTuple):
    """What can be said of one probe without waking it."""

    probe: str
    state: str
    """`ready`, `waits` (for a test to use its framework) or `absent`."""
    reason: str


class Framework(NamedTuple):
    """What a probe waits for."""

    modules: tuple[str, ...]
    """Any of them is enough."""
    until: str
    """When it begins to read."""


FRAMEWORKS = {
    "torch": Framework(("torch",), "a test has initialised torch.cuda"),
    "accelerator": Framework(
        ("torch",), "a test has initialised a torch accelerator other than CUDA"
    ),
    "cupy": Framework(("cupy",), "a test has used a CuPy device"),
    "numba": Framework(("numba",), "a test has made a Numba CUDA context"),
    "rmm": Framework(("rmm",), "a test has imported RMM and uses its statistics"),
    "jax": Framework(("jax",), "a test has initialised a JAX backend"),
    "onnxruntime": Framework(("onnxruntime",), "a test has imported ONNX Runtime"),
    "cuda": Framework(
        ("torch", "cupy", "numba", "cuda.core"), "a test has imported one of them"
    ),
}
"""By probe; `host` and `nvml` are not frameworks'."""


def add_parser(subparsers: Any) -> None:
    """Add `doctor` to the `veo` command.

    Args:
        subparsers: what `ArgumentParser.add_subparsers` returned.
    """
    parser = subparsers.add_parser(
        "doctor",
        help="tell which probes can read something here, and why not",
        description="Looks at what is installed; initialises no device.",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print one line for each probe and each of its troubles.

    Returns:
        0.
    """
    answer(args, _document, _lines())
    return 0


def _lines() -> Iterator[str]:
    yield (
        f"pytest-veo {_distribution('pytest-veo')}, pytest {pytest.__version__}, "
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    )
    for line in examine():
        yield f"{line.probe:<12} {line.state:<7} {line.reason}"


def _document() -> dict[str, Any]:
    return {
        "pytest_veo": _distribution("pytest-veo"),
        "pytest": pytest.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "probes": [line._asdict() for line in examine()],
    }


def examine() -> list[Line]:
    """One line for each probe, more where a part of it is missing."""
    return [*_host(), _nvml(), *(_framework(name) for name in FRAMEWORKS)]


def _host() -> list[Line]:
    from pytest_veo.probes.host import HostProbe

    probe = HostProbe()
    try:
        probe.open()
    except ProbeUnavailable as unavailable:
        return [Line("host", "absent", unavailable.reason)]
    names = ", ".join(counter.name for counter in probe.counters)
    found = [Line("host", "ready", f"reads {names}")]
    found += [Line("host", "absent", str(trouble)) for trouble in probe.troubles]
    probe.close()
    return found


def _nvml() -> Line:
    if not _is_installed(_NVML_BINDING):
        return Line("nvml", "absent", "nvidia-ml-py is not installed")
    try:
        ctypes.CDLL(_NVML_LIBRARY)  # loaded, not initialised
    except OSError as error:
        return Line("nvml", "absent", f"no NVIDIA driver: {error}")
    return Line("nvml", "waits", "reads once a test has loaded the CUDA driver")


def _framework(name: str) -> Line:
    framework = FRAMEWORKS[name]
    installed = [module for module in framework.modules if _is_installed(module)]
    if not installed:
        missing = " nor ".join(framework.modules)
        is_one = len(framework.modules) == 1
        words = f"{missing} is not installed" if is_one else f"neither {missing}"
        return Line(name, "absent", words if is_one else f"{words} is installed")
    versions = ", ".join(_with_version(module) for module in installed)
    return Line(name, "waits", f"{versions}: reads once {framework.until}")


def _is_installed(module: str) -> bool:
    """Whether the module is there; nothing of it is run."""
    package, dot, _ = module.partition(".")
    if importlib.util.find_spec(package) is None:
        return False
    # A submodule's spec would import its package.
    return not dot or bool(_distribution(module.replace(".", "-")))


def _distribution(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _with_version(module: str) -> str:
    package = module.partition(".")[0]
    names = importlib.metadata.packages_distributions().get(package, [])
    exact = module.replace(".", "-")
    name = exact if exact in names else next(iter(names), "")
    return f"{module} {_distribution(name)}".rstrip() if name else module
