"""Windows on memory: growth and peaks between two readings."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest

from pytest_veo.errors import BadSetting
from pytest_veo.measure import window as window_module
from pytest_veo.measure.meter import Meter
from pytest_veo.measure.window import MemoryWindow
from pytest_veo.measure.window import MemoryWindows
from pytest_veo.measure.window import Peak
from pytest_veo.memory.snapshot import Counter
from pytest_veo.memory.snapshot import Kind
from pytest_veo.memory.snapshot import Reading
from pytest_veo.probes.host import HostProbe
from pytest_veo.testing import ScriptedProbe
from pytest_veo.units import Unit


class PeakProbe(ScriptedProbe):
    """A probe that keeps a running peak of `used` on each of its devices."""

    def __init__(self, *devices: str) -> None:
        super().__init__("fake")
        self.now = dict.fromkeys(devices, 100)
        self.record = dict.fromkeys(devices, 500)

    def read(self) -> tuple[Reading, ...]:
        """What each device has in use, and the most it ever had."""
        return tuple(
            Reading(Counter("fake", name, Unit.BYTES, device=device, kind=kind), value)
            for name, kind, values in (
                ("used", Kind.CURRENT, self.now),
                ("used_peak", Kind.PEAK, self.record),
            )
            for device, value in values.items()
        )


def window_over(probe: ScriptedProbe) -> MemoryWindow:
    return MemoryWindows(Meter([probe])).window("decode")


def test_growth_is_what_is_more_at_the_end() -> None:
    probe = PeakProbe("GPU-a", "GPU-b")
    with window_over(probe) as window:
        probe.now["GPU-a"] += 30
        probe.now["GPU-b"] -= 10
    assert window.growth("fake.used") == 20
    assert window.growth("fake.used", "GPU-b") == -10


@pytest.mark.parametrize(
    ("end", "record", "peak"),
    [
        pytest.param(150, 700, Peak(600, 600), id="a new record is exact"),
        pytest.param(150, 500, Peak(50, 400), id="else it lies below the old one"),
        pytest.param(90, 500, Peak(0, 400), id="what shrank has not risen"),
    ],
)
def test_a_running_peak_is_never_reset(end: int, record: int, peak: Peak) -> None:
    probe = PeakProbe("GPU-a")
    with window_over(probe) as window:
        probe.now["GPU-a"], probe.record["GPU-a"] = end, record
    assert window.peak("fake.used") == peak


def test_peaks_of_two_devices_need_not_have_come_together() -> None:
    probe = PeakProbe("GPU-a", "GPU-b")
    with window_over(probe) as window:
        probe.record.update({"GPU-a": 900, "GPU-b": 800})
    assert window.peak("fake.used") == Peak(0, 1500)
    assert window.peak("fake.used", "GPU-b") == Peak(700, 700)


def test_without_a_record_only_the_end_is_known() -> None:
    probe = ScriptedProbe("fake", used=1)
    with window_over(probe) as window:
        probe.grow("used", 9)
    assert window.peak("fake.used") == Peak(9, None)


@pytest.mark.parametrize("ask", [MemoryWindow.growth, MemoryWindow.peak])
def test_a_counter_that_was_not_read_is_an_error_that_names_the_others(
    ask: object,
) -> None:
    assert callable(ask)
    with window_over(ScriptedProbe("fake", used=1, held=2)) as window:
        pass
    with pytest.raises(BadSetting) as caught:
        ask(window, "torch.allocated")
    assert str(caught.value) == (
        "veo_memory window 'decode': no counter 'torch.allocated' was read, "
        "there are fake.held, fake.used"
    )


def test_a_window_that_has_not_ended_says_so() -> None:
    window = window_over(ScriptedProbe("fake", used=1))
    with window, pytest.raises(RuntimeError, match="has not ended: ask after"):
        window.growth("fake.used")


def touched(size: int) -> mmap.mmap:
    held = mmap.mmap(-1, size)
    for place in range(0, size, mmap.PAGESIZE):
        held[place] = 1
    return held


def test_resident_memory_rises_and_falls_within_a_window() -> None:
    probe = HostProbe()
    probe.open()
    with MemoryWindow("decode", Meter([probe])) as window:
        touched(32 << 20).close()
    probe.close()
    peak = window.peak("host.rss")
    assert peak.is_exact
    assert peak.least > 28 << 20
    assert window.growth("host.rss") < 16 << 20


def test_a_record_that_the_kernel_will_not_restart_is_no_peak_of_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    touched(64 << 20).close()  # higher than the window will be

    def refuse(*_: object) -> int:
        raise PermissionError

    probe = HostProbe()
    probe.open()
    monkeypatch.setattr(Path, "write_text", refuse)
    with MemoryWindow("decode", Meter([probe])) as window:
        touched(8 << 20).close()
    probe.close()
    peak = window.peak("host.rss")
    assert not peak.is_exact
    assert peak.least < 8 << 20
    assert peak.most is not None
    assert peak.most > 8 << 20


def test_without_a_record_of_the_kernel_the_peak_of_resident_memory_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(window_module, "_rss_record_bytes", lambda: None)
    probe = HostProbe()
    probe.open()
    with MemoryWindow("decode", Meter([probe])) as window:
        pass
    probe.close()
    assert window.peak("host.rss").most is None
