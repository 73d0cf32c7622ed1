"""How likely a formula is whatever its constants are: its structure against others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from scipy.special import logsumexp

from ..formula.trees import writings
from ..kernels import opcodes
from .constants import Terms, all_constants
from .least_squares import slopes, span
from .model import Fitter, Model, State

# Writings with constants of which the integral is worked out, those that were drawn most first.
_MOST_INTEGRALS = 8


def log_evidence_of_writings(
    fitter: Fitter,
    model: Model,
    states: Iterable[State] = (),
    stop: Callable[[], bool] = lambda: False,
) -> float:
    """Return the log evidence of a formula in all the ways in which it was drawn.

    `states` are those that are this formula, most probable first, and `model` is how it is shown:
    in the only way that counts if there are no states. Terms in another order, and operands that
    have changed places, are counted without having been drawn.
    """
    n_known = len(fitter.problem.known)
    best: dict[tuple[str, ...], tuple[State, float]] = {}
    for state in states or [model.state]:
        key, log_ways = writings(state.trees[n_known:])
        if key not in best or state.log_likelihood > best[key][0].log_likelihood:
            best[key] = state, log_ways
    parts: list[float] = []
    n_integrals = 0
    for state, log_ways in best.values():
        fit: Model | None = replace(model, state=state)
        if _has_constants(state.trees[n_known:]):
            if parts and (n_integrals == _MOST_INTEGRALS or stop()):
                continue
            n_integrals += 1
            fit = fitter.fit(state)
        if fit is not None:
            parts.append(log_evidence(fitter, fit) + log_ways)
    return float(logsumexp(parts)) if parts else -math.inf


def log_evidence(fitter: Fitter, model: Model) -> float:
    """Return log p(y, structure) of a formula, up to a constant that all formulas have in common.

    It is the sum of

    * the collapsed log-likelihood (`docs/theory.md`), in which coefficients, intercept and noise
      are integrated out: ``-K/2 log(1 + n) - (n - 1 + nu)/2 log(nu lam + RSS)``,
    * what the integral over the constants of all `lt` adds to that, by Laplace's method: their
      joint prior, with the two variances integrated out, at the constants of the model, and the
      volume under the normal density whose curvature is that of likelihood and prior there. Where
      the slope is not zero, as at a constant that was set to 0 or 1, the top of that density is
      taken instead of the value, but no more than half the log of the rows per constant,
    * the log prior of the trees without their constants, and of their number, as the search ranks
      states: weights of operators at their prior means, those of columns integrated out.

    The structure is that of the model's own trees. Formulas that only differ in how they are
    written are one formula in the draws, and have an evidence each here.
    """
    problem = fitter.problem
    n, (nu, lam) = problem.data.n, problem.data.noise_prior.tolist()
    trees = model.state.trees[len(problem.known) :]
    rows = n - 1.0 + nu
    squares = nu * lam + n * model.mse
    if not squares > 0.0:
        return math.inf
    log_likelihood = -0.5 * len(model.state.trees) * math.log1p(n) - 0.5 * rows * math.log(squares)
    constants = 0.0
    if _has_constants(trees):
        constants = _log_integral(fitter.terms(model.state), rows / squares, fitter)
    return float(log_likelihood + constants + problem.log_prior.of_structure(trees))


def _has_constants(trees: Iterable[np.ndarray]) -> bool:
    return any((tree["op"] == opcodes.LT).any() for tree in trees)


def _log_integral(terms: Terms, precision: float, fitter: Fitter) -> float:
    """Return the log of the integral of prior times likelihood over the constants of all `lt`.

    It is in units of the likelihood at the constants as they are; `precision` is that of the noise.
    """
    tree = fitter.problem.tree_prior
    places = all_constants(terms.trees)
    values = terms.get(places)
    names = np.array([name for _, _, name in places])
    total = 0.0
    slope, curvature, lost = (np.zeros(len(values)) for _ in range(3))
    for name, centre, shape, scale in (
        ("a", 1.0, tree.slope_shape, tree.slope_scale),
        ("b", 0.0, tree.offset_shape, tree.offset_scale),
    ):
        own = names == name
        away, unit = values[own] - centre, shape * scale
        power, reach = 0.5 * (shape + len(away)), unit + float(away @ away)
        # All slopes have one variance, and all offsets another: Student's t of many dimensions.
        total += math.lgamma(power) - math.lgamma(0.5 * shape)
        total -= 0.5 * len(away) * math.log(math.pi * unit) + power * math.log(reach / unit)
        # The curvature of the normal density that has the variance expected at these constants.
        curvature[own] = 2.0 * power / reach
        slope[own] = -curvature[own] * away
        # What that density lacks of the volume of a Student's t, per constant that only the prior
        # knows.
        short = math.lgamma(0.5 * shape) - math.lgamma(power) + 0.5 * len(away) * math.log(power)
        lost[own] = short / len(away)

    def residual(constants: np.ndarray) -> np.ndarray:
        terms.set(places, constants)
        return terms.residual()

    base = residual(values)
    with np.errstate(all="ignore"):
        jacobian = slopes(residual, values, base, 1.0)
        terms.set(places, values)
        # What the coefficients take up is not left to the constants (Kaufman, 1975).
        basis = span(terms.values(), terms.root)
        jacobian -= basis @ (basis.T @ jacobian)
        precision *= terms.multiplicity
        slope -= precision * (jacobian.T @ base)
        hessian = precision * (jacobian.T @ jacobian) + np.diag(curvature)
        sign, log_volume = np.linalg.slogdet(hessian)
        if sign <= 0 or not np.isfinite(hessian).all():
            return -math.inf
        inverse = np.linalg.inv(hessian)
        gain = 0.5 * float(slope @ inverse @ slope)
        total += float(np.diag(inverse) * curvature @ lost)
    most = 0.5 * len(values) * math.log1p(terms.n)
    return total + min(gain, most) + 0.5 * len(values) * math.log(2.0 * math.pi) - 0.5 * log_volume
