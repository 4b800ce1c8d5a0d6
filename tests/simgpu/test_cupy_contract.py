"""CuPy's real pools over the simulated driver: three views that agree.

CuPy rounds to 512 bytes, the driver charges whole granules; what CuPy's pool holds is
what the driver was asked for, and NVML lists what the driver charges.
"""

from __future__ import annotations

import pytest

from tests.simgpu import contract
from tests.simgpu import fixtures
from tests.simgpu.contract import Lives
from tests.simgpu.contract import Moment


pytestmark = pytest.mark.sim

MIB = 1 << 20
CONTEXT = 300 * MIB
GPU = ["GPU-51300000-0000-4000-8000-00000000000" + str(index) for index in range(2)]
LIVES = [
    "ordinary",
    "two_devices",
    "pinned",
    "stream_arenas",
    "held_events",
    "hooks",
    "kernels",
    "managed",
    "stream_ordered",
    "raw_driver",
    "faults",
    "forked",
]
# Bytes asked of the driver by something else than the default pool.
OUTSIDE = {
    ("managed", "allocated"): 6 * MIB,
    ("stream_ordered", "allocated"): 6 * MIB,
    ("raw_driver", "raw allocation"): 5 * MIB,
}


@pytest.fixture(scope="module", params=["cupy", "cupy13"])
def play(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Lives:
    """Every life of CuPy's, lived once in each version."""
    environment = fixtures.environment(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    lives = Lives()
    lives.add(
        *contract.play(
            "cupy_life.py",
            "pools",
            environment,
            fixtures.libraries(environment, "cupy"),
            folder,
        )
    )
    return lives


@pytest.mark.parametrize("life", LIVES)
def test_cupy_driver_and_nvml_agree_at_every_step(play: Lives, life: str) -> None:
    for step, moment in play(life).items():
        for index in range(2):
            books, own = moment.driver[index], moment.framework[index]
            outside = OUTSIDE.get((life, step), 0) if index == 0 else 0
            assert books["requested_bytes"] == own.get("held", 0) + outside, step
            assert moment.nvml[index] == (books["used_bytes"] or None), step


def expected_of_probes(moment: Moment) -> dict[str, int | None]:
    """What our probes must read, from CuPy's and the driver's own words."""
    expected: dict[str, int | None] = {}
    for index, device in enumerate(GPU):
        books, own = moment.driver[index], moment.framework[index]
        is_open = bool(books["used_bytes"])
        expected[f"nvml.process {device}"] = books["used_bytes"] if is_open else None
        if own and not own["held"] and index == 1:
            continue  # CuPy 13: no part of the pool before its first block there
        for counter in ("used", "held"):
            expected[f"cupy.{counter} {device}"] = own.get(counter)
    return expected


@pytest.mark.parametrize("life", LIVES)
def test_our_probes_read_what_cupy_and_the_driver_say(play: Lives, life: str) -> None:
    moments = play(life).values()
    if any(moment.probes is None for moment in moments):
        pytest.skip("pytest_veo.probes.catalogue is not importable in the child")
    found = [
        line
        for moment in moments
        for line in contract.disagreements(moment, expected_of_probes(moment))
    ]
    assert not found, "\n".join(found)


# life, step, device: (used, held) in bytes; CuPy 14 rounds to 512 as 13 does
BYTES = {
    ("ordinary", "first use", 0): (512, 512),
    ("ordinary", "grown", 0): (512 + 63 * MIB, 512 + 63 * MIB),
    ("ordinary", "freed into the pool", 0): (512 + 33 * MIB, 512 + 63 * MIB),
    ("ordinary", "served from the pool", 0): (512 + 63 * MIB, 512 + 63 * MIB),
    ("ordinary", "free blocks given back", 0): (512 + 33 * MIB, 512 + 33 * MIB),
    ("ordinary", "out of memory", 0): (512 + 33 * MIB, 512 + 33 * MIB),
    ("ordinary", "retried after two failures", 0): (
        512 + 83 * MIB,
        512 + 83 * MIB,
    ),
    ("ordinary", "everything given back", 0): (0, 0),
    ("two_devices", "on the first", 0): (4 * MIB, 4 * MIB),
    ("two_devices", "on the second too", 1): (24 * MIB, 24 * MIB),
    ("two_devices", "off the first", 0): (0, 0),
    ("two_devices", "off the first", 1): (24 * MIB, 24 * MIB),
    ("two_devices", "off both", 1): (0, 0),
    ("stream_arenas", "in a stream's arena", 0): (8 * MIB, 8 * MIB),
    ("stream_arenas", "freed in the stream's arena", 0): (0, 8 * MIB),
    ("stream_arenas", "allocated outside", 0): (8 * MIB, 16 * MIB),
    ("stream_arenas", "the stream's arena given back", 0): (8 * MIB, 8 * MIB),
    ("stream_arenas", "everything given back", 0): (0, 0),
    ("kernels", "given back", 0): (0, 0),
}


@pytest.mark.parametrize(
    ("where", "wanted"), BYTES.items(), ids=[f"{a}-{b}-{c}" for a, b, c in BYTES]
)
def test_bytes_are_exact(
    play: Lives, where: tuple[str, str, int], wanted: tuple[int, int]
) -> None:
    life, step, device = where
    own = play(life)[step].framework[device]
    assert (own["used"], own["held"]) == wanted


def test_importing_cupy_makes_no_context(play: Lives) -> None:
    moment = play("ordinary")["imported"]
    assert moment.framework == [{}, {}]
    assert moment.nvml == [None, None]


def test_small_blocks_share_a_granule(play: Lives) -> None:
    moment = play("ordinary")["first use"]
    assert moment.driver[0]["requested_bytes"] == 512
    assert moment.charged() == 2 * MIB


def test_out_of_memory_is_cupys_own_error(play: Lives) -> None:
    failed = play("ordinary")["out of memory"].notes["failed"]
    assert failed.startswith("OutOfMemoryError: Out of memory allocating 8,589,934,592")


def test_two_failed_allocations_are_absorbed(play: Lives) -> None:
    assert play("ordinary")["retried after two failures"].notes["hits"] == 2


def test_pinned_memory_is_held_until_its_pool_is_emptied(play: Lives) -> None:
    seen = [one.driver[0]["pinned_bytes"] for one in play("pinned").values()]
    # the pool rounds to a power of two
    assert seen == [4 * MIB, 4 * MIB, 0]


def test_events_wait_while_they_are_held(play: Lives) -> None:
    notes = play("held_events")["synchronised"].notes
    assert notes == {"waiting": False, "stream_waiting": False, "done": True}


def test_a_hook_sees_requests_and_the_drivers_share_of_them(play: Lives) -> None:
    notes = play("hooks")["two requests"].notes
    assert notes == {"pool": [2 * MIB, 2 * MIB], "driver": [2 * MIB]}


def test_kernels_are_counted_and_their_results_have_shapes(play: Lives) -> None:
    notes = play("kernels")["launched"].notes
    assert notes["launches"] >= 3
    assert notes["shape"] == []


@pytest.mark.parametrize(
    ("life", "used"), [("managed", [6 * MIB, 0]), ("stream_ordered", [6 * MIB, 0, 0])]
)
def test_other_pools_count_their_own(play: Lives, life: str, used: list[int]) -> None:
    assert [one.notes["used"] for one in play(life).values()] == used


def test_the_drivers_own_pool_holds_until_it_is_trimmed(play: Lives) -> None:
    moments = play("stream_ordered")
    assert [one.notes["held"] for one in moments.values()] == [6 * MIB, 6 * MIB, 0]
    assert [one.charged() for one in moments.values()] == [6 * MIB, 6 * MIB, 0]


def test_injected_errors_arrive_as_cupys_own(play: Lives) -> None:
    moments = play("faults")
    assert moments["after three errors"].notes == {
        "cupy:deviceSynchronize": (
            "CUDARuntimeError: cudaErrorIllegalAddress: "
            "an illegal memory access was encountered"
        ),
        "cupy:launchKernel": (
            "CUDARuntimeError: cudaErrorLaunchFailure: unspecified launch failure"
        ),
        "cupy:memGetInfo": "CUDARuntimeError: cudaErrorUnknown: unknown error",
    }
    assert moments["after three errors"].driver == moments["before"].driver


def test_a_fork_cannot_use_the_parents_devices(play: Lives) -> None:
    moment = play("forked")["after the fork"]
    assert moment.notes["said"] == (
        "CUDARuntimeError: cudaErrorInitializationError: initialization error"
    )
    assert moment.framework[0]["used"] == 2 * MIB


# What a pool, a hook or a probe needs must never be a gap; graphs, textures, arrays,
# linking and the like are, and say so.
NEEDED = {"malloc", "free", "hostAlloc", "memGetInfo", "setDevice", "eventQuery"}


def test_what_the_door_does_not_cover_is_listed_with_its_reason(play: Lives) -> None:
    listed = play("gaps")["imported"].notes["gaps"]
    assert ["runtime", "graphLaunch", "not simulated"] in listed
    assert not NEEDED & {function for _, function, _ in listed}
    assert all(reason for _, _, reason in listed)
