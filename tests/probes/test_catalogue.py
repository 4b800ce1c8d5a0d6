from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from pytest_veo.errors import ProbeUnavailable
from pytest_veo.memory.snapshot import Trouble
from pytest_veo.options import PROBES
from pytest_veo.probes.base import Probe
from pytest_veo.probes.catalogue import CATALOGUE
from pytest_veo.probes.catalogue import COUNTERS
from pytest_veo.probes.catalogue import Factory
from pytest_veo.probes.catalogue import open_probes
from pytest_veo.probes.gauges import GaugedProbe


class Lamp(GaugedProbe):
    name = "lamp"
    error: Exception | None = None

    def open(self) -> None:
        if self.error is not None:
            raise self.error


def with_lamp(lamp: Lamp | None = None) -> dict[str, Factory]:
    """The shipped catalogue and somebody else's probe."""
    kept = lamp or Lamp()
    return {**CATALOGUE, "lamp": lambda: kept}


def names(probes: tuple[Probe, ...]) -> list[str]:
    return [probe.name for probe in probes]


def test_the_catalogue_begins_with_the_host_and_the_help_names_it_all() -> None:
    assert next(iter(CATALOGUE)) == "host"
    assert tuple(CATALOGUE) == PROBES


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name != "host"])
def test_a_name_makes_the_probe_of_that_name(name: str) -> None:
    probe = CATALOGUE[name]()
    assert isinstance(probe, Probe)
    assert probe.name == name


def test_probes_are_opened_once_in_the_catalogues_order() -> None:
    opened = open_probes(["cuda", "torch", "torch", "nvml"])
    assert names(opened.ready) == ["nvml", "torch", "cuda"]
    assert opened.troubles == ()


def test_other_peoples_probes_come_after_our_own() -> None:
    opened = open_probes(["lamp", "torch"], with_lamp())
    assert names(opened.ready) == ["torch", "lamp"]


def test_other_peoples_probes_are_opened_only_when_asked_for() -> None:
    assert names(open_probes(["torch"], with_lamp()).ready) == ["torch"]


def test_an_unavailable_probe_is_a_trouble() -> None:
    lamp = Lamp()
    lamp.error = ProbeUnavailable("lamp", "no socket")
    assert open_probes(["lamp"], with_lamp(lamp)) == (
        (),
        (Trouble("lamp", "no socket"),),
    )


def test_a_probe_that_fails_to_open_is_an_error() -> None:
    lamp = Lamp()
    lamp.error = OSError("short circuit")
    trouble = Trouble("lamp", "OSError: short circuit", is_error=True)
    assert open_probes(["lamp"], with_lamp(lamp)) == ((), (trouble,))


def test_a_probe_that_sleeps_imports_neither_its_library_nor_its_own_file() -> None:
    script = """
        import sys
        from pytest_veo.probes.catalogue import CATALOGUE, open_probes
        before = {name for name in sys.modules if name.startswith("pytest_veo.probes")}
        opened = open_probes(["torch"])
        files = {name for name in sys.modules if name.startswith("pytest_veo.probes")}
        print(*sorted(files - before))
        opened = open_probes([name for name in CATALOGUE if name != "host"])
        print([probe.is_active() for probe in opened.ready])
        heavy = "torch cupy numba rmm jax onnxruntime pynvml numpy".split()
        print(sorted(set(heavy) & set(sys.modules)))
    """
    output = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.splitlines()
    assert output == [
        "",
        str([False] * 9),
        "[]",
    ]


def test_the_host_probe_has_the_counters_that_settings_know() -> None:
    (probe,) = open_probes(["host"]).ready
    names = {reading.counter.name for reading in probe.read()}
    assert names <= set(COUNTERS["host"])
    assert "heap" in names
    probe.close()
