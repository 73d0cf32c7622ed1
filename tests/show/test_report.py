"""The report: one page that is well formed, complete, safe whatever columns are called."""

import copy
import os
import re
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from symbayes import BayesianSymbolicRegressor, Formula, TreePrior
from symbayes.inputs.validation import Table
from symbayes.show.report import page as making
from symbayes.show.report.markup import Markup, element

from ..fits import EXACT, NOISY, X, small, with_result

RNG = np.random.default_rng(130)
NAMES = ["<script>alert(1)</script>", "$x_1$", "]]>\" onload='x' &amp;", "λ 日本\x00"]
TARGET = "</title><img src=http://127.0.0.1/x>"
PAPER = "https://arxiv.org/abs/1910.08892"
VOID = {"meta"}


@pytest.fixture(scope="module")
def model():
    """Its formulas use the worst of the names."""
    table = pd.DataFrame(np.column_stack([X, X[:, ::-1] ** 2]), columns=NAMES)
    y = table[NAMES[0]] * table[NAMES[1]] + np.sin(table[NAMES[2]]) + RNG.normal(0, 0.1, 60)
    return small(chains=2, random_state=2).fit(table, y.rename(TARGET))


@pytest.fixture(scope="module")
def plain():
    return small(operators=["+", "square"], tree_prior=TreePrior(alpha=0.5)).fit(X, NOISY)


