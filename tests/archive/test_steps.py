"""Steps are found where they were planted, and nowhere else."""

from __future__ import annotations

import random

import pytest

from pytest_veo.archive.steps import MIN_RUNS
from pytest_veo.archive.steps import NOISY_RUNS
from pytest_veo.archive.steps import find_steps


SHAPES = ("normal", "wild", "two levels", "mostly nothing", "memory", "heavy")


def noise(shape: str, count: int, seed: int) -> list[float]:
    random_ = random.Random(f"{shape}{seed}")
    found, rest = [], 0.0
    for _ in range(count):
        rest = 0.5 * rest + random_.gauss(0, 0.866)
        found.append(
            {
                "normal": random_.gauss(0, 1),
                "wild": random_.gauss(0, 1) + 20 * (random_.random() < 0.03),
                "two levels": random_.gauss(0, 0.4) + 2 * (random_.random() < 0.3),
                "mostly nothing": 3.0 * (random_.random() < 0.1),
                "memory": rest,
                "heavy": random_.gauss(0, 1) / (0.2 + random_.random()),
            }[shape]
        )
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_noise_is_no_step(shape: str) -> None:
    assert [seed for seed in range(12) if find_steps(noise(shape, 300, seed))] == []


@pytest.mark.parametrize("shape", SHAPES)
def test_three_steps_are_found_where_they_are(shape: str) -> None:
    for seed in range(6):
        values = noise(shape, 500, seed)
        for place in (90, 250, 430):
            values[place:] = [value + 12 for value in values[place:]]
        found = find_steps(values)
        assert len(found) == 3, f"seed {seed}"
        for step, place in zip(found, (90, 250, 430), strict=True):
            # A wild run right beside a step may as well be on either side.
            assert step.first <= place <= step.last, f"seed {seed}"
            assert step.place == place or shape in ("wild", "heavy"), f"seed {seed}"
        assert all(step.change == pytest.approx(12, abs=1.5) for step in found)


def test_a_memory_of_the_noise_hides_no_step_that_soon_follows_another() -> None:
    places = (160, 180, 440)
    for seed in range(12):
        values = noise("memory", 500, seed)
        for place in places:
            values[place:] = [value + 6.5 for value in values[place:]]
        found = find_steps(values)
        assert len(found) == 3, f"seed {seed}"
        for step, place in zip(found, places, strict=True):
            assert step.first <= place <= step.last, f"seed {seed}"


@pytest.mark.parametrize("place", [397, 400, 403, 800, 1199])
def test_a_long_series_has_no_seams(place: int) -> None:
    values = noise("normal", 2000, place)
    assert find_steps(values) == ()
    values[place:] = [value + 9 for value in values[place:]]
    assert [step.place for step in find_steps(values)] == [place]


def test_a_slope_is_no_step() -> None:
    for seed in range(6):
        values = [v + run / 60 for run, v in enumerate(noise("normal", 300, seed))]
        assert find_steps(values) == ()


def test_wild_runs_make_no_slope_of_two_steps() -> None:
    for seed in range(10):
        values = noise("normal", 240, seed)
        for place in (40, 60):
            values[place:] = [value + 6 for value in values[place:]]
        for wild in (27, 30, 31, 57, 66):
            values[wild] += 80
        assert [step.place for step in find_steps(values)] == [40, 60], f"seed {seed}"


def test_twenty_runs_of_noise_with_a_memory_are_nearly_always_enough() -> None:
    found = 0
    for seed in range(20):
        values = noise("memory", 300, seed)
        for place in (20, 40):
            values[place:] = [value + 6 for value in values[place:]]
        found += len(find_steps(values)) == 2
    assert found >= 18


def test_a_step_down_is_one_too() -> None:
    (step,) = find_steps([9.0] * 20 + [4.0] * 20)
    assert (step.place, step.change, step.noise) == (20, -5.0, 0.0)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (MIN_RUNS, MIN_RUNS, 1),
        (MIN_RUNS - 1, MIN_RUNS, 0),
        (30, MIN_RUNS - 1, 0),
        (0, 30, 0),
    ],
)
def test_figures_that_never_vary_need_three_runs(
    before: int, after: int, found: int
) -> None:
    assert len(find_steps([1.0] * before + [2.0] * after)) == found


def test_figures_that_vary_need_more_runs() -> None:
    values = noise("normal", 100, 1)
    few = [*values[:-4], *(value + 30 for value in values[-4:])]
    assert find_steps(few) == ()
    many = 2 * NOISY_RUNS
    enough = [*values[:-many], *(value + 30 for value in values[-many:])]
    assert [step.place for step in find_steps(enough)] == [100 - many]


def test_a_step_goes_to_the_start_of_a_commit_where_figures_leave_a_choice() -> None:
    values = noise("normal", 120, 3)
    values[60:] = [value + 2.5 for value in values[60:]]
    edges = [run % 10 == 0 for run in range(120)]
    (step,) = find_steps(values, edges)
    assert step.place == 60
    assert step.first <= 60 <= step.last


def test_more_series_need_stronger_proof() -> None:
    values = noise("normal", 60, 5)
    values[48:] = [value + 4 for value in values[48:]]
    assert len(find_steps(values)) == 1
    assert find_steps(values, series=10_000_000) == ()


def test_a_short_series_says_nothing() -> None:
    assert find_steps([]) == ()
    assert find_steps([1.0]) == ()
