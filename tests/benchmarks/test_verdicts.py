"""The two verdicts on cases whose answer is known."""

import time

import numpy as np
import pytest
import sympy
from benchmarks.quality import srbench
from benchmarks.quality.identity import Decider
from benchmarks.quality.verdicts import Truth, wider

POSITIVE, BOTH = (1.0, 5.0), (-3.0, 3.0)


@pytest.fixture(scope="module")
def decider():
    with Decider() as process:
        yield process


def truth(text, n_columns, limits=POSITIVE):
    X = np.random.default_rng(0).uniform(*limits, (200, n_columns))
    return Truth(text, [limits] * n_columns, X)


PRODUCT = truth("x0*x1", 2)
SQUARE = truth("(x0 + x1)**2", 2, BOTH)
ROOT = truth("sqrt(8*pi*x0/3 + x1*x2**2)", 3)
SINE = truth("1.35*x0*x1 + 5.5*sin((x0 - 1)*(x1 - 1))", 2, BOTH)
KINETIC = truth("1/2*x0*(x1**2 + x2**2 + x3**2)", 4)
DIFFRACTION = truth("x0*sin(x1*x2/2)**2/sin(x1/2)**2", 3)
LENGTH = truth("sqrt(x0**2 + x1**2)", 2)
POWER = truth("2.7*x0**x1", 2, (0.0, 1.0))

#: Truth, formula found, right structure, SRBench's verdict.
CASES = {
    "itself": (PRODUCT, "x0*x1", True, True),
    "rounding errors": (PRODUCT, "0.9999999999*x1*x0 + 1e-13", True, True),
    "estimated constants": (PRODUCT, "1.002*x0*x1 - 0.03", True, False),
    "constant factor": (PRODUCT, "2*x0*x1", True, True),
    "constant offset": (PRODUCT, "x0*x1 + 3", True, True),
    "constant that rounds to nothing": (PRODUCT, "x0*x1 + 0.0002*x1", False, True),
    "superset": (PRODUCT, "x0*x1 + 0.03*sin(x0)", False, False),
    "bloated superset": (KINETIC, "0.5*x0*(x1**2+x2**2+x3**2) + 1e-9*exp(x1)*cos(x2*x3) "
                                  "+ 1e-9*sin(x1)*x2**3", False, True),
    "near miss": (PRODUCT, "x0*x1 + 0.01*x0**2", False, False),
    "near miss of one factor": (PRODUCT, "x0*sqrt(x1**2 + 0.01)", False, False),
    "wrong sign of a factor": (PRODUCT, "0*x0 - x1", False, False),
    "expanded": (SQUARE, "x0**2 + 2*x0*x1 + x1**2", False, True),
    "factors inside": (SQUARE, "(1.01*x0 + 0.99*x1)**2", True, False),
    "constants moved": (ROOT, "2.8944050182*sqrt(x0 + 0.1193662073*x1*square(x2))", True, True),
    "constants moved, rounded": (ROOT, "2.894*sqrt(x0 + 0.119*x1*x2**2)", True, True),
    "constants moved, wrong": (ROOT, "2.894*sqrt(x0 + 0.121*x1*x2**2)", True, False),
    "multiplied out inside": (SINE, "1.35*x0*x1 - 5.5*sin(x0 + x1 - x0*x1 - 1)", True, True),
    "constants inside": (SINE, "1.3*x0*x1 + 5.4*sin((x0 - 1.02)*(x1 - 0.99)) + 0.1", True, False),
    "sum of terms": (KINETIC, "0.5*x0*x1**2 + 0.5*x2*x2*x0 + 0.5*square(x3)*x0", True, True),
    "sum of terms, estimated": (KINETIC, "0.51*x0*x1^2 + 0.502*x2*x2*x0 + 0.499*x3^2*x0 - 0.1",
                                True, False),
    "constants that share their work": (LENGTH, "1.2*sqrt(0.7*x0**2 + 0.69*x1**2)", True, False),
    "half angles": (DIFFRACTION, "x0*(1 - cos(x1*x2))/(1 - cos(x1))", True, True),
    "power as exp and log": (POWER, "2.7*exp(x1*log(x0))", True, True),
    "power, estimated": (POWER, "2.69*exp(1.01*x1*log(x0)) + 0.01", True, False),
    "unreadable": (PRODUCT, "x0*x1 + nan", False, False),
    "not finite": (PRODUCT, "x0*x1 + log(x0 - 2)", False, False),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_verdicts(name, decider):
    true, text, right, srbench_verdict = CASES[name]
    structure = true.structure(text)
    assert structure.right == right, structure
    assert true.srbench(text, decider)[0] == srbench_verdict


def test_the_truth_itself_is_told_from_families_that_hold_it():
    assert KINETIC.structure("0.49*x0*(x1**2 + x2**2 + x3**2) + 0.3").itself
    with_term = KINETIC.structure("0.5*x0*(x1**2 + x2**2 + x3**2) + 0.01*x1")
    assert with_term.right
    assert not with_term.itself
    assert not KINETIC.structure("0.5*x0*x1**2 + 0.5*x0*x2**2 + 0.5*x0*x3**2").itself
    growth = truth("1.5*exp(2*x0) + 1", 1)
    assert growth.structure("1.4*exp(2*x0)").itself
    assert growth.structure("1.4*exp(3*x0)").right
    assert not growth.structure("1.4*exp(3*x0)").itself


def test_a_slow_question_is_cut_off():
    x = sympy.Symbol("x", real=True)
    with Decider(seconds=0.2) as decider:
        assert decider.is_constant(x - x + 2)
        started = time.monotonic()
        # Expanding this would take all memory before it took all time.
        assert decider.is_constant((x + sympy.sin(x) + 1) ** 3000) is None
        assert time.monotonic() - started < 5
        # A new process takes over.
        assert decider.is_constant(sympy.sin(x) ** 2 + sympy.cos(x) ** 2) in (True, None)


class Undecided:
    """SymPy that never comes to an end."""

    def is_constant(self, expression):
        return None


def test_numbers_decide_where_sympy_does_not():
    assert PRODUCT.srbench("2*x1*x0", Undecided()) == (True, "numeric")
    assert PRODUCT.srbench("x1*x0 + 0.01*x0", Undecided()) == (False, "")


def test_rounding_leaves_exponents_alone():
    x = sympy.Symbol("x", positive=True)
    expression = sympy.Float(1.23456) * x**2 + sympy.sqrt(x) * sympy.Float(0.0001) + 3
    assert srbench.rounded(expression) == sympy.Rational(1235, 1000) * x**2 + 3


def test_a_wider_range_is_twice_as_wide_and_stays_positive():
    assert wider(-3, 3) == (-6, 6)
    assert wider(1, 5) == (0, 8)
    assert wider(10, 12) == (9, 13)
