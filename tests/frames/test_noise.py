from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_veo.frames import noise
from pytest_veo.frames.noise import MachineNoise
from pytest_veo.frames.noise import WaitReading
from pytest_veo.frames.noise import describe_null
from pytest_veo.frames.noise import null_loop
from tests.frames.shapes import MS


class Machine:
    """A clock that a sleep moves on, late at chosen sleeps."""

    def __init__(self, late_at: tuple[int, ...] = (), late_ms: float = 0.0) -> None:
        self.now_ns = 0
        self.sleeps = 0
        self._late_at = late_at
        self._late_ns = round(late_ms * MS)

    def clock(self) -> int:
        self.now_ns += 100
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.sleeps += 1
        self.now_ns += round(seconds * 1e9)
        if self.sleeps in self._late_at:
            self.now_ns += self._late_ns


def noise_of(machine: Machine) -> MachineNoise:
    stamps = null_loop(100 * MS, clock=machine.clock, sleep=machine.sleep)
    return describe_null(stamps)


def test_a_quiet_machine_adds_nothing() -> None:
    found = noise_of(Machine())
    assert found.frames == 100
    assert found.max_ns < 0.001 * MS


def test_a_stall_is_one_late_frame() -> None:
    found = noise_of(Machine(late_at=(50,), late_ms=8))
    assert found.max_ns == pytest.approx(7.5 * MS, rel=0.02)
    assert found.p95_ns < 0.01 * MS


def test_the_loop_ends_on_a_machine_that_is_always_late() -> None:
    found = noise_of(Machine(late_at=tuple(range(1, 500)), late_ms=8))
    assert found.p50_ns > 5 * MS


def test_an_empty_null_loop_says_nothing() -> None:
    assert describe_null(np.array([5])) == MachineNoise(frames=0)


def test_excess_is_that_of_the_next_known_quantile() -> None:
    found = MachineNoise(frames=9, p50_ns=1, p95_ns=2, p99_ns=3, max_ns=4)
    shares = (0.3, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0)
    assert [found.excess_ns(share) for share in shares] == [1, 1, 2, 2, 3, 4, 4]


def test_two_looks_at_the_machine_keep_the_worse() -> None:
    first = MachineNoise(frames=10, p50_ns=1, p99_ns=5, waited_ns=7)
    second = MachineNoise(frames=10, p50_ns=2, p99_ns=4)
    assert first.worse(second) == MachineNoise(
        frames=20, p50_ns=2, p99_ns=5, waited_ns=7
    )


def test_waiting_is_what_the_kernel_counted_between_two_readings() -> None:
    before, after = WaitReading(0, 100, 1000), WaitReading(10_000, 350, 3500)
    found = before.until(after, MachineNoise(frames=0))
    assert (found.waited_ns, found.pressure) == (250, 0.25)
    unknown = WaitReading(0, None, None).until(after, MachineNoise(frames=0))
    assert (unknown.waited_ns, unknown.pressure) == (None, None)


@pytest.mark.parametrize(
    ("text", "waited_ns"),
    [("5000 340 12\n", 340), ("", None), ("a b c", None)],
    ids=["counted", "empty", "words"],
)
def test_schedstat_is_read_or_unknown(
    tmp_path: Path, text: str, waited_ns: int | None
) -> None:
    path = tmp_path / "schedstat"
    path.write_text(text)
    assert noise._waited_ns(path) == waited_ns
    assert noise._waited_ns(tmp_path / "none") is None


def test_what_a_host_took_is_known_to_a_tick() -> None:
    before = WaitReading(0, 100, 0, 7, 10 * MS)
    after = WaitReading(10_000, 300, 0, 9, 10 * MS)
    found = before.until(after, MachineNoise(frames=0))
    assert (found.stolen_ns, found.kept_ns) == (30 * MS, 30 * MS + 200)
    alone = WaitReading(0, 100, 0).until(WaitReading(1, 300, 0), MachineNoise(frames=0))
    assert (alone.stolen_ns, alone.kept_ns) == (0, 200)


def test_steal_is_read_or_none(tmp_path: Path) -> None:
    path = tmp_path / "stat"
    path.write_text("cpu  10 20 30 40 50 60 70 80 90 0\ncpu0 1 2 3\n")
    assert noise._stolen_ticks(path) == 80
    path.write_text("cpu 1 2\n")
    assert noise._stolen_ticks(path) == 0
    assert noise._stolen_ticks(tmp_path / "none") == 0


def test_pressure_is_read_or_unknown(tmp_path: Path) -> None:
    path = tmp_path / "cpu"
    path.write_text("some avg10=0.07 avg60=1.27 avg300=8.47 total=65\nfull total=0\n")
    assert noise._pressure_ns(path) == 65_000
    assert noise._pressure_ns(tmp_path / "none") is None


def test_threads_that_were_not_counted_waited_as_long_as_anybody() -> None:
    found = MachineNoise(frames=9, waited_ns=5, pressure=0.5)
    assert found.of_other_threads(1000).waited_ns == 500
    assert found.of_other_threads(8).waited_ns == 5
    unknown = MachineNoise(frames=9, waited_ns=5)
    assert unknown.of_other_threads(1000) == unknown
