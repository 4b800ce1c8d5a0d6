"""A page of ten thousand tests: little of it is made before somebody looks at it.

How long it takes is measured by benchmarks/page_open.py; here is what makes it quick.
"""

from __future__ import annotations

from playwright.sync_api import expect

from pytest_veo.archive.store import Run
from tests.report.html import runs
from tests.report.html.conftest import Open


def test_only_what_is_seen_is_made(open_page: Open) -> None:
    run = runs.large()
    opened = open_page(run)
    page = opened.page
    assert page.locator("#tests-status").inner_text() == "10,000 tests"
    assert page.locator("#tests-table tbody tr").count() == 100
    assert page.evaluate("document.querySelectorAll('*').length") < 4000
    assert page.evaluate("drawn.size") <= 1
    blocks = page.locator("script[type='application/json']").count()
    assert blocks > 50
    assert page.evaluate("parsed.size") <= 8
    assert opened.console == []


def test_more_rows_come_on_demand_and_take_the_focus(open_page: Open) -> None:
    opened = open_page(runs.large(tests=450))
    page = opened.page
    button = page.locator("#tests-after")
    assert button.inner_text() == "Show 100 more of 350"
    button.click()
    assert page.locator("#tests-table tbody tr").count() == 200
    focused = page.evaluate("document.activeElement.closest('tr').rowIndex")
    assert focused == 101
    for _ in range(3):
        button.click()
    assert page.locator("#tests-table tbody tr").count() == 450
    assert button.is_hidden()


def test_a_link_into_the_middle_makes_the_rows_around_it(open_page: Open) -> None:
    run: Run = runs.large(tests=3000)
    wanted = run.records[2998].nodeid
    opened = open_page(
        run, at="#test=" + wanted.replace("[", "%5B").replace("]", "%5D")
    )
    page = opened.page
    assert page.locator("#tests-table tbody tr.linked").count() == 1
    assert page.locator("#tests-table tbody tr").count() <= 102
    before = page.locator("#tests-before")
    assert before.is_visible()
    first = opened.ids[0]
    before.click()
    assert opened.ids[100] == first


def test_a_filter_reaches_every_test(open_page: Open) -> None:
    opened = open_page(runs.large(tests=3000))
    opened.page.locator("#filter").fill("test_case_2999")
    expect(opened.page.locator("#tests-status")).to_have_text("1 of 3,000 tests")
    assert opened.ids == ["TestThing::test_case_2999[fp-2999]"]
