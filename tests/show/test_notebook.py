"""What a notebook shows of a model."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

from ..fits import EXACT, NOISY, X, small


@pytest.fixture(scope="module")
def model():
    # So much noise that more formulas than are shown explain it.
    noise = np.random.default_rng(0).normal(0.0, NOISY.std(), len(NOISY))
    return small(draws=200).fit(X, NOISY + noise)


def without_ids(html):
    """Numbers that scikit-learn counts up with every diagram."""
    return re.sub(r"-\d+", "", html)


def shown(model):
    """The HTML that a notebook takes, which is the same by either way of asking."""
    html = model._repr_html_()
    assert without_ids(html) == without_ids(model._repr_mimebundle_()["text/html"])
    return html


def test_the_diagram_stays_and_formulas_are_below(model):
    html = shown(model)
    diagram, _, table = html.partition('<div class="symbayes-formulas">')
    assert without_ids(diagram) == without_ids(estimator_html_repr(model))
    assert table.count("<tr") == 1 + min(5, len(model.formulas_))
    for text in model.formulas_["formula"][:5]:
        assert f"<td>{text}</td>" in table
    assert f"and {len(model.formulas_) - 5} more in <code>formulas_</code>" in table
    assert f"<p>{model.diagnostics_['verdict']}</p>" in table


def test_few_formulas_are_all():
    html = shown(small(operators=["square"]).fit(X, EXACT))
    assert "<td>3*x0**2 + 2</td>" in html
    assert "more in" not in html


def test_a_model_that_is_not_fitted_is_shown_as_before():
    model = small()
    assert without_ids(shown(model)) == without_ids(estimator_html_repr(model))


def test_text_stays_text(model):
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert model._repr_mimebundle_() == {"text/plain": repr(model)}


def test_names_are_data():
    names = ["<script>alert(1)</script>", "$x_1$"]
    html = shown(small(operators=["square"]).fit(pd.DataFrame(X, columns=names), NOISY))
    assert "<script>alert(1)" not in html
    assert "`&lt;script&gt;alert(1)&lt;/script&gt;`**2" in html
    # Dollar signs are no mathematics: MathJax is told to keep out of the table.
    assert "mathjax_ignore" in html.partition('<div class="symbayes-formulas">')[2]


def test_long_formulas_are_not_cut():
    names = ["a_column_with_a_name_as_long_as_they_come_in_practice", "b"]
    html = shown(small(operators=["square"]).fit(pd.DataFrame(X, columns=names), NOISY))
    assert f"*{names[0]}**2" in html


def test_a_pipeline_shows_its_diagram(model):
    assert "symbayes-formulas" not in make_pipeline(model)._repr_html_()
