"""Source code that computes a formula: what it looks like, and what it accepts."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from symbayes import Formula

from .formulas import assert_same_bits

TABLE = np.random.default_rng(3).normal(0.5, 2, (50, 3))
NAMES = ["a", "b c", "d"]


def run(code, name="formula"):
    namespace = {}
    exec(code, namespace)
    return namespace[name]


def test_the_code():
    code = Formula("2*`b c`**3 - sin(a)", NAMES).numpy_code(name="law")
    assert (
        code
        == '''\
import numpy as np


def law(X):
    """Return the value of the formula on each row of X, a table with 3 columns."""
    x = np.array(X, dtype=np.float64, order="F").T  # column by column
    # x[0] is 'a'
    # x[1] is 'b c'

    def cube(v):
        return v * v * v

    with np.errstate(all="ignore"):  # outside its domain the formula is nan
        return 2.0*cube(x[1]) - np.sin(x[0])
'''
    )


@pytest.mark.parametrize(
    "table",
    [TABLE, np.asfortranarray(TABLE), TABLE[::2], TABLE.tolist(), pd.DataFrame(TABLE)],
    ids=["rows", "columns", "strided", "list", "frame"],
)
@pytest.mark.parametrize(
    "text", ["sin(a) + exp(d)*0.1", "log(a)", "a", "3", "sin(2)", "exp(1) + a*log(3)", "1/0"]
)
def test_the_same_to_the_last_bit_without_a_warning(text, table):
    formula = Formula(text, NAMES)
    assert_same_bits(run(formula.numpy_code())(table), formula.predict(np.asarray(table)))


def test_constants_are_in_full():
    assert "0.30000000000000004" in Formula("0.30000000000000004*a", ["a"]).numpy_code()


def test_the_table_is_left_alone():
    table = TABLE.copy(order="F")
    run(Formula("a", NAMES).numpy_code())(table)[:] = 0.0
    np.testing.assert_array_equal(table, TABLE)


def test_empty_tables_and_tables_without_columns():
    function = run(Formula("2*a + sin(1)", NAMES).numpy_code())
    assert function(np.empty((0, 3))).shape == (0,)
    assert_same_bits(run(Formula("3", []).numpy_code())(np.empty((4, 0))), np.full(4, 3.0))


def test_a_file_runs_with_numpy_alone(tmp_path):
    path = tmp_path / "law.py"
    path.write_text(
        Formula("square(λ) - 0.5", ["λ"]).numpy_code() + "\nprint(formula([[3.0]]))\n", "utf-8"
    )
    ran = subprocess.run(
        [sys.executable, "-I", str(path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[8.5]"


@pytest.mark.parametrize("name", ["formula", "np2", "λ", "x", "X", "cube", "float"])
def test_names_of_the_function(name):
    function = run(Formula("a**3", NAMES).numpy_code(name), name)
    np.testing.assert_array_equal(function([[2.0, 0.0, 0.0]]), [8.0])


@pytest.mark.parametrize(
    ("name", "error"),
    [("1a", ValueError), ("", ValueError), ("def", ValueError), ("np", ValueError),
     ("a b", ValueError), ("f(x):\n  pass\n#", ValueError), (3, TypeError), (None, TypeError)],
)  # fmt: skip
def test_names_that_no_function_can_have(name, error):
    with pytest.raises(error, match="name"):
        Formula("a", NAMES).numpy_code(name)
