"""The report in a real browser: it renders, asks for nothing, and can be read on a phone."""

import base64

import numpy as np
import pandas as pd
import pytest

from ..fits import EXACT, X, small
from .chromium import PROGRAM, Chromium

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs Chromium: apt install chromium")

NAMES = ["<script>alert(1)</script>", "a_very_long_name_that_no_line_can_hold_" * 3]
WIDTH = 390


@pytest.fixture(scope="module")
def browser():
    with Chromium() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report with hostile and long names, and terms enough for long formulas."""
    rng = np.random.default_rng(140)
    table = pd.DataFrame(X, columns=NAMES)
    y = pd.Series(np.exp(X[:, 0]) * X[:, 1] + X[:, 1] ** 3 + rng.normal(0, 0.1, 60), name=NAMES[1])
    return small(n_terms=3).fit(table, y).report(tmp_path_factory.mktemp("report") / "report.html")


BACKGROUND = "getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)"
INK = "getComputedStyle(document.querySelector('svg text')).fill.match(/[0-9]+/g).map(Number)"
# Elements that reach out of the window and are not inside a box that scrolls.
OUTSIDE = f"""
[...document.querySelectorAll("body *")].filter(
    node => !node.closest(".scroll") && node.getBoundingClientRect().right > {WIDTH} + 0.5
).length
"""
SMALLEST_LETTERS = """
Math.min(...[...document.querySelectorAll(".figures svg")].flatMap(svg => {
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return [...svg.querySelectorAll("text")].map(
        text => scale * parseFloat(getComputedStyle(text).fontSize));
}))
"""


def test_this_test_notices_what_is_wrong(browser, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!DOCTYPE html><meta name=viewport content='width=device-width'>"
        "<body style='margin:0'><div style='width: 700px'>wide</div>"
        "<img src='http://127.0.0.1:9/x'><script>undefined.x</script>"
    )
    browser.open(bad, WIDTH, 844)
    assert "http://127.0.0.1:9/x" in browser.requests
    assert any("undefined" in said for said in browser.complaints)
    assert browser.value("document.documentElement.scrollWidth") > WIDTH
    assert browser.value(OUTSIDE) > 0


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [WIDTH, 1200])
def test_it_renders_without_a_word_and_asks_for_nothing(browser, page, width, dark):
    browser.open(page, width, 844, dark)
    assert browser.complaints == []
    assert browser.requests == [page.as_uri()]
    assert browser.value("document.querySelectorAll('script').length") == 0
    assert browser.value("document.title").endswith(NAMES[1])
    shown = "[...document.querySelectorAll('svg')].every(svg => svg.getBBox().height > 50)"
    assert browser.value("document.querySelectorAll('svg').length") == 7
    assert browser.value(shown)


def test_a_phone_shows_it_without_scrolling_sideways(browser, page):
    browser.open(page, WIDTH, 844)
    assert browser.value("window.innerWidth") == WIDTH
    assert browser.value("document.documentElement.scrollWidth") <= WIDTH
    assert browser.value(OUTSIDE) == 0
    assert browser.value(SMALLEST_LETTERS) >= 8
    assert browser.value("parseFloat(getComputedStyle(document.body).fontSize)") >= 16


def test_light_and_dark(browser, page):
    browser.open(page)
    assert min(browser.value(BACKGROUND)) > 230
    assert max(browser.value(INK)) < 60
    browser.open(page, dark=True)
    assert max(browser.value(BACKGROUND)) < 60
    assert min(browser.value(INK)) > 200


def test_formulas_are_drawn_as_mathematics(browser, tmp_path):
    browser.open(small(operators=["square"]).fit(X, EXACT).report(tmp_path / "short.html"))
    heights = "[...document.querySelectorAll('math')].map(m => m.getBoundingClientRect().height)"
    assert browser.value(heights)
    assert min(browser.value(heights)) > 5


def test_long_formulas_break_their_lines(browser, page):
    """On a phone too: nothing of the headline is out of sight, or needs scrolling."""
    browser.open(page, WIDTH, 844)
    headline = "document.querySelector('.formula.long > code')"
    assert browser.value(f"{headline}.getClientRects().length") > 3
    assert browser.value(f"{headline}.getBoundingClientRect().right") < WIDTH


def test_it_prints_in_black_on_white(browser, page):
    browser.open(page, dark=True)
    printed = base64.b64decode(browser.call("Page.printToPDF")["data"])
    assert printed.startswith(b"%PDF")
    assert 20_000 < len(printed) < 3_000_000
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.value(BACKGROUND)[:3] == [255, 255, 255]
    assert browser.value(INK)[:3] == [0, 0, 0]
    browser.call("Emulation.setEmulatedMedia", media="")
