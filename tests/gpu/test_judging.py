from __future__ import annotations

from typing import Any

import pytest

from pytest_veo.memory.snapshot import HOST
from tests.gpu import judging
from tests.gpu import play


CARDS = ("GPU-a", "GPU-b")
MIB = 1 << 20
SCENARIOS = {str(one): one for one in play.selection()}


def record(outcome: str, *findings: dict[str, Any]) -> dict[str, Any]:
    return {"verdict": {"outcome": outcome, "findings": findings}}


def found(
    counter: str, device: str = "GPU-a", per_run: int = MIB, growth: int = MIB
) -> dict[str, Any]:
    return {
        "counter": counter,
        "device": device,
        "per_run": per_run,
        "before": 5,
        "after": 5 + growth,
    }


AS_THE_TABLE_SAYS = {
    "allocator": ("torch-global_list", 1, record("leak", found("torch.allocated"))),
    "host": ("torch-pinned", 1, record("leak", found("torch.pinned", HOST))),
    "second": (
        "cupy-second_device",
        1,
        record("leak", found("cupy.used", "GPU-b")),
    ),
    "driver, whatever it charges": (
        "torch-raw_driver",
        1,
        record("leak", found("nvml.process", per_run=6 * MIB)),
    ),
    "collectable": (
        "torch-reference_cycle",
        0,
        record("collectable", found("torch.allocated", per_run=0)),
    ),
}
NOT_AS_IT_SAYS = {
    "missed": (
        "torch-global_list",
        0,
        record("clean"),
        "the verdict is 'clean', not 'leak'",
    ),
    "other bytes": (
        "torch-global_list",
        1,
        record("leak", found("torch.allocated", per_run=512)),
        "torch.allocated grew by 512 a run, not by 1048576",
    ),
    "other counter": (
        "torch-global_list",
        1,
        record("leak", found("nvml.process")),
        "torch.allocated on GPU-a is not named, but [('nvml.process', 'GPU-a')]",
    ),
    "other device": (
        "cupy-second_device",
        1,
        record("leak", found("cupy.used")),
        "cupy.used on GPU-b is not named, but [('cupy.used', 'GPU-a')]",
    ),
    "driver stands still": (
        "torch-raw_driver",
        1,
        record("leak", found("nvml.process", per_run=0)),
        "nvml.process did not grow: 0",
    ),
    "collectable of other size": (
        "torch-reference_cycle",
        0,
        record("collectable", found("torch.allocated", growth=7)),
        "torch.allocated grew by 7 a run, not by 1048576",
    ),
    "named, and passed": (
        "torch-global_list",
        0,
        record("leak", found("torch.allocated")),
        "pytest ended with status 0, not 1",
    ),
}


@pytest.mark.parametrize(
    ("name", "status", "said"), AS_THE_TABLE_SAYS.values(), ids=AS_THE_TABLE_SAYS
)
def test_a_leak_named_as_the_table_has_it_is_no_complaint(
    name: str, status: int, said: dict[str, Any]
) -> None:
    assert not judging.complaint(SCENARIOS[name], "leaky", CARDS, status, [said])


@pytest.mark.parametrize(
    ("name", "status", "said", "complaint"),
    NOT_AS_IT_SAYS.values(),
    ids=NOT_AS_IT_SAYS,
)
def test_a_leak_named_otherwise_is_complained_of(
    name: str, status: int, said: dict[str, Any], complaint: str
) -> None:
    told = judging.complaint(SCENARIOS[name], "leaky", CARDS, status, [said])
    assert told == complaint


@pytest.mark.parametrize(
    ("name", "said", "complaint"),
    [
        ("torch-global_list", record("clean"), ""),
        ("torch-global_list", record("retention", found("nvml.process")), ""),
        (
            "torch-global_list",
            record("retention", found("nvml.process"), found("torch.allocated")),
            "the clean twin is called 'retention': ['nvml.process', 'torch.allocated']",
        ),
        ("torch-pool_growth", record("retention", found("torch.reserved")), ""),
        (
            "torch-global_list",
            record("leak", found("nvml.process")),
            "the clean twin is called 'leak': ['nvml.process']",
        ),
    ],
    ids=["clean", "kernel loaded", "more than that", "warm-up", "cried wolf"],
)
def test_a_clean_twin_may_load_kernels_and_no_more(
    name: str, said: dict[str, Any], complaint: str
) -> None:
    assert judging.complaint(SCENARIOS[name], "clean", CARDS, 0, [said]) == complaint


def test_a_session_that_archived_nothing_is_complained_of() -> None:
    told = judging.complaint(SCENARIOS["torch-global_list"], "clean", CARDS, 4, [])
    assert told == "the session archived no test"


def test_a_test_that_fails_by_itself_fails_in_both_twins() -> None:
    scenario = SCENARIOS["torch-after_a_failure"]
    records = [record("failed"), record("clean")]
    assert not judging.complaint(scenario, "clean", CARDS, 1, records)
    told = judging.complaint(scenario, "clean", CARDS, 0, records)
    assert told == "pytest ended with status 0, not 1"
