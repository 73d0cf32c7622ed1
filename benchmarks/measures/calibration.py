"""Whether intervals cover as often as they say, and probable formulas are true as often.

Truths are drawn from the tree prior, coefficients and noise from fixed broad laws. The likelihood
is a target and not a generative model, so exact calibration cannot be expected; this measures how
far off it is.
"""

from __future__ import annotations

import numpy as np

from benchmarks.report import Section, Table
from symbayes import BayesianSymbolicRegressor, NoisePrior
from symbayes.formula.formula import Formula
from symbayes.formula.trees import evaluate_trees

_PROBLEMS = 200
# For a rough look: few problems, and a short warm-up.
_QUICK_PROBLEMS, _QUICK_TUNE = 8, 500
_ROWS, _FEATURES, _NEW_ROWS, _DRAWS = 100, 3, 20, 1000
_LEVELS = (0.5, 0.8, 0.9, 0.95)
_NOISES = (0.05, 0.1, 0.2)
_UNARY, _BINARY = ("sin", "exp", "square"), ("+", "*")
_ALPHA, _BETA = 0.6, 0.8


def measure(quick: bool) -> Section:
    """Fit many problems and count."""
    problems, tune = (_QUICK_PROBLEMS, _QUICK_TUNE) if quick else (_PROBLEMS, None)
    covered = {name: np.zeros(len(_LEVELS)) for name in ("mean", "observation", "noise")}
    reported: list[tuple[float, bool]] = []
    for seed in range(problems):
        rng = np.random.default_rng([7, seed])
        X, X_new, truth, truth_new, noise = _problem(rng)
        y = truth + noise * rng.normal(size=_ROWS)
        y_new = truth_new + noise * rng.normal(size=_NEW_ROWS)
        model = BayesianSymbolicRegressor(
            [*_UNARY, *_BINARY], noise_prior=NoisePrior(1.0, 0.01), tune=tune, random_state=seed
        ).fit(X, y)
        means, noises = model.result_.posterior.mixture.sample(X_new, _DRAWS, rng)
        observed = means + noises[:, None] * rng.normal(size=means.shape)
        for name, draws, value in (
            ("mean", means, truth_new),
            ("observation", observed, y_new),
            ("noise", noises[:, None], np.array([noise])),
        ):
            for i, level in enumerate(_LEVELS):
                low, high = np.nanquantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
                covered[name][i] += np.mean((low <= value) & (value <= high))
        for probability, found in model.result_.posterior.formula_models[:5]:
            terms = evaluate_trees(found.state.trees, np.ascontiguousarray(X.T))
            reported.append((probability, _is_true(terms, truth)))
    return Section(
        "calibration",
        "Calibration",
        [
            Table(
                ["interval for", *(f"{level:.0%}" for level in _LEVELS)],
                [
                    [label, *(f"{c / problems:.1%}" for c in covered[name])]
                    for name, label in (
                        ("mean", "the mean at a new row"),
                        ("observation", "a new observation"),
                        ("noise", "the noise"),
                    )
                ],
                "How often intervals cover the truth.",
            ),
            Table(
                ["reported probability", "formulas", "mean reported", "share true"],
                _reliability(reported),
                "How often a formula reported with a probability is the true one (the first five "
                "of each problem).",
            ),
        ],
        notes=[
            f"{problems} problems of {_ROWS} rows and {_FEATURES} features uniform on [-2, 2]; one "
            "or two terms from the tree prior, contributions between 1 and 3 standard deviations, "
            f"noise {', '.join(f'{n:.0%}' for n in _NOISES)} of the spread. True means: with "
            "refitted coefficients the formula reproduces the noise-free truth to 1e-6 of its "
            "spread, and no term is superfluous. Noise prior (1, 0.01), "
            + (f"tune={tune}, " if tune else "")
            + "all other parameters at their defaults.",
        ],
    )


def _problem(rng):
    """Draw a truth and its tables."""
    X = rng.uniform(-2, 2, (_ROWS, _FEATURES))
    X_new = rng.uniform(-2, 2, (_NEW_ROWS, _FEATURES))
    names = [f"x{i}" for i in range(_FEATURES)]
    both = np.vstack([X, X_new])
    while True:
        terms = []
        for _ in range(rng.integers(1, 3)):
            terms.append(Formula(_draw(rng, 0), names).predict(both))
        values = np.array(terms)
        if not (np.abs(values) < 1e4).all():  # also true for nan
            continue
        spreads = values[:, :_ROWS].std(axis=1)
        if (spreads > 1e-3).all():
            break
    coefficients = rng.uniform(1, 3, len(terms)) * rng.choice([-1, 1], len(terms)) / spreads
    truth = coefficients @ values + rng.normal()
    noise = rng.choice(_NOISES) * truth[:_ROWS].std()
    return X, X_new, truth[:_ROWS], truth[_ROWS:], noise


def _draw(rng, depth: int) -> str:
    """Return a formula from the tree prior, as text."""
    if rng.random() >= _ALPHA * (1 + depth) ** -_BETA:
        return f"x{rng.integers(_FEATURES)}"
    operator = rng.choice([*_UNARY, *_BINARY])
    if operator in _UNARY:
        return f"{operator}({_draw(rng, depth + 1)})"
    return f"(({_draw(rng, depth + 1)}) {operator} ({_draw(rng, depth + 1)}))"


def _is_true(terms: np.ndarray, truth: np.ndarray) -> bool:
    """Return whether the terms of a formula, refitted, give the truth, each of them needed."""
    design = np.column_stack([np.ones(len(truth)), *terms])
    design = design / np.linalg.norm(design, axis=0)
    solution, *_ = np.linalg.lstsq(design, truth, rcond=1e-12)
    exact = np.abs(design @ solution - truth).max() < 1e-6 * truth.std()
    needed = np.abs(solution[1:]) > 1e-6 * np.linalg.norm(truth)
    return bool(exact and needed.all())


def _reliability(reported: list[tuple[float, bool]]) -> list[list]:
    rows = []
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        inside = [(p, t) for p, t in reported if low < p <= low + 0.2]
        label = f"{low:.1f} to {low + 0.2:.1f}"
        if inside:
            shares = np.mean(inside, axis=0)
            rows.append([label, len(inside), f"{shares[0]:.2f}", f"{shares[1]:.2f}"])
        else:
            rows.append([label, 0, None, None])
    return rows
