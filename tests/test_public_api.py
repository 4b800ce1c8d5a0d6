from __future__ import annotations

import subprocess
import sys

import pytest

import pytest_veo
from pytest_veo.probes.base import Probe
from pytest_veo.testing import ScriptedProbe


@pytest.mark.parametrize("name", pytest_veo.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(pytest_veo, name)
    assert name in dir(pytest_veo)


def test_public_names_are_the_ones_that_type_checkers_see() -> None:
    assert set(pytest_veo._HOMES) | {"__version__"} == set(pytest_veo.__all__)


def test_an_unknown_name_is_refused_as_by_any_module() -> None:
    message = "module 'pytest_veo' has no attribute 'Porbe'"
    with pytest.raises(AttributeError, match=f"^{message}$"):
        pytest_veo.Porbe  # noqa: B018


def test_importing_the_package_imports_none_of_its_rooms() -> None:
    script = (
        "import sys, pytest_veo;"
        "print([m for m in sys.modules if m.startswith('pytest_veo.')])"
    )
    said = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert said.stdout == "[]\n"


def test_a_scripted_probe_speaks_the_protocol() -> None:
    assert isinstance(ScriptedProbe("fake", used=0), Probe)


CONFTEST = """
from pytest_veo.testing import ScriptedProbe

PROBE = ScriptedProbe({arguments})

def pytest_veo_probes(config):
    return [PROBE]
"""
GROWING = """
from conftest import PROBE

def test_grows():
    PROBE.grow("used", 4096)
    {then}
"""


@pytest.fixture(autouse=True)
def _no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def run(pytester: pytest.Pytester, arguments: str, then: str) -> pytest.RunResult:
    pytester.makeconftest(CONFTEST.format(arguments=arguments))
    pytester.makepyfile(GROWING.format(then=then))
    return pytester.runpytest_subprocess(
        "-p", "pytest_veo.plugin", "--veo-leak-check", "--veo-probes=fake"
    )


def test_what_a_scripted_probe_keeps_is_a_leak_of_its_device(
    pytester: pytest.Pytester,
) -> None:
    found = run(pytester, "'fake', used=0", "")
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(
        ["leaked 4 KiB a run (fake.used on GPU-00000000-0000-0000-0000-000000000000)"]
    )


@pytest.mark.parametrize(
    "then",
    [
        pytest.param("PROBE.grow('used', -4096)", id="at-once"),
        pytest.param("PROBE.free_when_settled('used', 4096)", id="when-settled"),
    ],
)
def test_what_a_scripted_probe_gives_back_is_no_leak(
    pytester: pytest.Pytester, then: str
) -> None:
    found = run(pytester, "'fake', used=0", then)
    found.assert_outcomes(passed=1)
    found.stdout.no_fnmatch_line("*leaks:*")


def test_an_unavailable_scripted_probe_is_named_with_its_reason(
    pytester: pytest.Pytester,
) -> None:
    found = run(pytester, "'fake', unavailable='no such card', used=0", "")
    found.assert_outcomes(passed=1)
    found.stdout.fnmatch_lines(["*(fake: unavailable, no such card)"])


def test_a_lost_counter_becomes_an_error_with_its_reason(
    pytester: pytest.Pytester,
) -> None:
    found = run(pytester, "'fake', used=0", "PROBE.lose('used', 'off the bus')")
    found.assert_outcomes(passed=1)
    found.stdout.fnmatch_lines(
        [
            "not watched:",
            "  fake.used GPU-00000000-0000-0000-0000-000000000000: error, off the bus",
        ]
    )
