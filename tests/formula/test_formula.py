"""The formula a user holds in hand."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sympy

from symbayes import Formula
from symbayes.formula.parser import FormulaSyntaxError, parse

X = np.array([[1.0, 5.0], [2.0, 7.0], [-1.0, 0.5]])


def test_predict_by_position():
    formula = Formula("8*x0**2 - x1", ["x0", "x1"])
    np.testing.assert_array_equal(formula.predict(X), [3.0, 25.0, 7.5])
    np.testing.assert_array_equal(formula.predict(X.tolist()), [3.0, 25.0, 7.5])
    np.testing.assert_array_equal(formula.predict(X.astype(np.float32)), [3.0, 25.0, 7.5])


def test_predict_does_not_hand_out_the_table():
    table = X.copy()
    result = Formula("x0", ["x0", "x1"]).predict(table)
    result[:] = 0.0
    np.testing.assert_array_equal(table, X)


def test_a_data_frame_is_read_by_names():
    formula = Formula("a - 2*`b c`", ["a", "b c"])
    expected = X[:, 0] - 2 * X[:, 1]
    frame = pd.DataFrame({"b c": X[:, 1], "other": "text", "a": X[:, 0]})
    np.testing.assert_array_equal(formula.predict(frame), expected)
    with pytest.raises(ValueError, match=r"X lacks the columns 'a' of the formula a - 2\*`b c`"):
        formula.predict(frame.drop(columns="a"))
    twice = pd.DataFrame(np.zeros((2, 3)), columns=["a", "a", "b c"])
    with pytest.raises(ValueError, match="more than one column named 'a'"):
        formula.predict(twice)


def test_columns_that_do_not_occur_may_be_missing():
    formula = Formula("2*b", ["a", "b"])
    np.testing.assert_array_equal(formula.predict(pd.DataFrame({"b": [1, 2]})), [2.0, 4.0])


def test_a_data_frame_without_names_is_read_by_position():
    formula = Formula("x0 - x1", ["x0", "x1"])
    np.testing.assert_array_equal(formula.predict(pd.DataFrame(X)), X[:, 0] - X[:, 1])


@pytest.mark.parametrize("shape", [(2,), (3, 1), (3, 3), (2, 2, 2), ()])
def test_wrong_shapes(shape):
    with pytest.raises(ValueError, match="needs a table of 2 columns: x0, x1"):
        Formula("x0", ["x0", "x1"]).predict(np.zeros(shape))


def test_outside_the_domain_is_nan_without_a_warning():
    values = Formula("log(x0) + 1/x1", ["x0", "x1"]).predict([[-1.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert np.isnan(values[0])
    assert values[1] == np.inf
    assert values[2] == 1.0


def test_a_constant_formula():
    formula = Formula("2.5", ["x0", "x1"])
    np.testing.assert_array_equal(formula.predict(X), [2.5] * 3)
    assert formula.features == []
    assert formula.n_nodes == formula.depth == 1
    assert formula.predict(np.empty((0, 2))).shape == (0,)
    assert formula.text() == formula.latex() == "2.5"
    assert formula.sympy() == sympy.Float(2.5)
    assert formula.mathml().endswith("<mn>2.5</mn></math>")
    assert Formula("3", []).predict(np.empty((2, 0))).tolist() == [3.0, 3.0]
    assert Formula("3", []).is_equivalent(Formula("1 + 2", ["x0"]))


def test_text_latex_sympy():
    formula = Formula("1.23456789*sin(x0)/x1", ["x0", "x1"])
    assert str(formula) == "1.23457*sin(x0)/x1"
    assert formula.text(digits=3) == "1.23*sin(x0)/x1"
    assert formula.latex(digits=3) == r"\frac{1.23 \sin\left(x_{0}\right)}{x_{1}}"
    assert formula._repr_latex_() == f"${formula.latex()}$"
    symbols = [sympy.Symbol(name) for name in formula.feature_names]
    assert formula.sympy().free_symbols == set(symbols)
    function = sympy.lambdify(symbols, formula.sympy(), "numpy")
    np.testing.assert_allclose(function(*X.T), formula.predict(X), rtol=1e-14)


def test_measures():
    formula = Formula("2*sin(x0) + x2", ["x0", "x1", "x2"])
    assert formula.n_nodes == 6
    assert formula.depth == 4
    assert formula.features == ["x0", "x2"]
    assert Formula("x1", ["x0", "x1"]).depth == 1


def test_the_empty_name():
    formula = Formula("2*``", [""])
    assert str(formula) == "2*``"
    assert Formula(str(formula), [""]) == formula
    assert formula.latex() == r"2 \cdot \mathrm{\sqcup}"
    assert "<mi>\u2423</mi>" in formula.mathml()
    assert formula.sympy().free_symbols == {sympy.Symbol("")}


def test_names_from_arrays_and_tables():
    for names in (np.array(["a", "b c"]), pd.Index(["a", "b c"]), (name for name in ["a", "b c"])):
        formula = Formula("a + `b c`", names)
        assert formula.feature_names == ("a", "b c")
        assert repr(formula) == "Formula('a + `b c`', ['a', 'b c'])"


def test_repr_gives_the_formula_back():
    formula = Formula("2*`a b` - 1", ["a b", "c"])
    assert eval(repr(formula)) == formula
    assert formula.feature_names == ("a b", "c")
    assert formula.features == ["a b"]


def test_equality_hash_and_pickle(tmp_path):
    formula = Formula("x0 + 1", ["x0"])
    assert formula == Formula("x0+1", ["x0"])
    assert hash(formula) == hash(Formula("x0+1", ["x0"]))
    assert formula != Formula("x0 + 2", ["x0"])
    assert formula != Formula("x0 + 1", ["x0", "x1"])
    assert formula != "x0 + 1"
    assert len({formula, Formula("x0 + 1", ["x0"]), Formula("1 + x0", ["x0"])}) == 2
    assert pickle.loads(pickle.dumps(formula)) == formula
    joblib.dump(formula, tmp_path / "formula.joblib")
    assert joblib.load(tmp_path / "formula.joblib") == formula
    assert copy.deepcopy(formula) == formula


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (("x0 +", ["x0"]), FormulaSyntaxError, "position 4"),
        ((5, ["x0"]), TypeError, "text must be a str, not int"),
        (("x", "x"), TypeError, "feature_names must be a list of str"),
        (("x0", [0]), TypeError, "feature_names must be a list of str"),
        (("x0", None), TypeError, "feature_names must be a list of str"),
        (("a", ["a", "b", "a"]), ValueError, "feature_names has 'a' more than once"),
    ],
)
def test_errors(arguments, error, says):
    with pytest.raises(error, match=says):
        Formula(*arguments)


@pytest.mark.parametrize("method", ["text", "latex", "mathml"])
@pytest.mark.parametrize(
    ("digits", "error", "says"),
    [
        (0, ValueError, "digits is 0; it must be at least 1"),
        (2.5, TypeError, "digits must be an integer, not float"),
        (True, TypeError, "digits must be an integer, not bool"),
        ("6", TypeError, "digits must be an integer, not str"),
    ],
)
def test_wrong_digits(method, digits, error, says):
    with pytest.raises(error, match=says):
        getattr(Formula("x0", ["x0"]), method)(digits=digits)


@pytest.mark.parametrize("method", ["text", "latex", "mathml"])
def test_digits_may_be_numpy_integers(method):
    assert "1.23" in getattr(Formula("1.23456*x0", ["x0"]), method)(digits=np.int64(3))


def test_a_simpler_form_keeps_the_digits_of_a_fit():
    expression = parse("2.997123*x0/x0**2 + 0.0027123", ["x0"])
    fitted = Formula._from_expression(expression, ["x0"], [4, 2])
    assert str(fitted) == "2.997*x0/x0**2 + 0.0027"
    assert str(fitted.simplify()) in ("2.997/x0 + 0.0027", "0.0027 + 2.997/x0")
    # An exponent is no measurement.
    root = Formula._from_expression(parse("1.2345*sqrt(exp(x0/3))", ["x0"]), ["x0"], [2, 1])
    assert "0.166667" in str(root.simplify())
