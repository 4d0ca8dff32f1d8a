"""The page of a replay in a real browser: it opens offline, and links lead to originals."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from browser_support import browser, complaints
from conspectus_lab.replay import Replay
from conspectus_lab.report import replay_page
from made_replays import FIRST_TEXT, HOSTILE, hostile, large, small

LINES = "return document.querySelectorAll('figure > .plot .line').length"
SHOWN = """
const text = document.querySelector(arguments[0]).querySelector('.text');
const box = text.getBoundingClientRect();
const top = document.elementFromPoint(box.x + 4, Math.max(box.y, 0) + 4);
return box.height > 0 && text.contains(top) ? text.textContent : null;
"""
"""The text of an original, if its beginning can really be seen in the window."""


def until(driver: Any, script: str, *given: object) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, 60).until(lambda d: d.execute_script(script, *given))


def opened(driver: Any, folder: Path, replays: Sequence[Replay]) -> None:
    file = folder / "report.html"
    file.write_text(replay_page(replays), encoding="utf-8")
    driver.get(file.as_uri())


def find(driver: Any, selector: str) -> Any:
    return driver.find_element("css selector", selector)


@pytest.fixture(scope="module", params=["light", "dark"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("page")
    with browser(folder / "profile", dark=request.param == "dark") as driver:
        opened(driver, folder, [small()])
        driver.scheme = request.param
        yield driver


@pytest.fixture(autouse=True)
def afresh(request: pytest.FixtureRequest) -> None:
    if "page" in request.fixturenames:
        driver = request.getfixturevalue("page")
        driver.get(driver.current_url.partition("#")[0] + "#")
        driver.refresh()


def test_it_opens_without_a_network_and_without_a_complaint(page):
    assert complaints(page) == []
    assert page.execute_script(LINES) == 3
    marks = "return document.querySelectorAll('figure > .plot .point').length"
    assert page.execute_script(marks) == 4


def test_page_and_chart_wear_the_colours_that_are_preferred(page):
    paper, line, key = page.execute_script("""
        const style = (selector) => getComputedStyle(document.querySelector(selector));
        return [style('body').backgroundColor, style('.plot .l0').stroke,
                style('.swatch.c0').backgroundColor]""")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 28)"}[page.scheme]
    assert line == key == {"light": "rgb(37, 99, 168)", "dark": "rgb(110, 168, 230)"}[page.scheme]


def test_a_citation_leads_to_its_original_in_an_earlier_compaction(page):
    second = find(page, "#t1-p1-c2")
    first = find(page, "#t1-p1-c1")
    assert not find(page, "#t1-p1-c2 .summary").is_displayed()
    second.find_element("tag name", "summary").click()
    assert find(page, "#t1-p1-c2 .summary").is_displayed()
    assert first.get_attribute("open") is None
    find(page, "#t1-p1-c2 .summary a").click()  # the first is [m1]
    assert until(page, SHOWN, "#t1-p1-c1-m1") == FIRST_TEXT
    assert first.get_attribute("open") is not None
    assert page.current_url.endswith("#t1-p1-c1-m1")
    assert page.execute_script("return document.querySelector(':target').id") == "t1-p1-c1-m1"
    plain, found = page.execute_script("""
        return ['#t1-p1-c1-m2', '#t1-p1-c1-m1'].map(
            (one) => getComputedStyle(document.querySelector(one)).backgroundColor)""")
    assert plain != found
    assert complaints(page) == []


def test_the_same_citation_leads_there_again(page):
    find(page, "#t1-p1-c1 > summary").click()
    find(page, "#t1-p1-c1 .summary a").click()
    until(page, SHOWN, "#t1-p1-c1-m1")
    page.execute_script("""
        document.getElementById('t1-p1-c1-m1').open = false;
        document.querySelector('#t1-p1-c1 .summary').scrollIntoView()""")
    find(page, "#t1-p1-c1 .summary a").click()
    assert until(page, SHOWN, "#t1-p1-c1-m1") == FIRST_TEXT


def test_a_hostile_original_is_shown_as_it_is_and_does_nothing(page):
    find(page, "#t1-p1-c2 > summary").click()
    page.find_element("link text", "m9").click()
    text = until(page, SHOWN, "#t1-p1-c2-m1")
    assert text.startswith(HOSTILE.partition("\u202e")[0])
    assert page.title == "What each policy did to the window"
    assert complaints(page) == []


def test_a_mark_of_the_chart_opens_its_compaction(page):
    page.find_elements("css selector", "figure > .plot .point.c1")[1].click()
    until(page, "return document.getElementById('t1-p2-c2').open")
    assert page.current_url.endswith("#t1-p2-c2")
    assert find(page, "#t1-p2-c1").get_attribute("open") is None


def test_a_mark_can_be_opened_by_the_keyboard(page):
    page.execute_script("document.querySelector('figure > .plot a[href=\"#t1-p1-c2\"]').focus()")
    page.switch_to.active_element.send_keys("\ue007")
    until(page, "return document.getElementById('t1-p1-c2').open")
    assert page.execute_script("return document.activeElement.parentElement.id") == "t1-p1-c2"


def test_a_call_says_its_numbers_where_it_is_pointed_at(page):
    pointed = """
        const svg = document.querySelector('figure > .plot');
        svg.scrollIntoView({block: 'center'});
        const call = svg.querySelectorAll('.call')[2].getBoundingClientRect();
        return document.elementFromPoint(call.x + call.width / 2, call.y + 8).textContent"""
    told = "Call 3: Conspectus 3,100 · LangChain 3,100 · no compaction 3,800 tokens"
    assert page.execute_script(pointed) == told


def test_what_left_twice_shows_its_text_in_both_places(page):
    page.execute_script("location.hash = 't1-p2-c1-m1'")
    assert until(page, SHOWN, "#t1-p2-c1-m1") == FIRST_TEXT
    find(page, "#t1-p2-c1-m1 > summary").click()
    until(page, "return !document.querySelector('#t1-p2-c1-m1 .text')")


def test_the_chart_can_show_its_whole_height(page):
    assert not find(page, ".height .plot").is_displayed()
    find(page, ".height > summary").click()
    assert find(page, ".height .plot").is_displayed()


def test_paper_shows_every_compaction_and_no_button(page):
    seen = """return [...document.querySelectorAll('.compaction .summary.text')]
        .map((one) => one.checkVisibility())"""
    assert page.execute_script(seen) == [False] * 4
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert page.execute_script(seen) == [True] * 4
    colours = "return getComputedStyle(document.body).backgroundColor"
    assert page.execute_script(colours) == "rgb(255, 255, 255)"
    buttons = page.find_elements("tag name", "button")
    assert not any(one.is_displayed() for one in buttons)
    scheme = {"name": "prefers-color-scheme", "value": page.scheme}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [scheme]})
    assert page.execute_cdp_cmd("Page.printToPDF", {})["data"]
    until(page, f"return !({seen.removeprefix('return ')}).includes(true)")
    assert complaints(page) == []


def test_a_telephone_shows_it_without_scrolling_sideways(tmp_path):
    with browser(tmp_path / "profile", width=390) as driver:
        opened(driver, tmp_path, [small(), hostile()])
        for one in driver.find_elements("css selector", "details"):
            driver.execute_script("arguments[0].open = true", one)
        widths = "return [document.documentElement.scrollWidth, innerWidth]"
        assert driver.execute_script(widths) == [390, 390]
        assert complaints(driver) == []


def test_thousands_of_large_originals_stay_usable(tmp_path):
    with browser(tmp_path / "profile") as driver:
        opened(driver, tmp_path, [large()])
        driver.execute_script("location.hash = 't1-p1-c20'")
        cited = driver.find_elements("css selector", "#t1-p1-c20 .summary a")
        until(driver, "return document.getElementById('t1-p1-c20').open")
        cited[1].click()
        text = until(driver, SHOWN, "#t1-p1-c1-m1")
        assert text == large().runs[1].compactions[0].left[0].text
        assert len(text) == 10_000
        assert complaints(driver) == []
