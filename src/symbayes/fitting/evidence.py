"""How likely a formula is whatever its constants are: its structure against others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from ..formula.trees import writings
from ..kernels import opcodes
from .constants import Terms, all_constants
from .least_squares import slopes, span
from .model import Fitter, Model, State

# Integrals that are worked out for a formula, those of the best draws first.
_MOST_INTEGRALS = 12
# Constants that are further than this from an optimum, in standard deviations, may be at another
# one. Optima that are nearer to each other are the same.
_ELSEWHERE, _SAME_OPTIMUM = 6.0, 2.0


def log_evidence_of_writings(
    fitter: Fitter,
    model: Model,
    states: Iterable[State] = (),
    stop: Callable[[], bool] = lambda: False,
) -> float:
    """Return the log evidence of a formula in all the ways in which it was drawn.

    `states` are those that are this formula, and `model` is how it is shown: in the only way that
    counts if there are no states. Terms in another order, and operands that have changed places,
    are counted without having been drawn; optima of the constants are those near which there are
    draws.
    """
    n_known = len(fitter.problem.known)
    found: dict[tuple[str, ...], tuple[float, list[State]]] = {}
    for state in sorted(states or [model.state], key=lambda one: -one.log_likelihood):
        key, log_ways = writings(state.trees[n_known:])
        found.setdefault(key, (log_ways, []))[1].append(state)
    parts: list[float] = []
    n_integrals = 0
    for log_ways, alike in found.values():
        best = alike[0].trees[n_known:]
        if not _has_constants(best):
            parts.append(log_evidence(fitter, replace(model, state=alike[0])) + log_ways)
            continue
        # Of the same nodes in the same order, so that their constants can be compared.
        left = [one for one in alike if _same_nodes(one.trees[n_known:], best)]
        optima: list[Optimum] = []
        while left and not (parts and (n_integrals == _MOST_INTEGRALS or stop())):
            n_integrals += 1
            fit = fitter.fit(left[0])
            if fit is None:
                left = left[1:]
                continue
            evidence, optimum = _log_evidence(fitter, fit)
            if not any(one.distance(optimum.values) < _SAME_OPTIMUM for one in optima):
                optima.append(optimum)
                parts.append(evidence + log_ways)
            left = [
                one
                for one in left[1:]
                if optimum.distance(_constants(one.trees[n_known:])) > _ELSEWHERE
            ]
    return float(logsumexp(parts)) if parts else -math.inf


@dataclass(frozen=True)
class Optimum:
    """The best constants of a structure, nearly, and their standard deviations."""

    values: np.ndarray
    spread: np.ndarray

    def distance(self, values: np.ndarray) -> float:
        """Return how far away others are: the most of any constant, in standard deviations."""
        return float(np.max(np.abs(values - self.values) / self.spread, initial=0.0))


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
    return _log_evidence(fitter, model)[0]


def most_log_evidence(fitter: Fitter, model: Model) -> float:
    """Return about the most that the log evidence of a formula with its best constants can be.

    It is that without the integral over the constants, which takes longer and makes it less.
    """
    log_ways = writings(model.state.trees[len(fitter.problem.known) :])[1]
    return _log_evidence(fitter, model, integrate=False)[0] + log_ways


def _log_evidence(fitter: Fitter, model: Model, integrate: bool = True) -> tuple[float, Optimum]:
    """Return the log evidence of a formula, and the optimum of the constants that it is around."""
    problem, optimum = fitter.problem, Optimum(np.zeros(0), np.ones(0))
    n, (nu, lam) = problem.data.n, problem.data.noise_prior.tolist()
    trees = model.state.trees[len(problem.known) :]
    rows = n - 1.0 + nu
    squares = nu * lam + n * model.mse
    if not squares > 0.0:
        return math.inf, optimum
    log_likelihood = -0.5 * len(model.state.trees) * math.log1p(n) - 0.5 * rows * math.log(squares)
    constants = 0.0
    if integrate and _has_constants(trees):
        constants, optimum = _log_integral(fitter.terms(model.state), rows / squares, fitter)
    return float(log_likelihood + constants + problem.log_prior.of_structure(trees)), optimum


def _has_constants(trees: Iterable[np.ndarray]) -> bool:
    return any((tree["op"] == opcodes.LT).any() for tree in trees)


def _constants(trees: Iterable[np.ndarray]) -> np.ndarray:
    """Return the constants of all `lt`, in their order."""
    nodes = np.concatenate([tree[tree["op"] == opcodes.LT] for tree in trees])
    return np.column_stack([nodes["a"], nodes["b"]]).reshape(-1)


def _same_nodes(some: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> bool:
    """Return whether trees differ in nothing but their constants."""
    return all(
        np.array_equal(one[name], other[name])
        for one, other in zip(some, others, strict=True)
        for name in ("op", "feature")
    )


def _log_integral(terms: Terms, precision: float, fitter: Fitter) -> tuple[float, Optimum]:
    """Return the log of the integral of prior times likelihood over the constants of all `lt`.

    It is in units of the likelihood at the constants as they are; `precision` is that of the noise.
    Return the optimum that it is around as well.
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
            return -math.inf, Optimum(values, np.ones(len(values)))
        inverse = np.linalg.inv(hessian)
        gain = 0.5 * float(slope @ inverse @ slope)
        total += float(np.diag(inverse) * curvature @ lost)
    most = 0.5 * len(values) * math.log1p(terms.n)
    total += min(gain, most) + 0.5 * len(values) * math.log(2.0 * math.pi) - 0.5 * log_volume
    return total, Optimum(values + inverse @ slope, np.sqrt(np.diag(inverse)))
