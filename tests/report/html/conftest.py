"""A headless browser, and pages opened in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from typing import NoReturn

import pytest
from playwright.sync_api import Browser
from playwright.sync_api import Page
from playwright.sync_api import sync_playwright

from pytest_veo.archive.store import Run
from pytest_veo.report.html.page import Compared
from pytest_veo.report.html.page import render
from pytest_veo.report.html.page import write
from pytest_veo.report.html.past import Past


# Read here: each test runs in an environment without it.
IN_CI = os.environ.get("CI") == "true"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def do_without(what: str) -> NoReturn:
    if IN_CI:
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        do_without("no browser: run ci/system chromium")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield found
        found.close()


class Opened(NamedTuple):
    """A page, and what the browser had to say of it."""

    page: Page
    path: Path
    console: list[str]
    """Everything on the console, uncaught errors included."""
    asked: list[str]
    """Addresses that the page loaded, its own left out."""

    @property
    def ids(self) -> list[str]:
        """The names in the rows of the table that are there, in order."""
        found: list[str] = self.page.locator(
            "#tests-table button.name"
        ).all_inner_texts()
        return found


Open = Callable[..., Opened]


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Render a run, and open it: `open_page(run, at="#test=...")`."""
    contexts = []

    def opened(
        run: Run,
        *,
        at: str = "",
        past: Past | None = None,
        compared: Compared | None = None,
        width: int = 1280,
        dark: bool = False,
        scripts: bool = True,
    ) -> Opened:
        path = tmp_path / "page.html"
        write(path, render(run, past=past, compared=compared))
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
            offline=True,
        )
        contexts.append(context)
        page = context.new_page()
        found = Opened(page, path, [], [])
        page.on("console", lambda message: found.console.append(message.text))
        page.on("pageerror", lambda error: found.console.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None
                if request.is_navigation_request()
                else found.asked.append(request.url)
            ),
        )
        page.goto(path.as_uri() + at)
        if scripts:
            page.wait_for_selector("html[data-ready=true]")
        return found

    yield opened
    for context in contexts:
        context.close()
