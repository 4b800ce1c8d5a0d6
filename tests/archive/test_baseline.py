"""What is worse than earlier runs, and what is noise."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_veo.archive.baseline import Difference
from pytest_veo.archive.baseline import Key
from pytest_veo.archive.baseline import Limit
from pytest_veo.archive.baseline import Outcome
from pytest_veo.archive.baseline import Past
from pytest_veo.archive.baseline import allowed
from pytest_veo.archive.baseline import compare
from pytest_veo.archive.baseline import limit_of
from pytest_veo.archive.baseline import moved
from pytest_veo.archive.baseline import parse_limits
from pytest_veo.archive.baseline import pool
from pytest_veo.archive.baseline import quantile_of
from pytest_veo.archive.baseline import robust_spread
from pytest_veo.archive.environment_match import differences
from pytest_veo.errors import BadSetting


KIB, MIB = 1 << 10, 1 << 20
HEAP = Key("test_a.py::test_one", "host.heap", "host")


@pytest.mark.parametrize(
    ("now", "outcome"),
    [
        (8 * MIB, Outcome.SAME),
        (8 * MIB + 800 * KIB, Outcome.SAME),
        (8 * MIB + 820 * KIB, Outcome.WORSE),
        (8 * MIB - 820 * KIB, Outcome.BETTER),
        (7.5 * MIB, Outcome.SAME),
    ],
)
def test_one_run_is_held_to_ten_percent(now: float, outcome: Outcome) -> None:
    past = Past.of([8 * MIB], "bytes")
    assert compare(HEAP, past, now, Limit()).outcome is outcome


def test_what_is_small_is_held_to_64_kib() -> None:
    past = Past.of([1000], "bytes")
    assert allowed(past, Limit()) == 1000 + 64 * KIB


def test_runs_that_scatter_allow_what_they_show() -> None:
    runs = [8 * MIB + step * 200 * KIB for step in range(-5, 6)]
    past = Past.of(runs, "bytes")
    assert allowed(past, Limit()) == 8 * MIB + (6 + 30 / 11) * past.spread
    assert compare(HEAP, past, 9.5 * MIB, Limit()).outcome is Outcome.SAME
    assert compare(HEAP, past, 30 * MIB, Limit()).outcome is Outcome.WORSE
    quiet = Past.of([8 * MIB] * 11, "bytes")
    assert compare(HEAP, quiet, 9.5 * MIB, Limit()).outcome is Outcome.WORSE


def test_one_wild_run_does_not_widen_the_spread() -> None:
    calm = [1000 + step for step in range(20)]
    assert robust_spread([*calm, 10**9]) == pytest.approx(robust_spread(calm), rel=0.3)


def test_a_figure_of_two_values_has_a_spread() -> None:
    assert robust_spread([0.0] * 14 + [4096.0] * 6) > 0


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("", ()),
        ("10%", (Limit("*", percent=10.0),)),
        ("5%+64 KiB", (Limit("*", percent=5.0, amount=64 * KIB),)),
        (
            "1 MiB,torch.*=p95",
            (Limit("torch.*", quantile=0.95), Limit("*", amount=MIB)),
        ),
    ],
    ids=["none", "percent", "both", "by counter, all last"],
)
def test_limits_are_read(text: str, limits: tuple[Limit, ...]) -> None:
    assert parse_limits(text, "--veo-baseline-limit") == limits


@pytest.mark.parametrize(
    "amount", ["ten", "-5%", "inf%", "p101", "p", "64 KB", "nan%", ""]
)
def test_a_limit_without_meaning_is_refused(amount: str) -> None:
    with pytest.raises(BadSetting) as caught:
        parse_limits(f"host.heap={amount}", "--veo-baseline-limit")
    assert str(caught.value) == (
        f"--veo-baseline-limit: {amount!r} is no limit, write a percentage ('10%'), "
        "a size ('64 KiB'), a quantile of the earlier runs ('p95'), or some of them "
        "with '+' between"
    )


def test_a_limit_of_no_counter_is_refused() -> None:
    with pytest.raises(BadSetting, match="'heap' is no counter"):
        parse_limits("heap=10%", "--veo-baseline-limit")


def test_the_first_limit_that_fits_holds() -> None:
    limits = parse_limits("host.heap=1 MiB,host.*=2 MiB", "x")
    assert limit_of(HEAP, limits).amount == MIB
    per_run = HEAP._replace(counter="host.mapped a run")
    assert limit_of(per_run, limits).amount == 2 * MIB


@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=40), st.floats(0, 1))
def test_a_quantile_lies_between_the_least_and_the_most(
    values: list[float], share: float
) -> None:
    found = quantile_of(values, share)
    assert min(values) <= found <= max(values)
    assert quantile_of(values, 0.5) == pytest.approx(statistics.median(values))


def test_what_other_tests_no_longer_keep_may_have_moved() -> None:
    lost = Key("test_a.py::test_gone", "host.heap", "host")
    fell = Difference(
        HEAP, Past.of([5 * MIB], "bytes"), 1 * MIB, 5.5 * MIB, Outcome.BETTER
    )
    found = moved([fell], {lost: Past.of([2 * MIB], "bytes")}, ())
    assert found == {("host.heap", "host"): 6 * MIB}
    small = {lost: Past.of([1 * KIB], "bytes")}
    assert moved([], small, ()) == {}


def test_the_heap_and_what_is_mapped_are_one_pool() -> None:
    fell = Difference(HEAP, Past.of([MIB], "bytes"), 0, 1.1 * MIB, Outcome.BETTER)
    mapped = HEAP._replace(counter="host.mapped")
    assert moved([fell], {}, ())[pool(mapped)] == MIB


def false_alarms(shape: str, tests: int) -> int:
    """How many of so many unchanged tests are called worse, by 20 earlier runs."""
    random_ = random.Random(shape)

    def draw() -> float:
        if shape == "normal":
            return 8 * MIB * (1 + random_.gauss(0, 0.05))
        if shape == "two levels":
            return 8 * MIB * (1.5 if random_.random() < 0.3 else 1)
        return MIB * 200 * random_.expovariate(1.0)

    count = 0
    for _ in range(tests):
        past = Past.of([draw() for _ in range(20)], "bytes")
        count += compare(HEAP, past, draw(), Limit()).outcome is Outcome.WORSE
    return count


@pytest.mark.parametrize(
    ("shape", "most"), [("normal", 0), ("two levels", 3), ("exponential", 15)]
)
def test_false_alarms_are_rare_whatever_the_noise(shape: str, most: int) -> None:
    assert false_alarms(shape, 2000) <= most


@pytest.mark.parametrize(
    ("then", "now", "told"),
    [
        ({"gpu": "H200"}, {"gpu": "H200"}, ()),
        ({"gpu": "H200"}, {"gpu": "A10"}, ("gpu H200, now A10",)),
        ({"driver": "550.1"}, {}, ("driver 550.1, now none",)),
        ({"python": "3.12.1"}, {"python": "3.12.7"}, ()),
        ({"python": "3.12.1"}, {"python": "3.13.0"}, ("python 3.12, now 3.13",)),
        (
            {},
            {"env.PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
            ("PYTORCH_CUDA_ALLOC_CONF not set, now 'backend:cudaMallocAsync'",),
        ),
        ({}, {"env.CUDA_VISIBLE_DEVICES": "1"}, ()),
        ({"module.torch": "2.13"}, {"module.torch": "2.14"}, ()),
    ],
)
def test_what_decides_about_sizes_must_agree(
    then: dict[str, str], now: dict[str, str], told: tuple[str, ...]
) -> None:
    assert differences(then.items(), now.items()) == told
