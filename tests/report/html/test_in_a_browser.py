"""The page in headless Chromium: what a person sees and does."""

from __future__ import annotations

import urllib.parse

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from pytest_veo.report.html.page import Changed
from pytest_veo.report.html.page import Compared
from pytest_veo.report.html.past import Past
from pytest_veo.report.visible import visible
from tests.report.html import runs
from tests.report.html.conftest import Open
from tests.report.html.conftest import Opened


LEAK = "tests/test_a.py::test_leaks"
GPU_LEAK = "tests/test_b.py::TestGpu::test_keeps_its_loss[fp16]"


def past_of(nodeid: str) -> Past:
    growth = dict(enumerate([0, 0, 512, 0, 147_456]))
    return Past(
        run_ids=tuple(f"run-{number}" for number in range(5)),
        growth={(nodeid, "host.heap", "host"): growth},
    )


def see_all(opened: Opened) -> None:
    """Scroll through, so that everything is drawn."""
    opened.page.evaluate("""async () => {
        for (let y = 0; y < document.documentElement.scrollHeight; y += 500) {
            scrollTo(0, y);
            await new Promise(requestAnimationFrame);
            await new Promise(requestAnimationFrame);
        }
        scrollTo(0, 0);
    }""")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390], ids=["wide", "phone"])
def test_nothing_is_on_the_console_and_nothing_is_loaded(
    open_page: Open, width: int, dark: bool
) -> None:
    opened = open_page(runs.small(), past=past_of(LEAK), width=width, dark=dark)
    see_all(opened)
    for name in opened.page.locator("#tests-table button.name").all():
        name.click()
    see_all(opened)
    assert opened.page.locator(".plot canvas").count() >= 8
    assert opened.console == []
    assert [each for each in opened.asked if not each.startswith("data:")] == []


def test_what_is_printed_has_the_plots_that_nobody_scrolled_to(open_page: Open) -> None:
    opened = open_page(runs.small())
    plots = opened.page.locator(".plot")
    waiting = opened.page.locator(".plot:not(:has(canvas))")
    assert waiting.count() > 0
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert (waiting.count(), plots.count()) == (0, plots.locator("canvas").count())
    assert opened.page.locator("#found .frames .plot").count() == 3
    assert opened.console == []


@pytest.mark.parametrize("width", [1280, 390], ids=["wide", "phone"])
def test_nothing_is_wider_than_the_screen(open_page: Open, width: int) -> None:
    opened = open_page(runs.hostile(), width=width)
    opened.page.locator("#tests-table button.name").first.click()
    wide = opened.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width


def test_what_was_found_comes_first_the_worst_at_the_top(open_page: Open) -> None:
    opened = open_page(runs.small())
    assert opened.page.locator("h1").inner_text() == (
        "2 tests leak, 1 breaks its frame budget"
    )
    cards = opened.page.locator("#found .card h3 a").all_inner_texts()
    assert cards == [
        "TestGpu::test_keeps_its_loss[fp16]",
        "test_leaks",
        "test_stutters",
    ]
    assert opened.ids[:3] == cards


def test_evidence_is_folded_open(open_page: Open) -> None:
    opened = open_page(runs.small())
    evidence = opened.page.locator("#found .card", has_text="test_leaks").locator(
        "details"
    )
    assert evidence.first.get_attribute("open") is not None
    text = evidence.first.inner_text()
    assert "thumbnails.py:16" in text
    assert "thumbnails.CACHE (dict)[0]" in text


