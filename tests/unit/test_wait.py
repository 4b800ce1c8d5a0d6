"""What comes back by itself, and how long it is waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import cast

import pytest

from pytest_veo.measure.meter import Glance
from pytest_veo.measure.meter import Layout
from pytest_veo.measure.meter import Meter
from pytest_veo.measure.settle import BUFFER_BYTES
from pytest_veo.measure.settle import LONG_WAITS_S
from pytest_veo.measure.settle import wait
from pytest_veo.memory.snapshot import Counter
from pytest_veo.probes.host import HEAP
from pytest_veo.units import Unit


DEVICE = Counter(
    probe="jax", name="allocated", unit=Unit.BYTES, device="GPU-0", always=True
)
ON_DEVICE, ON_HOST = Layout((DEVICE,)), Layout((HEAP,))


class SlowMeter:
    """Its counter reads one value after the other, then the last one for ever."""

    def __init__(self, layout: Layout, values: Sequence[int]) -> None:
        self.layout = layout
        self.values = list(values)
        self.settled = 0

    def settle(self) -> None:
        self.settled += 1

    def glance(self) -> Glance:
        now = self.values.pop(0) if len(self.values) > 1 else self.values[0]
        return Glance(self.layout, (now,))


@pytest.mark.parametrize(
    ("layout", "values", "left", "waits"),
    [
        pytest.param(ON_DEVICE, (0,), 0, (), id="nothing is up"),
        pytest.param(ON_DEVICE, (9, 9, 0), 0, LONG_WAITS_S[:2], id="it comes back"),
        pytest.param(ON_DEVICE, (9,), 9, LONG_WAITS_S[:4], id="it stays"),
        pytest.param(ON_HOST, (9,), 9, (), id="little is up on the host"),
        pytest.param(
            ON_HOST, (BUFFER_BYTES, 0), 0, LONG_WAITS_S[:1], id="the host's comes back"
        ),
    ],
)
def test_it_waits_as_long_as_something_may_come_back(
    layout: Layout, values: tuple[int, ...], left: int, waits: tuple[float, ...]
) -> None:
    slept: list[float] = []
    meter: Any = SlowMeter(layout, values)
    after = wait(cast("Meter", meter), Glance(layout, (0,)), slept.append)
    assert after.values == (left,)
    assert tuple(slept) == waits
    assert meter.settled == len(waits) + 1
