"""Plays scenarios of the simulated GPU's table on a real card, a process each."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping

from tests.gpu.cards import ROOT
from tests.simgpu.driver import DOORS
from tests.simgpu.scenarios import sessions
from tests.simgpu.scenarios.sessions import Session
from tests.simgpu.scenarios.table import SCENARIOS
from tests.simgpu.scenarios.table import SECOND
from tests.simgpu.scenarios.table import Scenario


SESSION_S = 60
"""Importing PyTorch, a first context and a deep check have taken seconds."""
PYTEST = ("-m", "pytest", "-p", "no:cacheprovider", "-p", "pytest_veo.plugin")

TELLING = (
    "global_list",
    "raw_driver",
    "reference_cycle",
    "pinned",
    "cublas_workspace",
    "temporaries",
    "loss_with_graph",
    "private_pool",
    "pool_growth",
    "two_queues",
    "preallocation",
    "value_kept",
    "buffer_kept",
)
"""What differs most between a card and the simulator, first: time may run out."""

# The simulator always has two devices; a machine may have one.
_USE = sessions.WARM | {
    "torch": """
    for index in range(min(2, torch.cuda.device_count())):
        torch.empty(64 << 20, dtype=torch.uint8, device=f"cuda:{index}")
        torch.empty(1, device=f"cuda:{index}")
    torch.empty(1 << 20, dtype=torch.uint8).pin_memory()
""",
    "cupy": """
    for index in range(min(2, cupy.cuda.runtime.getDeviceCount())):
        with cupy.cuda.Device(index):
            cupy.empty(64 << 20, dtype=cupy.uint8)
    cupy.cuda.alloc_pinned_memory(1 << 20)
""",
}
_USABLE = {
    "torch": "import torch; assert torch.cuda.is_available(), 'torch sees no CUDA'",
    "cupy": "import cupy; assert cupy.cuda.is_available(), 'cupy sees no CUDA'",
    "numba": "import numba.cuda as on; assert on.is_available(), 'numba sees no CUDA'",
    "jax": "import jax; assert jax.default_backend() == 'gpu', 'jax sees no CUDA'",
    "onnxruntime": "import onnx, onnxruntime as ort; "
    "assert 'CUDAExecutionProvider' in ort.get_available_providers(), 'no CUDA build'",
    "rmm": "import tests.gpu.cudart, tests.simgpu.scenarios.rmm_resource",
}


def selection() -> tuple[Scenario, ...]:
    """The scenarios for a real card, the most telling first.

    `cupy13` plays the files of `cupy` in an environment of its own: here there is the
    interpreter's alone.
    """
    fit = [one for one in SCENARIOS if not one.simulator_only]
    once = {str(one): one for one in fit if one.environment != "cupy13"}
    last = len(TELLING)
    rank = {name: place for place, name in enumerate(TELLING)}
    return tuple(sorted(once.values(), key=lambda one: rank.get(one.name, last)))


def devices_needed(scenario: Scenario) -> int:
    """How many GPUs its files use."""
    return 2 if scenario.device == SECOND else 1


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """What a session inherits: no simulator, no other plugin, this checkout."""
    simulator = {str(DOORS), base.get("VEOSIM_BUILD", "")}
    kept = {
        name: value
        for name, value in base.items()
        if not name.startswith(("VEOSIM_", "VEO_", "PYTEST_"))
    }
    for name, first in (("PYTHONPATH", [str(ROOT)]), ("LD_LIBRARY_PATH", [])):
        paths = [path for path in kept.pop(name, "").split(os.pathsep) if path]
        paths = first + [path for path in paths if path not in simulator]
        if paths:
            kept[name] = os.pathsep.join(paths)
    return kept | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def unusable(framework: str, env: Mapping[str, str]) -> str:
    """Why a framework cannot be played with here; empty: it can."""
    if importlib.util.find_spec(framework) is None:
        return f"{framework} is not installed for {sys.executable}"
    try:
        done = subprocess.run(
            [sys.executable, "-c", _USABLE[framework]],
            env=dict(env),
            capture_output=True,
            text=True,
            timeout=SESSION_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{framework} is not imported in {SESSION_S} s"
    if done.returncode == 0:
        return ""
    last = done.stderr.strip().rpartition("\n")[2]
    return f"{framework} cannot be used: {last or f'status {done.returncode}'}"


def session(
    scenario: Scenario,
    twin: str,
    folder: pathlib.Path,
    env: Mapping[str, str],
    python: str = sys.executable,
) -> Session:
    """One file of a scenario in a pytest session of its own, checked deeply.

    Args:
        scenario: of the table.
        twin: `leaky` or `clean`.
        folder: empty; the files and the archive go there.
        env: of the session, see `environment`.
        python: whose pytest and framework play.

    Raises:
        subprocess.TimeoutExpired: the session took longer than `SESSION_S`.
    """
    name = _furnish(scenario, twin, folder)
    check = ("--veo-leak-check=deep", f"--veo-archive={folder / 'archive'}")
    with (folder / "output.txt").open("w") as output:
        done = subprocess.run(
            [python, *PYTEST, *check, "test_0.py", name],
            cwd=folder,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=SESSION_S,
            check=False,
        )
    return Session(done.returncode, (folder / "output.txt").read_text(), folder)


def _furnish(scenario: Scenario, twin: str, folder: pathlib.Path) -> str:
    name = f"test_{scenario.name}.py"
    module = sessions.MODULES.get(scenario.framework, scenario.framework)
    warm = sessions.CONFTEST.format(framework=module, use=_USE[module])
    if module == "rmm":
        warm = f"import tests.gpu.cudart\n{warm}"
    (folder / name).write_text(scenario.file(twin).read_text())
    (folder / "test_0.py").write_text(sessions.FIRST)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(warm)
    return name
