"""What marker arguments mean, and which are refused, without a session."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING
from typing import Any
from typing import cast

import pytest

from pytest_veo.budget import Allowance
from pytest_veo.budget import LeakBudget
from pytest_veo.budget import Level
from pytest_veo.budget import MemoryBudget
from pytest_veo.budget import Tolerance
from pytest_veo.errors import BadSetting
from pytest_veo.settings import leak_budget
from pytest_veo.settings import memory_budgets


if TYPE_CHECKING:
    from collections.abc import Iterator


TODAY = datetime.date(2026, 11, 30)


class MarkedItem:
    """A test with these markers, the closest first."""

    nodeid = "test_it.py::test_marked"

    def __init__(self, *markers: pytest.MarkDecorator) -> None:
        self._markers = markers

    def iter_markers(self, name: str) -> Iterator[pytest.Mark]:
        return (marker.mark for marker in self._markers if marker.name == name)


def item(*markers: pytest.MarkDecorator) -> pytest.Item:
    return cast("pytest.Item", MarkedItem(*markers))


def leak(*args: Any, **kwargs: Any) -> pytest.MarkDecorator:
    # A lone callable argument would be decorated; none is given here.
    return pytest.mark.veo_leak.with_args(*args, **kwargs)


def memory(*args: Any, **kwargs: Any) -> pytest.MarkDecorator:
    return pytest.mark.veo_memory.with_args(*args, **kwargs)


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        (
            leak("4 KiB"),
            ": takes keyword arguments only (tolerance, counters, reruns, level, "
            "allow, reason, until), got '4 KiB'",
        ),
        (
            leak(tolerence="4 KiB"),
            ": unknown argument 'tolerence', allowed are tolerance, counters, "
            "reruns, level, allow, reason, until (did you mean 'tolerance'?)",
        ),
        (
            leak(level="deap"),
            "(level): 'deap' is none of off, fast, deep (did you mean 'deep'?)",
        ),
        (leak(reruns=-2), "(reruns): '-2' is no number of runs, write 0 or more"),
        (leak(reruns=None), "(reruns): 'None' is no number of runs, write 0 or more"),
        (
            leak(tolerance="4 MB"),
            "(tolerance): '4 MB': write MiB (binary), e.g. '4 MiB'",
        ),
        (
            leak(counters="heap"),
            "(counters): 'heap' names no counters, write e.g. "
            "['torch.allocated', 'host.*']",
        ),
        (
            leak(counters=[1]),
            "(counters): [1] names no counters, write e.g. "
            "['torch.allocated', 'host.*']",
        ),
        (leak(allow=True), "(allow): an allowance needs a reason='...'"),
        (leak(allow=True, reason="  "), "(allow): an allowance needs a reason='...'"),
        (
            leak(reason="known"),
            "(reason): belongs to an allowance, add allow=True",
        ),
        (
            leak(until="2027-01-31", level="deep"),
            "(until): belongs to an allowance, add allow=True",
        ),
        (leak(allow="yes", reason="x"), "(allow): 'yes' is neither True nor False"),
        (
            leak(allow=True, reason="known", until="soon"),
            "(until): 'soon' is no date, write e.g. '2027-01-31'",
        ),
        (
            leak(allow=True, reason="known", until="2020-01-31"),
            "(until): the allowance ended on 2020-01-31, fix the leak or renew it",
        ),
    ],
)
def test_a_veo_leak_marker_that_means_nothing_names_the_test(
    marker: pytest.MarkDecorator, message: str
) -> None:
    whole = f"test_it.py::test_marked: veo_leak{message}"
    with pytest.raises(BadSetting, match=f"^{re.escape(whole)}$"):
        leak_budget(item(marker), LeakBudget(), TODAY)


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        (memory(), ": needs peak= or growth="),
        (
            memory(peek="4 MiB"),
            ": unknown argument 'peek', allowed are peak, growth, on "
            "(did you mean 'peak'?)",
        ),
        (memory(peak="4 MB"), "(peak): '4 MB': write MiB (binary), e.g. '4 MiB'"),
        (memory(growth="little"), "(growth): 'little': write a size such as '64 KiB'"),
        (
            memory(peak="4 MiB", on="rss"),
            "(on): 'rss' is no counter, write e.g. 'torch.allocated'",
        ),
    ],
)
def test_a_veo_memory_marker_that_means_nothing_names_the_test(
    marker: pytest.MarkDecorator, message: str
) -> None:
    whole = f"test_it.py::test_marked: veo_memory{message}"
    with pytest.raises(BadSetting, match=f"^{re.escape(whole)}$"):
        memory_budgets(item(marker))


@pytest.mark.parametrize(
    ("marker", "changes"),
    [
        (leak(), {}),
        (leak(level="deep"), {"level": Level.DEEP}),
        (leak(level="off"), {"level": Level.OFF}),
        (leak(reruns=0), {"reruns": 0}),
        (leak(reruns=7), {"reruns": 7}),
        (leak(tolerance=64), {"tolerances": (Tolerance("*", 64),)}),
        (
            leak(tolerance="host.heap=4 KiB, torch.*=0 B"),
            {"tolerances": (Tolerance("host.heap", 4096), Tolerance("torch.*", 0))},
        ),
        (leak(counters="host.*"), {"counters": ("host.*",)}),
        (
            leak(counters=["torch.allocated", "host.*"]),
            {"counters": ("torch.allocated", "host.*")},
        ),
        (
            leak(allow=True, reason="upstream #12"),
            {"allowance": Allowance("upstream #12")},
        ),
        (
            leak(allow=True, reason="upstream #12", until="2026-11-30"),
            {"allowance": Allowance("upstream #12", TODAY)},
        ),
        (
            leak(allow=True, reason="upstream #12", until=TODAY),
            {"allowance": Allowance("upstream #12", TODAY)},
        ),
        (leak(allow=False, reason="no more"), {"allowance": None}),
    ],
    ids=repr,
)
def test_a_veo_leak_marker_changes_what_it_names_and_no_more(
    marker: pytest.MarkDecorator, changes: dict[str, Any]
) -> None:
    base = LeakBudget()
    assert leak_budget(item(marker), base, TODAY) == base._replace(**changes)


def test_the_closest_marker_holds_and_all_are_applied() -> None:
    near, far = leak(level="off", tolerance="1 KiB"), leak(level="deep", reruns=3)
    budget = leak_budget(item(near, far), LeakBudget(), TODAY)
    assert budget.level is Level.OFF
    assert budget.reruns == 3
    assert budget.tolerated("host.heap") == 1024


def test_a_close_marker_without_allowance_takes_back_a_far_one() -> None:
    far = leak(allow=True, reason="the whole module leaks")
    assert leak_budget(item(leak(allow=False), far), LeakBudget(), TODAY) == (
        LeakBudget()
    )


def test_the_marker_s_tolerance_goes_before_the_session_s() -> None:
    base = LeakBudget(tolerances=(Tolerance("*", 10),))
    budget = leak_budget(item(leak(tolerance="host.heap=0 B")), base, TODAY)
    assert budget.tolerated("host.heap") == 0
    assert budget.tolerated("host.mapped") == 10


def test_every_veo_memory_marker_is_a_budget() -> None:
    markers = memory(peak="4 MiB"), memory(growth=0, on="torch.allocated")
    assert memory_budgets(item(*markers)) == (
        MemoryBudget(on="host.rss", peak_bytes=4 << 20),
        MemoryBudget(on="torch.allocated", growth_bytes=0),
    )
