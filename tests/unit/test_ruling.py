"""From what re-runs showed to a verdict."""

from __future__ import annotations

from pytest_veo.budget import Allowance
from pytest_veo.budget import LeakBudget
from pytest_veo.budget import Tolerance
from pytest_veo.measure.bounded import Filling
from pytest_veo.measure.confirm import Confirmed
from pytest_veo.measure.meter import Glance
from pytest_veo.measure.meter import Layout
from pytest_veo.measure.ruling import FirstRun
from pytest_veo.measure.ruling import collectable
from pytest_veo.measure.ruling import into_bounded_place
from pytest_veo.measure.ruling import rule
from pytest_veo.memory.leak import Course
from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Rung
from pytest_veo.units import Unit
from pytest_veo.verdict import CLEAN
from pytest_veo.verdict import Outcome


BLOCKS = Counter("host", "python_blocks", Unit.COUNT)
HEAP = Counter("host", "heap", Unit.BYTES)
GPU = Counter("torch", "allocated", Unit.BYTES, device="GPU-0", always=True)
WHOLE = Counter("nvml", "device_used", Unit.BYTES, device="GPU-0", rung=Rung.DEVICE)
LAYOUT = Layout((BLOCKS, HEAP, GPU, WHOLE))
GROWS, FLAT, OPEN = Course.GROWING, Course.FLAT, Course.UNDECIDED


def first_run(*growth: int) -> FirstRun:
    before = (1_000, 1 << 20, 0, 1 << 30)
    after = tuple(b + g for b, g in zip(before, growth, strict=True))
    return FirstRun(Glance(LAYOUT, before), Glance(LAYOUT, after), growth)


def confirmed(
    growth: tuple[int, ...],
    courses: tuple[Course, ...],
    *,
    runs: int = 5,
    stopped: str = "",
) -> Confirmed:
    return Confirmed(
        layout=LAYOUT,
        series=tuple(tuple(g * run for run in range(runs + 1)) for g in growth),
        courses=courses,
        runs=runs,
        spent_ns=1,
        stopped=stopped,
    )


LEAKS = first_run(200, 100_000, 512, 0)
AGAIN = confirmed((0, 100_000, 512, 0), (FLAT, GROWS, GROWS, FLAT))
ONCE = confirmed((0, 0, 0, 0), (FLAT,) * 4)


def test_growth_that_repeats_is_a_leak_with_devices_first() -> None:
    verdict = rule(LEAKS, AGAIN, LeakBudget())
    assert verdict.outcome is Outcome.LEAK
    assert [(f.counter, f.device, f.growth, f.per_run) for f in verdict.findings] == [
        ("torch.allocated", "GPU-0", 512, 512.0),
        ("host.heap", "host", 100_000, 100_000.0),
    ]
    assert verdict.findings[0].deltas == (512,) * 5
    assert verdict.reason == "it grew again in 5 runs with fresh fixtures"


def test_an_allowance_lets_a_leak_pass_with_its_reason() -> None:
    budget = LeakBudget(allowance=Allowance("upstream #12"))
    verdict = rule(LEAKS, AGAIN, budget)
    assert verdict.outcome is Outcome.ALLOWED
    assert verdict.is_leak
    assert not verdict.outcome.fails
    assert verdict.reason == "allowed: upstream #12"


def test_growth_within_tolerance_is_clean() -> None:
    budget = LeakBudget(tolerances=(Tolerance("*", 1 << 20),))
    assert rule(LEAKS, AGAIN, budget).outcome is Outcome.CLEAN


def test_growth_of_other_counters_is_clean() -> None:
    assert rule(LEAKS, AGAIN, LeakBudget(counters=("cupy.*",))).outcome is Outcome.CLEAN


