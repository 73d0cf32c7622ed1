"""Plots: what they show, on which Axes, and names that must not be read as anything but names."""

import itertools
import subprocess
import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from symbayes import Formula, plots
from symbayes.formula.parser import parse
from symbayes.show.tree_plot import lay_out

from ..fits import NOISY, X, small, with_result

NAMES = ["$x_1$", "<script>alert(1)</script>"]
TARGET = r"$\frac{"
RNG = np.random.default_rng(120)

ALL = [
    plots.plot_predictions,
    plots.plot_residuals,
    plots.plot_formulas,
    plots.plot_pareto,
    plots.plot_trace,
    plots.plot_inclusion,
    plots.plot_tree,
]


@pytest.fixture(autouse=True)
def no_windows():
    matplotlib.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return small(chains=2).fit(pd.DataFrame(X, columns=NAMES), pd.Series(NOISY, name=TARGET))


def new_axes():
    """Axes of a figure that pyplot knows nothing of, and that can be drawn."""
    return FigureCanvasAgg(Figure(layout="constrained")).figure.subplots()


@pytest.fixture
def ax():
    return new_axes()


@pytest.mark.slow
def test_plotting_is_reachable_and_costs_nothing_at_import():
    code = "import sys, symbayes; symbayes.plots.plot_tree; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("plot", ALL)
def test_each_draws_where_it_is_told_and_returns_its_axes(plot, model, ax):
    import matplotlib.pyplot as plt

    assert plot(model, ax=ax) is ax
    assert plt.get_fignums() == []
    ax.figure.canvas.draw()
    new = plot(model)
    assert isinstance(new, matplotlib.axes.Axes)
    assert plt.get_fignums() == [new.figure.number]


@pytest.mark.parametrize("plot", ALL)
def test_bad_questions_are_answered_before_a_figure_is_made(plot, model):
    import matplotlib.pyplot as plt

    with pytest.raises(NotFittedError):
        plot(small())
    with pytest.raises(TypeError, match=r"plots show a fitted BayesianSymbolicRegressor .*not int"):
        plot(3)
    with pytest.raises(TypeError, match="ax must be a matplotlib Axes or None, not Figure"):
        plot(model, ax=Figure())
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda m: plots.plot_predictions(m, X), ValueError, "X and y belong together"),
        (lambda m: plots.plot_residuals(m, y=NOISY), ValueError, "X and y belong together"),
        (lambda m: plots.plot_residuals(m, X[:5], NOISY), ValueError, "y has 60 .*X has 5 rows"),
        (lambda m: plots.plot_residuals(m, X[:1], ["a"]), ValueError, "y contains text"),
        (lambda m: plots.plot_residuals(m, X[:1], [np.nan]), ValueError, "y contains 1 NaN"),
        (lambda m: plots.plot_predictions(m, X[:, :1], NOISY), ValueError, "expecting 2 features"),
        (lambda m: plots.plot_predictions(m, level=90), ValueError, "level is 90"),
        (lambda m: plots.plot_formulas(m, 0), ValueError, "n is 0; it must be at least 1"),
        (lambda m: plots.plot_inclusion(m, "all"), TypeError, "n must be an integer, not str"),
        (lambda m: plots.plot_trace(m, 2), ValueError, "chain is 2; it must be from 0 to 1"),
        (lambda m: plots.plot_trace(m, -1), ValueError, "chain is -1"),
        (lambda m: plots.plot_trace(m, "0"), TypeError, "chain must be an integer or None"),
    ],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_bad_questions(model, call, error, says):
    with pytest.raises(error, match=says):
        call(model)


def points(line):
    return np.column_stack(line.get_data())


def test_predictions_show_every_row_and_its_interval(model, ax):
    plots.plot_predictions(model, level=0.5, ax=ax)
    table = pd.DataFrame(X, columns=NAMES)
    predicted, (lower, upper) = model.predict(table), model.predict_interval(table, 0.5)
    inside = (lower <= NOISY) & (NOISY <= upper)
    assert 0 < inside.sum() < len(X)
    (bars,) = ax.collections
    expected = np.stack([np.stack([predicted, lower], 1), np.stack([predicted, upper], 1)], 1)
    np.testing.assert_array_equal(np.array(bars.get_segments()), expected)
    _, good, bad = ax.lines
    np.testing.assert_array_equal(points(good), np.stack([predicted, NOISY], 1)[inside])
    np.testing.assert_array_equal(points(bad), np.stack([predicted, NOISY], 1)[~inside])
    share = f"{inside.mean():.1%} of 60 rows\nlie in their 50% interval"
    assert ax.get_title() == share
    assert ax.get_xlabel() == f"predicted {TARGET}"
    assert ax.get_ylabel() == f"observed {TARGET}"


def test_residuals_are_observed_minus_predicted(model, ax):
    table = pd.DataFrame(X[:7], columns=NAMES)
    plots.plot_residuals(model, table, NOISY[:7], ax=ax)
    _, line = ax.lines
    predicted = model.predict(table)
    np.testing.assert_array_equal(points(line), np.stack([predicted, NOISY[:7] - predicted], 1))