@pytest.mark.parametrize(
    ("column", "down", "first"),
    [
        ("Test", False, "test_clean"),
        ("Test", True, "test_stutters"),
        ("Grew by", True, "TestGpu::test_keeps_its_loss[fp16]"),
        ("Took", True, "test_is_smooth"),
        ("Took", False, "test_small"),
        ("Verdict", True, "test_small"),
    ],
)
def test_a_column_sorts_and_says_so(
    open_page: Open, column: str, down: bool, first: str
) -> None:
    opened = open_page(runs.small())
    head = opened.page.locator("#tests-table thead th", has_text=column)
    wanted = "descending" if down else "ascending"
    head.locator("button").click()
    if head.get_attribute("aria-sort") != wanted:
        head.locator("button").click()
    assert head.get_attribute("aria-sort") == wanted
    assert opened.page.locator("th[aria-sort]").count() == 1
    assert opened.ids[0] == first


def test_words_filter_and_the_count_is_told(open_page: Open) -> None:
    opened = open_page(runs.small())
    opened.page.locator("#filter").fill("TEST_B fp16")
    status = opened.page.locator("#tests-status")
    expect(status).to_have_text("1 of 8 tests")
    assert opened.ids == ["TestGpu::test_keeps_its_loss[fp16]"]
    assert status.get_attribute("role") == "status"
    opened.page.locator("#clear").click()
    assert len(opened.ids) == 8
    assert status.inner_text() == "8 tests"


def test_verdicts_filter_and_several_add_up(open_page: Open) -> None:
    opened = open_page(runs.small())
    tiles = opened.page.locator("button.tile")
    tiles.filter(has_text="retention").click()
    assert opened.ids == ["test_warms_up"]
    tiles.filter(has_text="failed by itself").click()
    assert opened.ids == ["test_fails", "test_warms_up"]
    pressed = opened.page.locator("button.tile[aria-pressed=true]").all_inner_texts()
    assert len(pressed) == 2
    tiles.filter(has_text="retention").click()
    assert opened.ids == ["test_fails"]


def test_a_filtered_view_has_an_address_of_its_own(open_page: Open) -> None:
    first = open_page(runs.small())
    first.page.locator("button.tile", has_text="leak").click()
    first.page.locator("#tests-table thead button", has_text="Took").click()
    address = first.page.url
    assert "standing=leak" in address
    assert "sort=-ms" in address
    again = open_page(runs.small(), at="#" + address.partition("#")[2])
    assert again.ids == first.ids
    assert len(again.ids) == 2


def test_a_link_opens_its_test_whatever_it_is_called(open_page: Open) -> None:
    run = runs.small()
    hostile = [
        runs.record(nodeid, at_ms=900 + number, heap=77)
        for number, nodeid in enumerate(runs.HOSTILE)
    ]
    run = run._replace(records=(*run.records, *hostile))
    opened = open_page(run)
    for number, record in enumerate(run.records):
        nodeid = record.nodeid
        is_whole = "\ud800" not in nodeid
        name = nodeid if is_whole else visible(nodeid)
        address = "#test=" + urllib.parse.quote(name, safe="")
        opened.page.evaluate("hash => { location.hash = hash; }", address)
        line = opened.page.locator(f"#row-{number}.linked")
        expect(line).to_have_count(1)
        assert line.locator("button.name").get_attribute("aria-expanded") == "true"
        focused = opened.page.evaluate("document.activeElement.closest('tr').id")
        assert focused == f"row-{number}"
        there = opened.page.locator(f"#detail-{number} a.permalink").evaluate(
            "link => decodeURIComponent(link.hash)"
        )
        assert there == "#test=" + name
    assert opened.console == []


def test_a_link_to_a_test_that_is_not_there_says_so(open_page: Open) -> None:
    opened = open_page(runs.small(), at="#test=tests/test_z.py::test_gone")
    assert opened.page.locator("#tests-status").inner_text() == (
        "This run has no test tests/test_z.py::test_gone"
    )


@pytest.mark.parametrize(
    "at", ["#test=%E0%A4%A", "#q=%ZZ", "#sort=-nothing&standing=x"]
)
def test_an_address_without_meaning_does_no_harm(open_page: Open, at: str) -> None:
    opened = open_page(runs.small(), at=at)
    assert opened.console == []


