"""How long a page of many tests takes to make, and to open in a headless browser.

    python benchmarks/page_open.py [--tests 10000] [--rounds 5]

Needs the test group and `ci/system chromium`. Opening is measured by the browser:
from the start of navigation until the page's script has made the table and says so.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser
from playwright.sync_api import sync_playwright

from pytest_veo.report.html.page import render
from pytest_veo.report.html.page import write
from pytest_veo.report.html.past import Past
from tests.report.html.runs import large


PAST_RUNS = 30
LIMIT_S = 2.0


def past_of(tests: int) -> Past:
    """Thirty earlier runs in which the heap of every test went up and down a little."""
    run = large(tests)
    return Past(
        run_ids=tuple(f"run-{number}" for number in range(PAST_RUNS)),
        growth={
            (record.nodeid, row.counter, row.device): {
                number: 512 * (number % 3) for number in range(PAST_RUNS)
            }
            for record in run.records
            for row in record.counters
        },
    )


def opened_s(browser: Browser, path: Path) -> float:
    """Seconds until the page can be used, in a fresh context."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=true]")
    taken_ms: float = page.evaluate(
        "performance.getEntriesByType('navigation')[0].loadEventEnd"
    )
    context.close()
    return taken_ms / 1000


def main() -> None:
    """Print one line a size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    run, past = large(args.tests), past_of(args.tests)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "page.html"
        start = time.process_time()
        write(page, render(run, past=past))
        made_s = time.process_time() - start
        browser = playwright.chromium.launch(
            executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"]
        )
        taken = [opened_s(browser, page) for _ in range(args.rounds)]
        browser.close()
        size_mib = page.stat().st_size / 2**20
    verdict = "within" if statistics.median(taken) <= LIMIT_S else "OVER"
    print(
        f"{args.tests:,} tests, {PAST_RUNS} earlier runs: {size_mib:.1f} MiB, made in "
        f"{made_s:.2f} s of CPU, opens in {statistics.median(taken):.2f} s (median of "
        f"{args.rounds}, {min(taken):.2f} to {max(taken):.2f}); {verdict} {LIMIT_S:g} s"
    )


if __name__ == "__main__":
    main()
