"""The site builds without a warning, and makes no network request."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from .pages import PAGES, ROOT
from .show.chromium import PROGRAM, Chromium

pytestmark = pytest.mark.slow
# What a browser fetches by itself: not the links that a reader may follow.
_FETCHED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?\b(?:src|srcset|data)=\"([^\"]*)"
    r"|<link\b[^>]*?\bhref=\"([^\"]*)"
)
_FETCHED_BY_STYLE = re.compile(r"url\(\s*['\"]?([^'\")]*)|@import\s+['\"]([^'\"]*)")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("sphinx", reason="needs symbayes[docs]")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q"]
    build = subprocess.run(
        [*command, "-d", str(folder / "doctrees"), str(ROOT / "docs"), str(folder / "html")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert build.returncode == 0, build.stderr
    assert not build.stderr.strip()
    return folder / "html"


def is_elsewhere(address):
    return address.startswith(("http:", "https:", "//"))


def test_every_page_is_there(site):
    for name in PAGES:
        if name.startswith("docs/"):
            page = site / name.removeprefix("docs/").replace(".md", ".html")
            assert page.exists(), name


def test_nothing_is_fetched_from_elsewhere(site):
    pages, styles = list(site.rglob("*.html")), list(site.rglob("*.css"))
    assert pages
    assert styles
    for kind, pattern in ((pages, _FETCHED), (styles, _FETCHED_BY_STYLE)):
        for path in kind:
            found = [one or two for one, two in pattern.findall(path.read_text("utf-8"))]
            assert not [address for address in found if is_elsewhere(address)], path


def test_formulas_are_mathml(site):
    theory = (site / "theory.html").read_text("utf-8")
    assert theory.count("<math ") > 50
    assert "$" not in re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", theory, flags=re.DOTALL)


@pytest.mark.skipif(PROGRAM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [1200, 390])
def test_pages_in_a_browser(site, width):
    with Chromium() as browser:
        for name in ("index", "first-steps", "theory", "benchmark", "api"):
            browser.open(site / f"{name}.html", width=width)
            assert not browser.complaints, name
            assert len(browser.requests) > 2
            assert all(address.startswith(("file:", "data:")) for address in browser.requests)
            shown = browser.value("document.documentElement.scrollWidth")
            assert shown <= width, f"{name} is {shown} wide"