@pytest.mark.filterwarnings("ignore::symbayes.SamplingWarning")
def test_rows_without_a_prediction_are_outside(ax):
    positive = np.abs(X) + 0.1
    found = small(operators=["log"], n_terms=1).fit(positive, np.log(positive[:, 0]))
    plots.plot_predictions(found, [[-1.0, 1.0], [1.0, 1.0]], [0.0, 0.0], ax=ax)
    plots.plot_predictions(found, [[-1.0, 1.0]], [0.0], ax=ax)
    assert ax.get_title().startswith("0.0% of 1 rows")
    ax.figure.canvas.draw()


def test_of_many_rows_the_same_thousand_are_drawn(model):
    rows = pd.DataFrame(RNG.uniform(-2, 2, (3000, 2)), columns=NAMES)
    y = 3 * rows[NAMES[0]] ** 2 + 2
    first, second = (plots.plot_residuals(model, rows, y) for _ in range(2))
    assert len(points(first.lines[1])) == 1000
    np.testing.assert_array_equal(points(first.lines[1]), points(second.lines[1]))
    assert first.get_title() == "Residuals of 1,000 rows drawn from 3,000"
    predicted = plots.plot_predictions(model, rows, y)
    assert len(predicted.collections[0].get_segments()) == 1000


def test_formulas_are_labels_word_for_word(model, ax):
    plots.plot_formulas(model, 3, ax=ax)
    n = min(3, len(model.formulas_))
    values, labels = ax.texts[:n], ax.texts[n:]
    for label, text in zip(labels, model.formulas_["formula"].head(3), strict=True):
        shown = label.get_text()
        shown = shown.replace("\n", " ")
        assert shown == text or (len(shown) >= 80 and text.startswith(shown[:-1]))
        assert not label.get_parse_math()
    assert "$x_1$" in labels[0].get_text()
    assert values[0].get_text() == f"{model.formulas_['probability'][0]:.3f}"
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == model.formulas_["probability"].head(3).tolist()


def test_columns_are_sorted_and_named_as_they_are(model, ax):
    plots.plot_inclusion(model, ax=ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == NAMES[:2]
    assert len(ax.patches) == 2
    assert ax.yaxis.get_inverted()
    ax.clear()
    plots.plot_inclusion(model, 1, ax=ax)
    assert [bar.get_width() for bar in ax.patches] == [model.inclusion_probability().max()]
    assert ax.get_title() == "The first 1 of 2 columns"


def test_a_column_without_a_name_has_a_label(ax):
    named = small(operators=["square"]).fit(pd.DataFrame(X, columns=["", "a\nb\x00"]), NOISY)
    plots.plot_inclusion(named, ax=ax)
    assert {label.get_text() for label in ax.get_yticklabels()} == {"(no name)", "a b\ufffd"}
    plots.plot_tree(named, ax=ax)
    assert "(no name)" in [text.get_text() for text in ax.texts]


def test_the_front_and_the_best_formula_are_marked(model, ax):
    plots.plot_pareto(model, ax=ax)
    everything, front, best = ax.lines
    assert len(points(everything)) == len(model.formulas_)
    np.testing.assert_array_equal(points(front), model.pareto_[["n_nodes", "rmse"]])
    assert points(best).tolist() == [[model.best_formula_.n_nodes, model.formulas_["rmse"][0]]]


def test_errors_that_differ_by_orders_of_magnitude_have_a_logarithmic_scale(ax):
    found = small(operators=["square", "+"], draws=100).fit(X, NOISY)
    front = found.pareto_.assign(rmse=0.1)
    found = with_result(found, formulas=found.formulas_.assign(rmse=0.1), front=front)
    assert plots.plot_pareto(found, ax=ax).get_yscale() == "linear"
    ax.clear()
    found.formulas_.loc[0, "rmse"] = 0.0
    assert plots.plot_pareto(found, ax=ax).get_yscale() == "log"
    assert points(ax.lines[2])[0, 1] > 0


def test_the_trace_has_a_line_a_temperature(model, ax):
    plots.plot_trace(model, 1, ax=ax)
    values = model.diagnostics_["log_likelihood_by_temperature"]
    n = values[1].shape[1]
    assert len(ax.lines) == n > 2
    best = max(chain.max() for chain in values)
    np.testing.assert_array_equal(ax.lines[-1].get_ydata(), best - values[1][:, 0])
    assert ax.lines[-1].get_color() != ax.lines[0].get_color()
    assert ax.get_legend().get_texts()[0].get_text() == "1"
    ax.clear()
    plots.plot_trace(model, ax=ax)
    assert len(ax.lines) == 2 * n + 1
    assert ax.lines[-1].get_xdata().tolist() == list(range(50, 100))


def test_the_trace_of_the_papers_sampler_has_one_line(ax):
    found = small(sampler="paper", n_terms=1, operators=["+", "square"]).fit(X, NOISY)
    plots.plot_trace(found, ax=ax)
    assert len(ax.lines) == 1
    assert ax.get_legend() is None


def test_a_tree_has_a_box_a_node_and_a_line_below_each_but_the_root(ax):
    formula = Formula("2*`$x_1$` - sin(`$x_1$`/3)", ["$x_1$"])
    plots.plot_tree(formula, ax=ax)
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["\u2212", "\u00d7", "2", "$x_1$", "sin", "÷", "$x_1$", "3"]
    assert len(texts) == formula.n_nodes == len(ax.lines) + 1
    ax.figure.canvas.draw()
    for line in ax.lines:
        (x0, y0), (x1, y1) = points(line)
        assert y0 - y1 == 1
        assert (x0, y0) in [text.get_position() for text in ax.texts]
        assert (x1, y1) in [text.get_position() for text in ax.texts]


def test_constants_of_a_tree_have_the_digits_of_the_text(ax):
    expression = parse("2.9971234567*x + 0.0414512345", ["x"])
    plots.plot_tree(Formula._from_expression(expression, ["x"], [7, 2]), ax=ax)
    assert [label.get_text() for label in ax.texts] == ["+", "\u00d7", "2.997123", "x", "0.041"]


def test_the_boxes_of_a_large_tree_do_not_overlap_where_they_are_drawn():
    part = "exp(x0)*cos(long_name/2.25) - 3.1415*sqrt(x0*x0 + long_name) + x0/(x0 - 2)"
    formula = Formula(f"({part})*({part}) - log({part})", ["x0", "long_name"])
    assert formula.n_nodes > 60
    for ax in (plots.plot_tree(formula), plots.plot_tree(formula, new_axes())):
        ax.figure.canvas.draw()
        boxes = [text.get_bbox_patch().get_window_extent() for text in ax.texts]
        for i, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[i + 1 :])


