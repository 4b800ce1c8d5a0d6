from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_veo.evidence import newborn
from pytest_veo.evidence.newborn import Nursery


KEPT: list[Any] = []


class Parcel:
    def __init__(self) -> None:
        self.items = [object(), [1]]


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    yield
    KEPT.clear()


def born_in(runs: int, step: Any) -> list[object]:
    gc.collect()
    nursery = Nursery()
    nursery.open()
    for _ in range(runs):
        step()
    return nursery.close()


def test_objects_that_stay_are_counted_a_run() -> None:
    found = born_in(4, lambda: KEPT.extend([Parcel(), Parcel()]))
    counts = {born.type_name: born.per_run for born in newborn.census(found, 4)}
    assert counts[f"{__name__}.Parcel"] == 2
    assert counts["list"] == 4


def test_objects_that_go_are_not_counted() -> None:
    found = born_in(4, lambda: [Parcel()])
    assert not any(type(each) is Parcel for each in found)


def test_what_happens_once_in_all_runs_is_not_the_tests() -> None:
    once = iter([True])
    found = born_in(4, lambda: KEPT.extend([Parcel()] if next(once, False) else []))
    names = [born.type_name for born in newborn.census(found, 4)]
    assert f"{__name__}.Parcel" not in names


def test_a_class_of_the_user_represents_its_parts() -> None:
    found = born_in(3, lambda: KEPT.append({"parcel": Parcel()}))
    chosen = newborn.representatives(found, 3)
    assert type(chosen[0]) is Parcel
    assert chosen[0] is KEPT[1]["parcel"]


def test_the_line_is_lifted_again() -> None:
    born_in(1, lambda: None)
    assert gc.get_freeze_count() == 0


def test_a_freeze_of_the_users_stays_and_is_mentioned() -> None:
    gc.freeze()
    nursery = Nursery()
    nursery.open()
    nursery.close()
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
    assert nursery.note.startswith("gc.freeze was in force (")
