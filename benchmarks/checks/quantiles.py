"""Quantiles of random mixtures, including nasty ones, against a slow distribution function.

    python -m benchmarks.checks.quantiles --mixtures 10000

A quantile is right where the distribution function passes p: just below it is at most p, just above
at least p. The distribution function is summed up component by component with mpmath.
"""

from __future__ import annotations

import argparse
import math

import mpmath
import numpy as np

from symbayes.posterior.prediction import mixture_quantile

LEVELS = (0.001, 0.05, 0.25, 0.5, 0.84, 0.95)
# How far the distribution function may be from p.
TOLERANCE = 1.0e-8
_TOGETHER, _MOST_PARTS = 100, 12
# No normal variable is this many standard deviations from its mean.
_FAR = 1.0e3


def mixtures(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Return weights, means and scales of mixtures, one per column, and degrees of freedom."""
    shape = (int(rng.integers(1, _MOST_PARTS + 1)), _TOGETHER)
    weights = rng.dirichlet(np.full(shape[0], 10 ** rng.uniform(-1, 1)), size=_TOGETHER).T
    means = rng.normal(size=shape) * 10.0 ** rng.integers(-4, 5, _TOGETHER)
    scales = 10.0 ** rng.uniform(-3, 3, shape)
    df = np.full(shape[0], np.inf) if rng.random() < 0.3 else 10 ** rng.uniform(0, 4, shape[0])

    def nasty(values: np.ndarray, share: float, choices: list[float]) -> np.ndarray:
        """Return the values, in half of the columns some of them replaced."""
        chosen = (rng.random(shape) < share) & (rng.random(_TOGETHER) < 0.5)
        return np.where(chosen, rng.choice(choices, shape), values)

    far = [1e3, -1e12, 1e29, -1e29, 1e80, -1e218, 1e300, -1e300, 1.7e308, -1.7e308]
    weights = nasty(weights, 0.3, [0.0, 0.0, 1e-3, 1e-12, 1e-300])
    means = nasty(nasty(means, 0.2, far), 0.2, [np.nan, np.inf, -np.inf])
    scales = nasty(scales, 0.3, [0.0, 0.0, 1e-300, 5e-324, 1e100, 1e300, 1.7e308, np.nan, np.inf])
    # Some formulas agree to the last bit.
    means[:, rng.random(_TOGETHER) < 0.05] = 1.5
    return weights, means, scales, df


def is_right(p: float, x: float, parts: list[tuple[float, float, float, float]]) -> bool:
    """Return whether x is the p-quantile of a mixture, given as weight, mean, scale and df each."""
    parts = [part for part in parts if part[0] > 0 and all(map(math.isfinite, part[1:3]))]
    if not parts:
        return math.isnan(x)
    if not math.isfinite(x):
        return False
    total = mpmath.fsum(weight for weight, *_ in parts)
    below, above = (
        mpmath.fsum(w * _below(end, m, s, df) for w, m, s, df in parts) / total
        for end in (math.nextafter(x, -math.inf), math.nextafter(x, math.inf))
    )
    return bool(below <= p + TOLERANCE and above >= p - TOLERANCE)


def _below(x: float, mean: float, scale: float, df: float) -> mpmath.mpf:
    """Return the probability of a value of at most x."""
    if scale == 0:
        return mpmath.mpf(x >= mean)
    z = (mpmath.mpf(x) - mpmath.mpf(mean)) / mpmath.mpf(scale)
    if math.isinf(df):
        return mpmath.ncdf(z) if abs(z) < _FAR else mpmath.mpf(z > 0)
    if z * z < df:
        return 0.5 + mpmath.sign(z) * _beta(0.5, df / 2, z * z / (df + z * z)) / 2
    tail = _beta(df / 2, 0.5, df / (df + z * z)) / 2
    return 1 - tail if z > 0 else tail


def _beta(a: float, b: float, x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.betainc(a, b, 0, x, regularized=True)


def main(arguments: list[str] | None = None) -> int:
    """Run the sweep; return 1 if a quantile is wrong."""
    parser = argparse.ArgumentParser(description="Quantiles of mixtures against a slow reference.")
    parser.add_argument("--mixtures", type=int, default=10_000, help="how many (default: 10000)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(options.seed)
    n = wrong = 0
    for done in range(0, options.mixtures, _TOGETHER):
        weights, means, scales, df = mixtures(rng)
        found = [mixture_quantile(p, weights, means, scales, df) for p in LEVELS]
        for i in range(min(_TOGETHER, options.mixtures - done)):
            columns = (column[:, i].tolist() for column in (weights, means, scales))
            parts = list(zip(*columns, df.tolist(), strict=True))
            for p, values in zip(LEVELS, found, strict=True):
                n += 1
                if not is_right(p, float(values[i]), parts):
                    wrong += 1
                    print(f"p = {p}: {values[i]} of {parts}")
    print(f"{wrong} of {n} quantiles of {options.mixtures} mixtures are wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
