"""PyTorch's real allocators over the simulated driver: three views that agree.

Whatever happens, what torch has reserved is what the driver's books have beyond the
context, and NVML lists that process with exactly these bytes.
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
# The allocator's segments: 2 MiB for small blocks, 20 MiB up to 10 MiB, else rounded.
SMALL, LARGE = 2 * MIB, 20 * MIB
GPU = ["GPU-51300000-0000-4000-8000-00000000000" + str(index) for index in range(2)]

LIVES = [
    "ordinary",
    "two_devices",
    "pinned",
    "held_stream",
    "synchronised_stream",
    "private_pool",
    "memory_pool",
    "training",
    "raw_driver",
    "faults",
    "forked",
    "stream_ordered",
    "expandable",
]


SETTINGS = {
    "native": {},
    "stream_ordered": {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"},
    "expandable": {"PYTORCH_ALLOC_CONF": "expandable_segments:True"},
}


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Lives:
    """Every life of torch's, lived once."""
    environment = fixtures.environment("torch")
    libraries = fixtures.libraries(environment, "torch")
    folder = tmp_path_factory.mktemp("torch")
    lives = Lives()
    for group, settings in SETTINGS.items():
        lives.add(
            *contract.play(
                "torch_life.py", group, environment, libraries, folder, settings
            )
        )
    return lives


def outside_torch(life: str, step: str, device: int) -> int:
    """Device bytes that torch does not know of."""
    where = (life, step, device)
    return 6 * MIB if where == ("raw_driver", "raw allocation", 0) else 0


@pytest.mark.parametrize("life", LIVES)
def test_torch_driver_and_nvml_agree_at_every_step(play: Lives, life: str) -> None:
    for step, moment in play(life).items():
        for index in range(2):
            reserved = moment.framework[index].get("reserved", 0)
            charged = moment.charged(index)
            assert charged == reserved + outside_torch(life, step, index), step
            books = moment.driver[index]
            assert moment.nvml[index] == (books["used_bytes"] or None), step
            if moment.framework[index] and life != "stream_ordered":
                assert moment.framework[index]["pinned_held"] == sum(
                    one["pinned_bytes"] for one in moment.driver
                )


def expected_of_probes(moment: Moment, life: str) -> dict[str, int | None]:
    """What our probes must read, from the framework's and the driver's own words."""
    expected: dict[str, int | None] = {}
    for index, device in enumerate(GPU):
        books, own = moment.driver[index], moment.framework[index]
        is_open = bool(books["used_bytes"])
        expected[f"nvml.process {device}"] = books["used_bytes"] if is_open else None
        if life == "stream_ordered":
            continue  # counters of that backend: its own test below
        for counter in ("allocated", "allocations", "active", "reserved"):
            value = own.get(counter) if is_open else None
            expected[f"torch.{counter} {device}"] = value
    if moment.framework[0] and life != "stream_ordered":
        expected["torch.pinned"] = moment.framework[0]["pinned"]
    return expected


@pytest.mark.parametrize("life", LIVES)
def test_our_probes_read_what_torch_and_the_driver_say(play: Lives, life: str) -> None:
    moments = play(life).values()
    if any(moment.probes is None for moment in moments):
        pytest.skip("pytest_veo.probes.catalogue is not importable in the child")
    found = [
        line
        for moment in moments
        for line in contract.disagreements(moment, expected_of_probes(moment, life))
    ]
    assert not found, "\n".join(found)


# life, step, device: (allocated, reserved) in bytes, by torch's own rules of rounding
BYTES = {
    ("ordinary", "first use", 0): (512, SMALL),
    ("ordinary", "grown", 0): (512 + 63 * MIB, SMALL + LARGE + 60 * MIB),
    ("ordinary", "freed into the cache", 0): (
        512 + 33 * MIB,
        SMALL + LARGE + 60 * MIB,
    ),
    ("ordinary", "served from the cache", 0): (
        512 + 63 * MIB,
        SMALL + LARGE + 60 * MIB,
    ),
    ("ordinary", "cache emptied", 0): (512 + 33 * MIB, SMALL + LARGE + 30 * MIB),
    ("ordinary", "out of memory", 0): (512 + 33 * MIB, SMALL + LARGE + 30 * MIB),
    ("ordinary", "retried after one failure", 0): (
        512 + 83 * MIB,
        SMALL + LARGE + 80 * MIB,
    ),
    ("ordinary", "everything given back", 0): (0, 0),
    ("two_devices", "on the first", 0): (4 * MIB, LARGE),
    ("two_devices", "on the second too", 0): (4 * MIB, LARGE),
    ("two_devices", "on the second too", 1): (24 * MIB, 24 * MIB),
    ("two_devices", "off the first", 0): (0, 0),
    ("two_devices", "off the first", 1): (24 * MIB, 24 * MIB),
    ("two_devices", "off both", 1): (0, 0),
    ("held_stream", "in use by two streams", 0): (8 * MIB, LARGE),
    ("held_stream", "freed while the other works", 0): (0, LARGE),
    ("private_pool", "before", 0): (0, SMALL),
    ("raw_driver", "raw allocation", 0): (0, SMALL),
    ("expandable", "allocated", 0): (30 * MIB, 40 * MIB),
    ("expandable", "given back", 0): (0, 0),
}


