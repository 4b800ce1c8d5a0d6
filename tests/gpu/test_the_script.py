"""`ci/gpu` without a GPU: what it says, how it ends, and what it would run."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests.gpu import cards
from tests.gpu import play
from tests.gpu.cards import ROOT
from tests.simgpu.driver import Sim
from tests.simgpu.layout import View
from tests.simgpu.scenarios.table import FIRST
from tests.simgpu.scenarios.table import SECOND


NO_NODE = f"no GPU here: {cards.NODES[0]} is not there"
without_a_gpu = pytest.mark.skipif(
    any(node.exists() for node in cards.NODES), reason="there is a GPU driver here"
)


def run(
    python: str, require: str = "", *options: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / "ci" / "gpu"), *options],
        env={**os.environ, "PYTHON": python, "VEO_REQUIRE_GPU": require},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def stand_in(
    folder: pathlib.Path, answer: str, status: int, otherwise: str = "echo"
) -> str:
    """An interpreter that answers for the cards; what it is asked else, it echoes."""
    path = folder / "python"
    path.write_text(
        "#!/bin/sh\n"
        f'[ "$2" = tests.gpu.cards ] && {{ echo "{answer}"; exit {status}; }}\n'
        f'{otherwise} "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


@without_a_gpu
def test_without_a_gpu_it_skips_with_its_reason() -> None:
    done = run(sys.executable)
    assert (done.returncode, done.stdout) == (0, f"ci/gpu: skipped: {NO_NODE}\n")


@without_a_gpu
def test_without_a_gpu_it_fails_where_one_is_required() -> None:
    done = run(sys.executable, "torch")
    assert (done.returncode, done.stderr) == (1, f"ci/gpu: {NO_NODE}\n")


def test_a_driver_that_does_not_work_fails(tmp_path: pathlib.Path) -> None:
    done = run(stand_in(tmp_path, "cuInit gives 999", 1))
    assert (done.returncode, done.stderr) == (1, "ci/gpu: cuInit gives 999\n")


def test_with_a_card_it_runs_the_tests_marked_gpu(tmp_path: pathlib.Path) -> None:
    done = run(stand_in(tmp_path, "a card", 0), "", "-k", "torch")
    assert done.returncode == 0
    assert done.stdout == (
        "ci/gpu: a card\n"
        "-m pytest -c tests/gpu/gpu.ini --rootdir=. -m gpu -rs tests/gpu -k torch\n"
    )


@without_a_gpu
def test_what_it_runs_skips_every_scenario_for_one_reason(
    tmp_path: pathlib.Path,
) -> None:
    done = run(stand_in(tmp_path, "a card", 0, f"exec {sys.executable}"), "", "-q")
    plays = 2 * len(play.selection())
    told = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    assert done.returncode == 0, done.stdout
    assert len(told) == 1, done.stdout
    assert told[0].startswith(f"SKIPPED [{plays}]")
    assert told[0].endswith(NO_NODE)


def asked_over(sim: Sim, first: str = "pass") -> subprocess.CompletedProcess[str]:
    code = f"from tests.gpu import cards; {first}; "
    code += "raise SystemExit(cards.main((cards.ROOT,)))"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=sim.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.sim
def test_the_simulated_gpu_is_no_card(sim: Sim) -> None:
    done = asked_over(sim)
    told = "no GPU here: the driver is the simulated one\n"
    assert (done.returncode, done.stdout) == (cards.NONE_HERE, told), done.stderr


@pytest.mark.sim
def test_a_driver_that_shows_no_device_is_no_card(sim: Sim) -> None:
    sim.fail("cuInit", 100)
    done = asked_over(sim)
    assert done.returncode == cards.NONE_HERE, done.stderr
    assert done.stdout.startswith("no GPU here: the CUDA driver shows none")


@pytest.mark.sim
def test_a_driver_that_does_not_start_is_broken(sim: Sim) -> None:
    sim.fail("cuInit", 999)
    done = asked_over(sim)
    told = "the CUDA driver does not start: cuInit gives 999\n"
    assert (done.returncode, done.stdout) == (1, told), done.stderr


@pytest.mark.sim
@pytest.mark.parametrize(
    ("view", "unlisted"),
    [
        (View.VISIBLE, ""),
        (View.NO_BYTES, "NVML hides the bytes of processes"),
        (
            View.FOREIGN_PIDS,
            "NVML does not list this process (a container with its own process ids?)",
        ),
    ],
    ids=lambda value: value.name if isinstance(value, View) else "",
)
def test_cards_are_told_with_what_nvml_says_of_processes(
    sim: Sim, view: View, unlisted: str
) -> None:
    sim.hide_process_memory(view)
    done = asked_over(sim, "cards._SIMULATED = 'taken for real'")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told == {
        "uuids": [FIRST, SECOND],
        "names": ["Simulated GPU"] * 2,
        "unlisted": unlisted,
    }
