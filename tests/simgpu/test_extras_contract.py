"""Numba, JAX, ONNX Runtime and RMM over the simulated driver: what agrees with what.

Run by `ci/test-extras`. Each of them books in its own way, so each has its own rule
of agreement; NVML lists what the driver charges, always.
"""

from __future__ import annotations

import pytest

from tests.simgpu import contract
from tests.simgpu import fixtures
from tests.simgpu.contract import Lives
from tests.simgpu.contract import Moment


pytestmark = pytest.mark.sim

MIB = 1 << 20
GPU = ["GPU-51300000-0000-4000-8000-00000000000" + str(index) for index in range(2)]
LIVES = [
    ("numba", "ordinary"),
    ("numba", "many_frees"),
    ("numba", "pinned"),
    ("jax", "ordinary"),
    ("onnxruntime", "ordinary"),
    ("onnxruntime", "values"),
    ("onnxruntime", "limited"),
    ("rmm", "ordinary"),
]
FRAMEWORKS = ("numba", "jax", "onnxruntime", "rmm")
BOTH = ("glanced", "read")
WAYS = {"onnxruntime": ("read",)}
"""Counting objects is too slow for a glance."""


class Plays:
    """The lives of each framework, lived when first asked for."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._lives: dict[str, Lives] = {}

    def __call__(self, framework: str, life: str = "ordinary") -> dict[str, Moment]:
        """The moments of a life."""
        if framework not in self._lives:
            environment = fixtures.environment("extras")
            written = contract.play(
                f"{framework}_life.py",
                "main",
                environment,
                fixtures.libraries(environment, framework),
                self._folders.mktemp(framework),
            )
            self._lives[framework] = Lives()
            self._lives[framework].add(*written)
        return self._lives[framework](life)


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Plays:
    return Plays(tmp_path_factory)


@pytest.mark.parametrize(("framework", "life"), LIVES)
def test_nvml_lists_what_the_driver_charges(
    play: Plays, framework: str, life: str
) -> None:
    for step, moment in play(framework, life).items():
        for index in range(2):
            used = moment.driver[index]["used_bytes"]
            assert moment.nvml[index] == (used or None), step


def expected_of_probes(framework: str, moment: Moment) -> dict[str, int | None]:
    """What our probes must read, from the framework's and the driver's own words."""
    expected: dict[str, int | None] = {}
    for index, device in enumerate(GPU):
        used, own = moment.driver[index]["used_bytes"], moment.framework[index]
        expected[f"nvml.process {device}"] = used or None
        if framework == "numba" and own:
            expected[f"numba.allocations {device}"] = own["allocations"]
        if framework == "jax" and own:
            expected[f"jax.allocated {device}"] = own["allocated"]
        if framework == "rmm" and own and used:
            expected[f"rmm.allocated {device}"] = own["allocated"]
            expected[f"rmm.allocations {device}"] = own["allocations"]
        if framework == "onnxruntime" and own:
            expected["onnxruntime.sessions"] = own["sessions"]
            expected["onnxruntime.values"] = own["values"]
    return expected


@pytest.mark.parametrize(("framework", "life"), LIVES)
def test_our_probes_read_what_the_others_say(
    play: Plays, framework: str, life: str
) -> None:
    moments = play(framework, life).values()
    if any(moment.probes is None for moment in moments):
        pytest.skip("pytest_veo.probes.catalogue is not importable in the child")
    found = [
        line
        for moment in moments
        for line in contract.disagreements(
            moment, expected_of_probes(framework, moment), WAYS.get(framework, BOTH)
        )
    ]
    assert not found, "\n".join(found)


# ---- Numba ----


def test_numbas_allocations_and_waiting_frees_are_the_drivers_bytes(
    play: Plays,
) -> None:
    seen = [
        (
            one.framework[0]["allocated"],
            one.framework[0]["waiting"],
            one.driver[0]["requested_bytes"],
        )
        for step, one in play("numba").items()
        if step != "imported"
    ]
    assert seen == [
        (0, 0, 0),
        (34 * MIB, 0, 34 * MIB),
        (4 * MIB, 1, 34 * MIB),
        (4 * MIB, 1, 34 * MIB),  # the context's queue is another one
        (4 * MIB, 0, 4 * MIB),
        (4 * MIB, 0, 4 * MIB),
        (6 * MIB, 0, 6 * MIB),
        (0, 0, 0),
    ]


def test_numbas_out_of_memory_is_its_own_error(play: Plays) -> None:
    failed = play("numba")["out of memory"].notes["failed"]
    assert "CUDA_ERROR_OUT_OF_MEMORY" in failed
    assert play("numba")["retried after one failure"].notes["hits"] == 1


def test_numbas_queue_empties_itself_when_it_is_long(play: Plays) -> None:
    charged = play("numba", "many_frees")["twelve arrays"].notes["charged_mib"]
    assert charged == [2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 0, 2]


def test_numbas_pinned_memory_is_given_back(play: Plays) -> None:
    seen = [one.driver[0]["pinned_bytes"] for one in play("numba", "pinned").values()]
    assert seen == [3 * MIB, 0]


# ---- JAX ----


def test_jax_takes_its_share_of_the_device_at_once_and_keeps_it(play: Plays) -> None:
    moments = play("jax")
    charged = [one.charged() for step, one in moments.items() if step != "backend"]
    share = 6 << 30  # three quarters of 8 GiB
    assert moments["imported"].nvml == [None, None]
    assert charged[0] == 0
    assert charged[1:] == [share] * 5


def test_jaxs_own_count_is_that_of_its_arrays(play: Plays) -> None:
    arrays = [
        (one.framework[0]["allocated"], one.framework[0]["array_bytes"])
        for step, one in play("jax").items()
        if step != "imported"
    ]
    assert arrays == [
        (0, 0),
        (MIB, MIB),
        (31 * MIB, 31 * MIB),
        (MIB, MIB),
        (MIB, MIB),
        (0, 0),
    ]
    second = play("jax")["on the second device"].framework[1]
    assert (second["allocated"], second["arrays"]) == (4 * MIB, 1)


# ---- ONNX Runtime ----


def test_an_arena_grows_once_shrinks_on_request_and_goes_with_its_session(
    play: Plays,
) -> None:
    moments = play("onnxruntime")
    charged = {step: one.charged() for step, one in moments.items()}
    assert charged["imported"] == 0
    assert charged["small run"] < charged["large run"] == charged["large run again"]
    assert charged["arena shrunk"] < charged["large run"]
    assert charged["session gone"] <= charged["session"]
    assert moments["session gone"].framework[0]["sessions"] == 0


def test_a_value_of_the_users_own_is_on_the_device(play: Plays) -> None:
    moments = play("onnxruntime", "values")
    assert moments["value"].notes["place"] == "cuda"
    assert moments["value"].driver[0]["requested_bytes"] >= 4 * MIB
    assert moments["value gone"].framework[0]["values"] == 0


def test_a_sessions_limit_is_its_own_error(play: Plays) -> None:
    failed = play("onnxruntime", "limited")["over the limit"].notes["failed"]
    assert "is smaller than requested bytes of 16777216" in failed


# ---- RMM ----


def test_rmms_count_is_what_the_driver_was_asked_for(play: Plays) -> None:
    seen = [
        (
            one.framework[0]["allocated"],
            one.framework[0]["allocations"],
            one.driver[0]["requested_bytes"],
        )
        for one in play("rmm").values()
    ]
    assert seen == [
        (0, 0, 0),
        (4 * MIB, 1, 4 * MIB),
        (34 * MIB, 2, 34 * MIB),
        (0, 0, 0),
    ]