@pytest.mark.parametrize(
    ("where", "wanted"), BYTES.items(), ids=[f"{a}-{b}-{c}" for a, b, c in BYTES]
)
def test_bytes_are_exact(
    play: Lives, where: tuple[str, str, int], wanted: tuple[int, int]
) -> None:
    life, step, device = where
    own = play(life)[step].framework[device]
    assert (own["allocated"], own["reserved"]) == wanted


def test_before_it_is_initialised_torch_has_nothing_on_the_books(play: Lives) -> None:
    moment = play("ordinary")["imported"]
    assert moment.framework == [{}, {}]
    assert moment.nvml == [None, None]


def test_a_context_on_one_device_only(play: Lives) -> None:
    moment = play("two_devices")["on the first"]
    assert moment.driver[0]["context_bytes"] == CONTEXT
    assert moment.driver[1]["used_bytes"] == 0


def test_out_of_memory_is_torchs_own_error(play: Lives) -> None:
    moment = play("ordinary")["out of memory"]
    assert moment.notes["failed"].startswith(
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB."
    )
    assert moment.framework[0]["ooms"] == 1


def test_one_failed_allocation_is_retried(play: Lives) -> None:
    before = play("ordinary")["out of memory"].framework[0]
    after = play("ordinary")["retried after one failure"]
    assert after.notes["hits"] == 1
    assert after.framework[0]["retries"] == before["retries"] + 1
    assert after.framework[0]["ooms"] == before["ooms"]


def test_pinned_memory_is_held_until_the_host_cache_is_emptied(play: Lives) -> None:
    moments = play("pinned")
    seen = [
        (one.framework[0]["pinned"], one.driver[0]["pinned_bytes"])
        for one in moments.values()
    ]
    assert moments["pinned"].notes["is_pinned"] is True
    assert seen == [(4 * MIB, 4 * MIB), (0, 4 * MIB), (0, 0)]


@pytest.mark.parametrize(
    ("life", "end"),
    [("held_stream", "the other is done"), ("synchronised_stream", "synchronised")],
)
def test_a_block_in_use_by_another_stream_stays_active(
    play: Lives, life: str, end: str
) -> None:
    held = play(life)["freed while the other works"].framework[0]
    assert (held["allocated"], held["active"]) == (0, 8 * MIB)
    done = play(life)[end].framework[0]
    assert done["active"] == done["allocated"] == 0


def test_a_graphs_pool_stays_reserved_as_long_as_the_graph(play: Lives) -> None:
    moments = play("private_pool")
    before = moments["before"].framework[0]["reserved"]
    kept = moments["tensor gone, graph kept"].framework[0]
    gone = moments["graph gone"].framework[0]
    assert kept["allocated"] == 0
    assert kept["reserved"] == LARGE
    assert gone["reserved"] == 0 < before


def test_a_pool_of_the_users_own_is_given_back_with_it(play: Lives) -> None:
    moments = play("memory_pool")
    assert moments["freed in the pool"].framework[0]["reserved"] == LARGE
    assert moments["pool gone"].framework[0]["reserved"] == 0


def test_a_training_loop_grows_in_its_first_turn_only(play: Lives) -> None:
    moments = play("training")
    allocated = [one.framework[0]["allocated"] for one in moments.values()]
    assert allocated[0] < allocated[1]
    assert allocated[1] == allocated[2] == allocated[3]


def test_raw_allocations_show_in_the_driver_alone(play: Lives) -> None:
    moments = play("raw_driver")
    before, during = moments["before"], moments["raw allocation"]
    after = moments["raw allocation freed"]
    assert during.framework == before.framework == after.framework
    # 5 MiB asked for: the driver charges whole granules of 2 MiB
    assert during.charged() - before.charged() == 6 * MIB
    assert after.driver == before.driver


def test_injected_errors_arrive_as_torchs_own(play: Lives) -> None:
    moments = play("faults")
    notes = moments["after three errors"].notes
    assert notes["cudaDeviceSynchronize"].startswith(
        "AcceleratorError: CUDA error: an illegal memory access was encountered"
    )
    assert notes["cudaLaunchKernel"].startswith(
        "AcceleratorError: CUDA error: unspecified launch failure"
    )
    assert notes["cudaMemGetInfo"].startswith(
        "AcceleratorError: CUDA error: unknown error"
    )
    assert moments["after three errors"].driver == moments["before"].driver


def test_a_fork_cannot_use_the_parents_devices(play: Lives) -> None:
    moment = play("forked")["after the fork"]
    assert "Cannot re-initialize CUDA in forked subprocess" in moment.notes["said"]
    assert moment.framework[0]["allocated"] == 2 * MIB


def test_the_drivers_own_pool_gives_back_at_synchronisation(play: Lives) -> None:
    moments = play("stream_ordered")
    allocated = [one.framework[0]["allocated"] for one in moments.values()]
    charged = [one.charged() for one in moments.values()]
    assert allocated == [6 * MIB, 0, 0]
    assert charged[0] == charged[1] == 6 * MIB
    assert charged[2] == 0