def test_a_card_leads_to_its_row(open_page: Open) -> None:
    opened = open_page(runs.small())
    opened.page.locator("#found h3 a", has_text="test_leaks").click()
    opened.page.wait_for_selector("tr.linked")
    assert opened.page.locator("tr.linked button.name").inner_text() == "test_leaks"
    assert "147,456" not in opened.page.locator(".opened").inner_text()
    assert "+144 KiB" in opened.page.locator(".opened").inner_text()


def test_a_link_shows_a_test_that_a_filter_hides(open_page: Open) -> None:
    opened = open_page(runs.small(), at="#standing=retention")
    assert opened.ids == ["test_warms_up"]
    opened.page.evaluate(
        "location.hash = 'test=' + encodeURIComponent('tests/test_a.py::test_clean')"
    )
    opened.page.wait_for_selector("tr.linked")
    assert opened.page.locator("tr.linked button.name").inner_text() == "test_clean"
    assert opened.page.locator("button.tile[aria-pressed=true]").count() == 0


def test_earlier_runs_are_a_curve_with_words_for_it(open_page: Open) -> None:
    opened = open_page(runs.small(), past=past_of(LEAK))
    row = opened.page.locator("#tests-table tr", has_text="test_leaks").first
    curve = row.locator(".plot.spark")
    assert curve.get_attribute("role") == "img"
    assert curve.get_attribute("aria-label") == (
        "growth in 6 runs: from +0 B to +144 KiB, now +144 KiB"
    )
    curve.scroll_into_view_if_needed()
    opened.page.wait_for_selector("#tests-table .plot.spark canvas")


def test_frames_are_drawn_with_their_budget(open_page: Open) -> None:
    opened = open_page(runs.small())
    card = opened.page.locator("#found .card", has_text="test_stutters")
    card.scroll_into_view_if_needed()
    card.locator(".plot canvas").nth(2).wait_for()
    labels = [each.get_attribute("aria-label") for each in card.locator(".plot").all()]
    assert labels == [
        "frame times of decode in order; the first 30 are warm-up, shaded and not "
        "judged",
        "how many frames took how long (logarithmic)",
        "percentiles of frame time: p50 16.7 ms, p95 17 ms, p99 17.1 ms, "
        "longest 80 ms; limits are marked",
    ]


def test_the_timeline_shows_each_counter_and_leads_to_tests(open_page: Open) -> None:
    opened = open_page(runs.small())
    page = opened.page
    choice = page.locator("#timeline-counter")
    assert choice.locator("option").all_inner_texts() == [
        "torch.allocated on GPU-1a2b",
        "host.heap",
        "host.descriptors",
    ]
    choice.select_option(label="host.heap")
    label = page.locator("#timeline-label").inner_text()
    assert label == "host.heap over the session, from 1 MiB to 1.1 MiB in 8 tests"
    page.locator("#timeline").scroll_into_view_if_needed()
    plot = page.locator("#timeline .u-over")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    # test_is_smooth takes nearly all of the session.
    plot.click(position={"x": box["width"] / 2, "y": 40})
    page.wait_for_selector("tr.linked")
    assert page.locator("tr.linked button.name").inner_text() == "test_is_smooth"


def test_workers_have_lines_of_their_own(open_page: Open) -> None:
    run = runs.small()
    records = [
        each._replace(worker=f"gw{number % 3}")
        for number, each in enumerate(run.records)
    ]
    opened = open_page(run._replace(records=tuple(records)))
    opened.page.locator("#timeline-counter").select_option(label="host.heap")
    label = opened.page.locator("#timeline-label").inner_text()
    assert label.endswith("a line for each of 3 workers")
    assert opened.console == []


