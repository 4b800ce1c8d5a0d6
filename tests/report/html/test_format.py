"""The page's scripts write quantities as the rest of the project does."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from pytest_veo.report.html import page
from pytest_veo.report.visible import visible
from pytest_veo.units import Unit
from pytest_veo.units import format_value
from tests.report.html.runs import HOSTILE


VALUES = (
    0,
    1,
    -1,
    9,
    512,
    1023,
    1024,
    1536,
    -1536,
    147_456,
    1_048_575,
    1_048_576,
    1_072_693_248,
    8 << 30,
    5 << 41,
    144.5,
    1280,
    3328,
    2_125_000,
    -2_125_000,
    17_350,
    0.25,
    999,
    999_499,
    16_700_000,
    999_600_000,
    1_234_000_000_000,
)


@pytest.fixture(scope="module")
def scripts(browser: Browser) -> str:
    return page._asset(("static/format.js",))


def test_quantities_are_written_alike(browser: Browser, scripts: str) -> None:
    tab = browser.new_page()
    tab.add_script_tag(content=scripts)
    for unit in Unit:
        for signed in (False, True):
            shown = tab.evaluate(
                "([values, unit, signed]) => values.map("
                "(value) => formatValue(value, unit, signed))",
                [list(VALUES), unit.value, signed],
            )
            wanted = [format_value(value, unit, signed=signed) for value in VALUES]
            assert shown == wanted
    tab.close()


def test_hidden_characters_are_shown_alike(browser: Browser, scripts: str) -> None:
    tab = browser.new_page()
    tab.add_script_tag(content=scripts)
    texts = [
        text for text in (*HOSTILE, "größe 日本 🎮 a\u200bb") if "\ud800" not in text
    ]
    shown = tab.evaluate("(texts) => texts.map(visible)", texts)
    assert shown == [visible(text) for text in texts]
    tab.close()
