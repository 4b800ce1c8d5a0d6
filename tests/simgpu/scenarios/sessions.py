"""Plays a scenario in a whole pytest session over the simulated driver."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import subprocess
import threading
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from tests.simgpu import contract
from tests.simgpu.build import Build
from tests.simgpu.driver import Sim
from tests.simgpu.environments import Environment
from tests.simgpu.scenarios.table import Scenario


TIMEOUT_S = 120
# The first use of a device, of a pool and of pinned memory is nobody's leak: a
# session-wide fixture makes it.
WARM = {
    "torch": """
    for index in range(2):
        torch.empty(64 << 20, dtype=torch.uint8, device=f"cuda:{index}")
        torch.empty(1, device=f"cuda:{index}")
    torch.empty(1 << 20, dtype=torch.uint8).pin_memory()
""",
    "cupy": """
    for index in range(2):
        with cupy.cuda.Device(index):
            cupy.empty(64 << 20, dtype=cupy.uint8)
    cupy.cuda.alloc_pinned_memory(1 << 20)
""",
    "numba.cuda": """
    numba.cuda.current_context()
""",
    "jax": """
    jax.devices()
    jax.device_put(0.0)
""",
    "onnxruntime": """
    import numpy
    from tests.simgpu.scenarios.onnx_model import MODEL

    session = onnxruntime.InferenceSession(MODEL, providers=["CUDAExecutionProvider"])
    session.run(None, {"x": numpy.ones(10, dtype=numpy.float32)})
    host = numpy.ones(1 << 20, dtype=numpy.uint8)
    onnxruntime.OrtValue.ortvalue_from_numpy(host, "cuda", 0)
""",
    "rmm": """
    from tests.simgpu.scenarios.rmm_resource import RESOURCE

    rmm.DeviceBuffer(size=1, mr=RESOURCE)
""",
}
FIRST = """\
def test_nothing_yet() -> None:
    pass
"""
"""Pays for what pytest, the plugin and the framework do once in a session."""
MODULES = {"numba": "numba.cuda"}
"""What is imported for a framework, where it is not the framework's own name."""

CONFTEST = """\
import pytest
import {framework}


@pytest.fixture(scope="session", autouse=True)
def device_in_use() -> None:{use}
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Session:
    """What came of one pytest session."""

    status: int
    output: str
    folder: pathlib.Path

    def records(self) -> list[dict[str, Any]]:
        """The archived record of every test, in order."""
        return [
            json.loads(line)
            for path in sorted(self.folder.glob("archive/runs/*/records.jsonl"))
            for line in path.read_text().splitlines()
        ]

    def header(self) -> dict[str, Any]:
        """The archived run's header."""
        (path,) = self.folder.glob("archive/runs/*/run.json")
        header: dict[str, Any] = json.loads(path.read_text())
        return header


class Nursery:
    """A child that has imported an environment's framework, and runs sessions."""

    def __init__(
        self,
        environment: Environment,
        framework: str,
        libraries: Build,
        folder: pathlib.Path,
    ) -> None:
        self._sim = Sim.create(folder / "veosim.state", libraries, devices=2)
        script = pathlib.Path(__file__).with_name("nursery.py")
        self._child = subprocess.Popen(
            [str(environment.python), str(script), MODULES.get(framework, framework)],
            env=contract.child_environment(self._sim),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def play(
        self,
        scenario: Scenario,
        twin: str,
        folder: pathlib.Path,
        options: Sequence[str],
        settings: Mapping[str, str] | None = None,
    ) -> Session:
        """Run one file of a scenario in a session of its own.

        Args:
            scenario: of the table.
            twin: `leaky` or `clean`.
            folder: empty; the file, what is written and the archive go there.
            options: pytest's.
            settings: further environment variables.
        """
        name = _furnish(scenario, twin, folder)
        request = {
            "folder": str(folder),
            "arguments": ["-p", "no:cacheprovider", *options, "test_0.py", name],
            "settings": dict(settings or {}),
            "mig": scenario.mig,
        }
        status = self._ask(request)
        return Session(status, (folder / "output.txt").read_text(), folder)

    def _ask(self, request: dict[str, Any]) -> int:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(request) + "\n")
        self._child.stdin.flush()
        timer = threading.Timer(TIMEOUT_S, self._child.kill)
        timer.start()
        try:
            line = self._child.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            raise contract.LifeFailed(f"the child of {request['folder']} is gone")
        return int(json.loads(line)["status"])

    def close(self) -> None:
        """Let the child go."""
        self._child.communicate(timeout=30)
        self._sim.close()


def _furnish(scenario: Scenario, twin: str, folder: pathlib.Path) -> str:
    name = f"test_{scenario.name}.py"
    (folder / name).write_text(scenario.file(twin).read_text())
    (folder / "test_0.py").write_text(FIRST)
    (folder / "pytest.ini").write_text("[pytest]\n")
    module = MODULES.get(scenario.framework, scenario.framework)
    warm = CONFTEST.format(framework=module, use=WARM[module])
    (folder / "conftest.py").write_text(warm)
    return name


def check(
    nursery: Nursery,
    scenario: Scenario,
    twin: str,
    folder: pathlib.Path,
    options: Sequence[str] = (),
) -> Session:
    """A whole session with the plugin, every test re-run and judged.

    Args:
        nursery: where it is played.
        scenario: of the table.
        twin: `leaky` or `clean`.
        folder: empty.
        options: further ones of pytest's.
    """
    plugin = ("-p", "pytest_veo.plugin", "--veo-leak-check=deep")
    archive = f"--veo-archive={folder / 'archive'}"
    return nursery.play(scenario, twin, folder, (*plugin, archive, *options))


def loop(
    nursery: Nursery, scenario: Scenario, twin: str, folder: pathlib.Path
) -> tuple[Session, list[dict[str, dict[str, int]]]]:
    """The same file without the plugin, its last test in a loop: its figures."""
    path = folder / "figures.jsonl"
    session = nursery.play(
        scenario,
        twin,
        folder,
        ("-p", "tests.simgpu.scenarios.loop"),
        {"VEOSIM_FIGURES": str(path)},
    )
    lines = path.read_text().splitlines() if path.exists() else []
    return session, [json.loads(line) for line in lines]