def test_all_can_be_done_with_the_keyboard(open_page: Open) -> None:
    opened = open_page(runs.small())
    page = opened.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.locator("#filter").focus()
    page.keyboard.type("test_leaks")
    expect(page.locator("#tests-table button.name")).to_have_count(1)
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "name":
            break
    page.keyboard.press("Enter")
    assert page.locator(".opened").count() == 1
    assert page.locator("button.name").get_attribute("aria-expanded") == "true"
    page.keyboard.press("Enter")
    assert page.locator(".opened").count() == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_to_complain_of(open_page: Open, dark: bool) -> None:
    against = Compared(
        "run 20260228",
        rows=(Changed("worse", "bad", LEAK, "host.heap", "512 B", "144 KiB"),),
        summary="8 tests compared",
        doubts=("another driver",),
    )
    opened = open_page(runs.small(), past=past_of(LEAK), compared=against, dark=dark)
    opened.page.locator("#tests-table button.name").nth(1).click()
    opened.page.locator("#tests-table button.name").nth(2).click()
    see_all(opened)
    found = Axe().run(opened.page)
    told = [
        (each["id"], [node["target"] for node in each["nodes"]][:5])
        for each in found.response["violations"]
    ]
    assert told == []


def test_without_scripts_the_findings_can_be_read(open_page: Open) -> None:
    opened = open_page(runs.small(), scripts=False)
    text = opened.page.locator("body").inner_text()
    assert "2 tests leak, 1 breaks its frame budget" in text
    assert "thumbnails.py:16" in text
    assert "No scripts here." in text
    assert "max_ms 80 ms, limit 33.4 ms, in decode" in text


def test_the_comparison_is_shown_with_links(open_page: Open) -> None:
    gone = "tests/test_z.py::test_gone"
    against = Compared(
        "run 20260228T010101",
        rows=(
            Changed("worse", "bad", LEAK, "host.heap", "512 B", "144 KiB"),
            Changed("gone", "note", gone, "host.heap", "1 KiB", "", known=False),
        ),
        summary="8 tests compared, 1 figure better",
        doubts=("another driver: 570.86, 580.12",),
        more=3,
    )
    opened = open_page(runs.small(), compared=against)
    section = opened.page.locator("#compared")
    assert section.locator("p").all_inner_texts() == [
        "another driver: 570.86, 580.12",
        "run 20260228T010101: 8 tests compared, 1 figure better",
        "and 3 more",
    ]
    assert section.locator("tbody tr").count() == 2
    assert section.locator("tbody a").all_inner_texts() == ["test_leaks"]
    section.locator("a").click()
    opened.page.wait_for_selector("tr.linked")
    assert "host.heap worse, 512 B before, 144 KiB now" in (
        opened.page.locator(".opened").inner_text()
    )


def test_hostile_text_is_only_text(open_page: Open) -> None:
    opened = open_page(runs.hostile())
    for name in opened.page.locator("#tests-table button.name").all():
        name.click()
    see_all(opened)
    assert opened.page.title() not in ("owned", "1")
    assert "49" not in opened.page.title()
    assert (
        opened.page.locator("#tests-table img, main b[onclick], main img").count() == 0
    )
    scripts = opened.page.evaluate(
        "[...document.scripts].filter((s) => s.type !== 'application/json').length"
    )
    assert scripts == 1
    hidden = opened.page.evaluate(
        r"/[\u202e\u2028\u0000\u001b]/.test(document.body.innerText)"
    )
    assert hidden is False
    assert r"\u202e" in opened.page.evaluate("document.body.innerText")
    assert opened.console == []


def test_scripts_that_are_not_the_pages_own_do_not_run(open_page: Open) -> None:
    opened = open_page(runs.small())
    opened.page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "document.title = 'owned'";
        document.body.append(script);
        const holder = document.createElement("div");
        holder.innerHTML = "<img src=x onerror='document.title = 1'>";
        document.body.append(holder);
    }""")
    opened.page.wait_for_timeout(100)
    assert opened.page.title() == "2 tests leak, 1 breaks its frame budget · pytest-veo"
    assert any("Content Security Policy" in line for line in opened.console)