def test_growth_that_came_once_is_retention_if_it_is_large() -> None:
    verdict = rule(LEAKS, ONCE, LeakBudget())
    assert verdict.outcome is Outcome.RETENTION
    assert [f.counter for f in verdict.findings] == ["torch.allocated", "host.heap"]
    assert rule(first_run(200, 1_000, 0, 0), ONCE, LeakBudget()).outcome is (
        Outcome.CLEAN
    )


def test_device_wide_figures_alone_are_never_evidence() -> None:
    first = first_run(0, 0, 0, 1 << 30)
    assert rule(first, ONCE, LeakBudget()).outcome is Outcome.CLEAN


def test_retention_above_its_limit_is_over_budget() -> None:
    budget = LeakBudget(retention_limit_bytes=1024)
    verdict = rule(LEAKS, ONCE, budget)
    assert verdict.outcome is Outcome.OVER_BUDGET
    assert [(f.counter, f.limit) for f in verdict.findings] == [("host.heap", 1024)]
    assert verdict.reason == "it kept more than the retention limit of 1 KiB"


def test_what_was_stopped_before_it_was_decided_is_unconfirmed() -> None:
    shown = confirmed(
        (0, 100_000, 0, 0), (FLAT, OPEN, FLAT, FLAT), runs=1, stopped="it failed"
    )
    verdict = rule(LEAKS, shown, LeakBudget())
    assert verdict.outcome is Outcome.UNCONFIRMED
    assert [f.counter for f in verdict.findings] == ["host.heap"]
    assert verdict.reason == "confirming stopped after 1 run: it failed"


def test_too_few_allowed_runs_are_no_proof_of_retention() -> None:
    shown = confirmed((0, 100_000, 0, 0), (FLAT, OPEN, FLAT, FLAT), runs=2)
    verdict = rule(LEAKS, shown, LeakBudget(reruns=2))
    assert verdict.outcome is Outcome.UNCONFIRMED
    assert verdict.reason == (
        "confirming stopped after 2 runs: more are not allowed (reruns=2)"
    )


def test_a_filling_place_makes_a_leak_retention_within_the_limit() -> None:
    place = Filling("made.cache", "maxsize=100", 10, 100, 1000, 9, is_weighed=True)
    leak = rule(LEAKS, AGAIN, LeakBudget())
    kept = into_bounded_place(leak, place, LeakBudget())
    assert kept.outcome is Outcome.RETENTION
    assert kept.reason == (
        "it fills a bounded place: made.cache (maxsize=100, 10 in use)"
    )
    unsure = into_bounded_place(leak, place._replace(is_weighed=False), LeakBudget())
    assert unsure.reason == (
        "it fills a bounded place: made.cache (maxsize=100, 10 in use, not all of it "
        "weighed)"
    )
    over = into_bounded_place(leak, place, LeakBudget(retention_limit_bytes=80_000))
    assert over.outcome is Outcome.OVER_BUDGET
    assert over.reason == (
        "made.cache (maxsize=100, 10 in use) may still take 87.9 KiB, the retention "
        "limit is 78.1 KiB"
    )


def test_device_memory_that_only_the_collector_freed_is_collectable() -> None:
    verdict = collectable(
        first_run(0, 5_000, 512, 0), first_run(0, 0, 0, 0), LeakBudget()
    )
    assert verdict.outcome is Outcome.COLLECTABLE
    assert [(f.counter, f.growth) for f in verdict.findings] == [
        ("torch.allocated", 512)
    ]


def test_little_host_memory_that_the_collector_freed_is_not_worth_a_word() -> None:
    raw, settled = first_run(300, 5_000, 0, 0), first_run(0, 0, 0, 0)
    assert collectable(raw, settled, LeakBudget()) is CLEAN


def test_small_growth_in_few_allowed_runs_is_nothing_yet() -> None:
    shown = confirmed((5, 700, 0, 0), (OPEN, OPEN, FLAT, FLAT))
    verdict = rule(first_run(77, 2_500, 0, 0), shown, LeakBudget(reruns=5))
    assert verdict.outcome is Outcome.CLEAN
