"""sin, cos, exp, log over rows against NumPy: 4 ulp, over the whole double range."""

from __future__ import annotations

import math

import numpy as np
import pytest

from symbayes.kernels import opcodes
from symbayes.kernels.evaluate import BLOCK
from symbayes.kernels.tree import NODE
from symbayes.kernels.units import load_evaluate

FUNCTIONS = {
    "sin": (opcodes.SIN, np.sin),
    "cos": (opcodes.COS, np.cos),
    "exp": (opcodes.EXP, np.exp),
    "log": (opcodes.LOG, np.log),
}
SMALLEST_NORMAL = np.finfo(float).tiny


def apply(opcode, x):
    """Value of op(x) by the compiled evaluation."""
    x = np.ascontiguousarray(x, dtype=float)
    nodes = np.zeros(2, NODE)
    nodes["op"] = [opcode, opcodes.FEATURE]
    out = np.empty_like(x)
    n = len(x)
    load_evaluate()(nodes, 0, x, n, 0, n, out, 0, np.empty(6 * BLOCK), np.empty(8, np.int64))
    return out


def whole_range(n, seed):
    """Doubles of every exponent and sign, drawn by their bits."""
    bits = np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)
    x = bits.view(np.float64)
    return x[np.isfinite(x)]


def arguments(name, n):
    """Where the function is hard: its own range, neighbours of its zeros and limits."""
    rng = np.random.default_rng([n, len(name)])
    parts = [whole_range(n, 1), rng.uniform(-10, 10, n), rng.normal(0, 1e-3, n)]
    parts += [10.0 ** rng.uniform(-300, 300, n) * rng.choice([-1, 1], n)]
    if name in ("sin", "cos"):
        k = np.concatenate([np.arange(-2000, 2000), rng.integers(-650_000, 650_000, n)])
        near = k * (math.pi / 2)
        parts += [near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)]
        parts += [rng.uniform(-1.1e6, 1.1e6, n), rng.uniform(9.9e5, 1.01e6, n)]
    if name == "exp":
        parts += [rng.uniform(-745, 710, n), rng.uniform(-709, -707, n), rng.uniform(707, 710, n)]
        parts += [np.arange(-745, 710) * math.log(2)]
    if name == "log":
        parts += [1 + rng.normal(0, 1e-6, n), rng.uniform(0.5, 2, n), 2.0 ** np.arange(-1074, 1024)]
        parts += [np.sqrt(0.5) * (1 + rng.normal(0, 1e-10, n)), rng.uniform(0, 1e-307, n)]
    return np.concatenate(parts)


def check(name, n):
    opcode, reference = FUNCTIONS[name]
    x = arguments(name, n)
    got = apply(opcode, x)
    with np.errstate(all="ignore"):
        expected = reference(x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    infinite = np.isinf(expected)
    np.testing.assert_array_equal(got[infinite], expected[infinite])
    assert not np.isinf(got[~infinite]).any()
    normal = np.isfinite(expected) & (np.abs(expected) >= SMALLEST_NORMAL)
    error = np.abs(got[normal] - expected[normal]) / np.spacing(np.abs(expected[normal]))
    worst = int(np.argmax(error))
    assert error[worst] <= 4, (x[normal][worst], got[normal][worst], expected[normal][worst])
    small = np.isfinite(expected) & ~normal
    assert np.all(np.abs(got[small]) < 2 * SMALLEST_NORMAL)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_numpy(name):
    check(name, 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_numpy_on_millions(name):
    check(name, 3_000_000)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name):
    opcode, reference = FUNCTIONS[name]
    tiny = SMALLEST_NORMAL
    x = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, tiny, -tiny, 5e-324, -5e-324, 1e308, -1e308,
         708.0, 709.782712893384, 709.7827128933841, -708.0, -708.4, -745.2, 1e6, -1e6, 1.0000001e6]
    )  # fmt: skip
    with np.errstate(all="ignore"):
        expected = reference(x)
    got = apply(opcode, x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_allclose(got, expected, rtol=1e-15, atol=5e-324)
