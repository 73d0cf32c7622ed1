"""How likely a formula is whatever its constants are: its structure against others."""

from __future__ import annotations

import math

import numpy as np

from ..kernels import opcodes
from .constants import Terms, all_constants
from .least_squares import slopes, span
from .model import Fitter, Model


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
    if any((tree["op"] == opcodes.LT).any() for tree in trees):
        constants = _log_integral(fitter.terms(model.state), rows / squares, fitter)
    return float(log_likelihood + constants + problem.log_prior.of_structure(trees))


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
