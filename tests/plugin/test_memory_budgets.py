"""The marker and the fixture `veo_memory`, with and without a leak check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from tests.plugin.conftest import Check


MARKED = """
import pytest

from conftest import PROBE

@pytest.mark.veo_memory(on="fake.used", growth="4 KiB")
def test_within():
    PROBE.grow("used", 4096)
    PROBE.grow("used", -4096)

@pytest.mark.veo_memory(on="fake.used", growth="4 KiB", peak="8 KiB")
def test_over():
    PROBE.grow("used", 9000)

@pytest.mark.veo_memory(on="fake.used", peak="8 KiB")
def test_unsure():
    PROBE.grow("used", -9000)
    print("hello")

@pytest.mark.veo_memory(on="fake.missing", growth="4 KiB")
def test_unknown():
    pass

@pytest.mark.xfail(strict=True)
@pytest.mark.veo_memory(on="fake.used", growth="1 B")
def test_expected():
    PROBE.grow("used", 2)

def test_window(veo_memory):
    with veo_memory.window("decode") as window:
        PROBE.grow("used", 7)
    PROBE.grow("used", -7)
    assert window.growth("fake.used") == 7
"""

CONFTEST = """
from pytest_veo.testing import ScriptedProbe

PROBE = ScriptedProbe("fake", used=0)

def pytest_veo_probes(config):
    return [PROBE]
"""


@pytest.mark.parametrize("level", ["", "fast"], ids=["unchecked", "checked"])
def test_a_marked_test_is_held_to_its_limits(
    check: Check, pytester: pytest.Pytester, level: str
) -> None:
    pytester.makeconftest(CONFTEST)
    result = check(MARKED, "--veo-probes=fake", "-rA", level=level, inprocess=True)
    result.assert_outcomes(passed=3, failed=2, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "grew by 8.8 KiB (fake.used), allowed are 4 KiB",
            "rose by 8.8 KiB (fake.used), allowed are 8 KiB",
            "veo_memory window 'test_unknown': no counter 'fake.missing' was read, "
            "there are fake.used",
            "peak of fake.used not known: at least 0 B, at most unknown, "
            "allowed are 8 KiB",
        ]
    )


def test_without_a_marker_no_probe_is_opened(
    check: Check, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(
        """
        def pytest_veo_probes(config):
            raise AssertionError("asked")
        """
    )
    check("def test_it(): pass", level="", inprocess=True).assert_outcomes(passed=1)


def test_a_limit_that_means_nothing_is_refused_before_the_first_test(
    check: Check,
) -> None:
    result = check(
        """
        import pytest

        @pytest.mark.veo_memory(peak="4 MB")
        def test_it(): pass
        """,
        level="",
        inprocess=True,
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: test_it.py::test_it: veo_memory(peak): '4 MB': write MiB (binary), "
            "e.g. '4 MiB'"
        ]
    )