def trees():
    leaves = st.integers(1, 9).map(lambda n: lay_out("x" * n, "column"))
    return st.recursive(
        leaves,
        lambda below: st.lists(below, min_size=1, max_size=3).map(
            lambda operands: lay_out("op", "operator", operands)
        ),
        max_leaves=20,
    )


def boxes(drawing, x=0.0, depth=0):
    """Depth, centre and width of every box, in preorder."""
    yield depth, x, len(drawing.label)
    for shift, operand in drawing.below:
        yield from boxes(operand, x + shift, depth + 1)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(trees())
def test_any_tree_is_tidy(drawing):
    levels: dict[int, list] = {}
    for depth, x, width in boxes(drawing):
        levels.setdefault(depth, []).append((x, width))
    for level in levels.values():
        for (x, width), (y, other) in itertools.pairwise(level):
            assert y - x >= (width + other) / 2 + 1 - 1e-9
    below = [x for x, _ in drawing.below]
    if below:
        assert below[0] + below[-1] == pytest.approx(0)


def test_a_tree_is_drawn_the_same_wherever_it_hangs():
    """Equal parts look equal, which is what makes a drawing tidy."""
    part = lay_out("*", "operator", [lay_out("x", "column"), lay_out("long name", "column")])
    x = [x for _, x, _ in boxes(lay_out("+", "operator", [part, part]))]
    np.testing.assert_allclose(np.diff(x[1:4]), np.diff(x[4:7]))


def test_bars_of_formulas_that_begin_alike_can_be_distinguishable(model, ax):
    start = " + ".join(f"sin({i}.5*x0)" for i in range(25))
    texts = [f"1.25*{start} + x1", f"1.26*{start} - x1", f"1.27*{start} - cos(x1)", "x0"]
    formulas = model.formulas_.head(1).loc[[0] * 4].assign(formula=texts)
    changed = with_result(model, formulas=formulas)
    plots.plot_formulas(changed, ax=ax)
    labels = [text.get_text() for text in ax.texts if "x" in text.get_text()]
    assert labels[3] == "x0"
    for label, end in zip(labels, (") + x1", ") - x1", ") - cos(x1)"), strict=False):
        assert label.startswith("1.2")
        assert label.endswith(end)
        assert max(map(len, label.split("\n"))) < 100
        assert label.count("\n") <= 1


def test_an_axis_says_how_many_draws_are_shown(ax):
    many = small(draws=300, chains=2).fit(X, NOISY)
    plots.plot_trace(many, ax=ax)
    assert ax.get_xlabel() == "draw, 2 chains side by side, 1 in 2 shown"


def test_columns_whose_long_names_begin_alike_can_be_distinguishable(ax):
    names = [f"temperature of the boundary layer at the {end}" for end in ("top", "bottom")]
    model = small(draws=20, tune=20).fit(pd.DataFrame(X, columns=names), NOISY)
    plots.plot_inclusion(model, ax=ax)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert {label.split()[-1] for label in labels} == {"top", "bottom"}
    assert max(map(len, labels)) < 30