class Page(HTMLParser):
    """What a page is made of; complains where an element is not closed."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.raw = path.read_text(encoding="utf-8")
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(self.raw)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        # Only there may an element close itself.
        assert {"svg", "math"} & set(self.open), tag
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    @property
    def text(self):
        return "\n".join(text for _, text in self.texts)


def page_of(model, tmp_path, **options):
    return Page(model.report(tmp_path / "report.html", **options))


@pytest.fixture
def no_plots(monkeypatch):
    """Plots take most of the time of a page; some tests look only at what is around them."""
    monkeypatch.setattr(making, "svg", lambda *_: Markup("<svg></svg>"))


@pytest.fixture(scope="module")
def page(model, tmp_path_factory):
    return page_of(model, tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def plain_page(plain, tmp_path_factory):
    return page_of(plain, tmp_path_factory.mktemp("plain"))


def test_the_parser_of_this_test_notices_what_is_not_closed(tmp_path):
    path = tmp_path / "bad.html"
    for text in ("<p><b></p>", "<p>", "<p/>"):
        path.write_text(text)
        with pytest.raises(AssertionError):
            Page(path)


def test_elements_escape_what_is_not_markup():
    assert element("p", "<b>", Markup("<i>")) == "<p>&lt;b&gt;<i></p>"
    assert element("p", title='"<') == '<p title="&quot;&lt;"></p>'
    assert element("p", "\x00\u202e\n") == "<p>\ufffd\ufffd\n</p>"
    assert isinstance(element("p"), Markup)


def test_the_page_is_one_file_that_asks_for_nothing(page):
    assert {"script", "img", "link", "iframe", "object", "base", "form"}.isdisjoint(page.tags)
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids)) > 10
    for tag, name, value in page.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in ("src", "srcset", "action", "xlink:href", "background")
        if name == "href":
            assert value[1:] in ids or (tag, value) == ("a", PAPER), value
        for target in re.findall(r"url\((.*?)\)", value or ""):
            assert target[1:] in ids
    style = "".join(text for tag, text in page.texts if tag == "style")
    assert "url(" not in style
    assert "@import" not in style
    assert ("meta", "content", "default-src 'none'; style-src 'unsafe-inline'; img-src data:") in (
        page.attributes
    )
    assert page.raw.startswith("<!DOCTYPE html>\n<html lang=")
    assert page.raw.count("<!") == 1
    assert "<?xml" not in page.raw


def test_names_are_data(model, page, tmp_path, no_plots):
    assert set(model.best_formula_.features) >= set(NAMES[:2])
    assert "<script" not in page.raw
    assert "<img" not in page.raw
    assert "\x00" not in page.raw
    for name in NAMES[:3]:
        assert name in page.text
    assert ("title", f"A formula for {TARGET}") in page.texts
    assert ("h1", "<b>Title & more</b>") in page_of(
        model, tmp_path, title="<b>Title & more</b>"
    ).texts


def test_the_answer_comes_first_then_trust_then_detail(model, page):
    headings = [text for tag, text in page.texts if tag == "h2"]
    assert headings == ["The answer", "Can it be trusted?", "Detail"]
    best = model.best_formula_
    assert [text for tag, text in page.texts if tag == "code"].count(best.text()) >= 1
    assert page.text.index(best.text().partition("\x00")[0]) < page.text.index(headings[1])
    for value in (f"{model.formulas_['probability'][0]:.3f}", "60", "RMSE", "the most probable"):
        assert value in page.text
    assert page.tags.count("svg") == 7


def test_formulas_are_mathml(plain, tmp_path, monkeypatch, no_plots):
    shown = []

    def mathml(formula):
        shown.append(formula.text())
        return "<math><mi>probe</mi></math>"

    monkeypatch.setattr(Formula, "mathml", mathml, raising=False)
    page = page_of(plain, tmp_path)
    assert [text for tag, text in page.texts if tag == "mi"] == ["probe"] * len(shown)
    assert shown[0] == plain.best_formula_.text()
    assert len(shown) > len(plain.pareto_)


def test_long_formulas_are_text_that_breaks_lines(plain, tmp_path, no_plots):
    long = Formula(" + ".join(["x0*x1"] * 30), ["x0", "x1"])
    assert long.n_nodes > 60
    changed = with_result(
        plain,
        formula_objects=[long, *plain.formula_objects_[1:]],
        formulas=plain.formulas_.assign(rounded=long.text()),
    )
    page = page_of(changed, tmp_path)
    assert ("div", "class", "formula long") in page.attributes
    assert ("code", long.text(4)) in page.texts
    # Where one is, all of its table are.
    short = plain.formula_objects_[1].text()
    assert ("code", short) in page.texts
    assert ("code", short) not in page_of(plain, tmp_path).texts


def test_constants_have_their_intervals(plain, plain_page):
    page = plain_page
    assert ("caption", "Constants of the best formula") in page.texts
    table = plain.constants()
    assert len(table) == 2
    for row in table.itertuples():
        assert ("td", f"{row.value:#.4g}") in page.texts
        assert ("td", f"{row.lower:#.4g} to {row.upper:#.4g}") in page.texts


def test_a_constant_that_others_make_up_for_has_no_interval(plain, tmp_path, no_plots):
    best = Formula("2*exp(x0 + 1) + 3", ["x0", "x1"])
    changed = with_result(plain, formula_objects=[best, *plain.formula_objects_[1:]])
    cells = [text for tag, text in page_of(changed, tmp_path).texts if tag == "td"]
    assert cells.count("any, as others make up for it") == 2


def test_table_and_plot_show_as_many_formulas(plain, tmp_path):
    many = with_result(
        plain,
        formulas=pd.concat([plain.formulas_] * 9, ignore_index=True),
        formula_objects=plain.formula_objects_ * 9,
    )
    page = page_of(many, tmp_path)
    assert re.search(r"The 8 most probable of \d+ formulas found", page.text)
    assert re.search(r"The 8 most probable of \d+ formulas$", page.text, re.MULTILINE)


def test_use_and_repetition_as_printed(plain, plain_page):
    page = plain_page
    codes = [text for tag, text in page.texts if tag == "code"]
    (use,) = (text for text in codes if "formula.predict" in text)
    names = {"table": pd.DataFrame(X, columns=["x0", "x1"])}
    exec(use, names)
    np.testing.assert_array_equal(
        names["formula"].predict(names["table"][names["formula"].features]),
        plain.best_formula_.predict(X),
    )
    (repeat,) = (text for text in codes if "model.fit" in text)
    names = {"X": X, "y": NOISY}
    exec(repeat, names)
    pd.testing.assert_frame_equal(names["model"].formulas_, plain.formulas_)


def test_a_subclass_is_not_what_a_reader_imports(plain, plain_page, tmp_path):
    class Mine(BayesianSymbolicRegressor):
        pass

    mine = copy.copy(plain)
    mine.__class__ = Mine
    assert page_of(mine, tmp_path).text == plain_page.text


def test_a_fit_without_a_seed_cannot_be_repeated(plain, plain_page, tmp_path, no_plots):
    assert "The same fit again:" in plain_page.text
    changed = copy.copy(plain)
    for generator in (None, np.random.RandomState(0)):
        changed.random_state = generator
        page = page_of(changed, tmp_path)
        assert "random_state was no number, so that draws will differ" in page.text
        assert " at 0x" not in page.raw
    cut = with_diagnostics(plain, timed_out=True)
    assert "was ended early, so that draws may differ" in page_of(cut, tmp_path).text


def with_diagnostics(model, **changes):
    return with_result(model, diagnostics=model.diagnostics_ | changes)


def test_the_verdict_is_that_of_the_diagnostics(plain, tmp_path, no_plots):
    doubtful = with_diagnostics(
        plain,
        verdict="Look <twice>.",
        converged=False,
        r_hat={"uses x0": 1.234, "uses x1": 1.1},
        effective_draws={"uses x0": 56.7, "uses x1": 43.2},
    )
    page = page_of(doubtful, tmp_path)
    assert ("p", "Look <twice>.") in page.texts
    assert ("p", "class", "verdict doubtful") in page.attributes
    assert ("td", "1.234") in page.texts
    assert ("td", "43") in page.texts
    assert [text for tag, text in page.texts if tag == "p"].count("Look <twice>.") == 2
    quantities = {"log_likelihood": 1.0, "n_nodes": 1.0}
    known = with_diagnostics(plain, r_hat=quantities, effective_draws=quantities)
    cells = [text for tag, text in page_of(known, tmp_path).texts if tag == "td"]
    assert {"Log-likelihood", "Size, in nodes of the trees"} <= set(cells)
    assert "n_nodes" not in cells
    fine = with_diagnostics(plain, verdict="All is well.", converged=True)
    assert ("p", "class", "verdict good") in page_of(fine, tmp_path).attributes


@pytest.mark.filterwarnings("ignore::symbayes.DataWarning")
def test_reasons_for_doubt_are_told(plain, tmp_path, no_plots):
    notes = (
        "The run was interrupted",
        "The time limit ended",
        "No formula has half",
        "There are only",
    )
    text = page_of(with_diagnostics(plain, interrupted=False, timed_out=False), tmp_path).text
    assert [note in text for note in notes[:2]] == [False, False]
    few = small(operators=["square"]).fit(np.column_stack([X[:10], np.ones(10)]), NOISY[:10])
    few = with_diagnostics(few, interrupted=True, timed_out=True)
    few = with_result(few, formulas=few.formulas_.assign(probability=0.2))
    text = page_of(few, tmp_path).text
    assert all(note in text for note in notes)
    assert "There are only 10 rows" in text
    assert "Left out, because constant or the same as another: 'x2'." in text


def test_intervals_that_miss_their_rows_are_told(plain, plain_page, tmp_path, no_plots):
    says = "of the training rows lie in their 90% intervals"
    assert says not in plain_page.text
    rows = plain.result_.rows
    noisier = Table(rows.X, rows.y + RNG.normal(0, 5, 60), rows.weights, rows.used)
    changed = with_result(plain, rows=noisier)
    assert says in page_of(changed, tmp_path).text


def test_the_same_model_gives_the_same_bytes_whatever_matplotlib_is_set_to(plain, tmp_path):
    first = plain.report(tmp_path / "a.html").read_bytes()
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "text.color": "red"}):
        second = plain.report(tmp_path / "b.html").read_bytes()
        assert matplotlib.rcParams["font.size"] == 30
    assert first == second
    import matplotlib.pyplot as plt

    assert plt.get_fignums() == []


def test_a_large_fit_makes_a_small_page(plain, tmp_path):
    n = 10_000
    large = with_diagnostics(
        plain,
        log_likelihood_by_temperature=[RNG.normal(size=(1000, 12)) for _ in range(4)],
        log_likelihood=[np.zeros(1000)] * 4,
        powers=[np.geomspace(1, 0.01, 12)] * 4,
    )
    rows = RNG.uniform(-2, 2, (n, 2))
    copies = -(-300 // len(plain.formulas_))
    large = with_result(
        large,
        rows=Table(rows, 3 * rows[:, 0] ** 2, np.ones(n), np.arange(2)),
        formulas=pd.concat([plain.formulas_] * copies, ignore_index=True),
        formula_objects=plain.formula_objects_ * copies,
    )
    page = page_of(large, tmp_path)
    assert "1,000 rows drawn from 10,000" in page.text
    assert len(page.raw.encode()) < 1_500_000


def test_other_kinds_of_models(tmp_path):
    paper = small(sampler="paper", n_terms=1, operators=["+", "square"])
    page = page_of(paper.fit(X, NOISY, sample_weight=np.full(60, 2.0)), tmp_path)
    assert "120 (sum of weights)" in page.text
    assert "model.fit(X, y, sample_weight)" in page.text
    exact = small(operators=["square"], model_selection="accuracy").fit(X, EXACT)
    page = page_of(exact, tmp_path)
    assert "the one with the smallest error" in page.text


def test_a_failure_leaves_the_old_page_as_it_was(plain, tmp_path, monkeypatch, no_plots):
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    # While it is written, and when it is to take the place of the old one.
    for owner, name in ((os, "fsync"), (os, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fail)
            with pytest.raises(OSError, match="disk full"):
                plain.report(path)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]
    assert plain.report(str(path)) == path
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert list(tmp_path.iterdir()) == [path]


def test_bad_questions(plain, tmp_path):
    with pytest.raises(NotFittedError):
        small().report(tmp_path / "report.html")
    with pytest.raises(IsADirectoryError, match="is a folder; add a file name"):
        plain.report(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere; create it first"):
        plain.report(tmp_path / "nowhere" / "report.html")
    with pytest.raises(TypeError, match="title must be a str or None, not int"):
        plain.report(tmp_path / "report.html", title=3)
    assert list(tmp_path.iterdir()) == []
