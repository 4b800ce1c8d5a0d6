"""What comes back by itself, and how long it is waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import cast

import pytest

from pytest_veo.measure.meter import Glance
from pytest_veo.measure.meter import Layout
from pytest_veo.measure.meter import Meter
from pytest_veo.measure.settle import LONG_WAITS_S
from pytest_veo.measure.settle import wait
from pytest_veo.memory.snapshot import Counter
from pytest_veo.units import Unit


DEVICE = Counter(
    probe="jax", name="allocated", unit=Unit.BYTES, device="GPU-0", always=True
)
LAYOUT = Layout((DEVICE,))
BEFORE = Glance(LAYOUT, (0,))


class SlowMeter:
    """Its counter reads one value after the other, then the last one for ever."""

    def __init__(self, values: Sequence[int]) -> None:
        self.values = list(values)
        self.settled = 0

    def settle(self) -> None:
        self.settled += 1

    def glance(self) -> Glance:
        now = self.values.pop(0) if len(self.values) > 1 else self.values[0]
        return Glance(LAYOUT, (now,))


@pytest.mark.parametrize(
    ("values", "left", "waits"),
    [
        pytest.param((0,), 0, (), id="nothing is up"),
        pytest.param((9, 9, 0), 0, LONG_WAITS_S[:2], id="it comes back"),
        pytest.param((9,), 9, LONG_WAITS_S[:4], id="it stays"),
    ],
)
def test_it_waits_as_long_as_something_may_come_back(
    values: tuple[int, ...], left: int, waits: tuple[float, ...]
) -> None:
    slept: list[float] = []
    meter: Any = SlowMeter(values)
    after = wait(cast("Meter", meter), BEFORE, slept.append)
    assert after.values == (left,)
    assert tuple(slept) == waits
    assert meter.settled == len(waits) + 1
