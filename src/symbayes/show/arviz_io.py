"""A fitted model in ArviZ's schema."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from typing import Any

import numpy as np
from scipy.stats import norm

from ..inputs.parameters import generator
from ..inputs.prior import require_count
from ..posterior.posterior import Posterior, columns_of, state_key, systematic
from ..posterior.prediction import Mixture
from ..posterior.table import fitted_formula
from ..result import Result
from ..version import __version__

# What ArviZ 0.x says of ArviZ 1.x whenever it is imported; to_arviz is ready for both.
_OF_ITS_FUTURE = r"\s*ArviZ is undergoing a major refactor"

_DRAW = ("chain", "draw")
# Smaller than the column of the same name in `formulas_`.
_SIZE = "nodes of all trees as sampled, without coefficients, intercept and the signs between them"

#: Dimensions, values and, where the name does not say it, what they are.
Variable = tuple


def to_arviz(result: Result, max_rows: int, random_state: Any) -> Any:
    """Return the draws in ArviZ's schema; the estimator's method says what the groups contain."""
    require_count("to_arviz", "max_rows", max_rows)
    rng = generator(random_state)
    arviz = _import_arviz()
    mixture = result.posterior.mixture
    chains, picks, how = _align(result.posterior)
    rows = result.rows.sample(int(max_rows))
    means, noise = mixture.sample_from(picks.ravel(), rows.X[:, result.used], rng)
    means, noise = means.reshape(*picks.shape, -1), noise.reshape(picks.shape)
    by_row = (*_DRAW, "row")
    groups = {
        "posterior": {
            **_quantities(result, picks),
            "noise": (_DRAW, noise, {"description": "standard deviation, in units of y"}),
        },
        "sample_stats": {"log_likelihood_of_trees": _log_likelihood_of_trees(mixture, picks)},
        "log_likelihood": {
            "y": (
                by_row,
                rows.weights * norm.logpdf(rows.y, means, noise[..., None]),
                {"description": "log p(y | trees, coefficients, noise), times the row weight"},
            )
        },
        "posterior_predictive": {
            "y": (by_row, means + noise[..., None] * rng.normal(size=means.shape))
        },
        "observed_data": {"y": (("row",), rows.y)},
        "constant_data": {"X": (("row", "column"), rows.X), "weight": (("row",), rows.weights)},
        "trees": _trees(result, picks),
    }
    coords = {
        "chain": chains,
        "draw": np.arange(picks.shape[1]),
        "row": rows.row_numbers,
        "column": np.array(result.names, dtype=object),
    }
    attrs = {
        "created_at": datetime.now(UTC).isoformat(),
        "inference_library": "symbayes",
        "inference_library_version": __version__,
        "sampling_time": float(result.diagnostics["seconds"]),
        "draws": how,
        "chain_weights": result.posterior.chain_weights[chains].tolist(),
    }
    return _contain(arviz, groups, coords, attrs)


def _import_arviz() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", _OF_ITS_FUTURE, FutureWarning)
            import arviz
    except ImportError as error:
        raise ImportError("to_arviz needs ArviZ: pip install 'symbayes[arviz]'") from error
    return arviz


def _contain(
    arviz: Any, groups: dict[str, dict[str, Variable]], coords: dict[str, Any], attrs: dict
) -> Any:
    """Return the groups as this version of ArviZ wants them, each with the coordinates it needs."""
    import xarray as xr

    datasets = {}
    for name, variables in groups.items():
        dims = {dim for variable in variables.values() for dim in variable[0]}
        needed = {dim: values for dim, values in coords.items() if dim in dims}
        datasets[name] = xr.Dataset(variables, needed, attrs)
    # Not by hasattr: ArviZ 1.x answers the question with a warning.
    if (inference_data := vars(arviz).get("InferenceData")) is not None:
        return inference_data(attrs=attrs, **datasets)
    tree = xr.DataTree.from_dict(datasets)
    tree.attrs = attrs
    return tree


def _quantities(result: Result, picks: np.ndarray) -> dict[str, Variable]:
    """Return what every formula has, for each draw."""
    mixture = result.posterior.mixture
    models = [fit for _, fit in mixture.models]
    mse = np.array([fit.mse for fit in models])
    uses = np.zeros((len(models), result.n_columns), np.int8)
    for i, fit in enumerate(models):
        uses[i, result.used[columns_of(fit.state)]] = 1
    n_terms = np.array([len(fit.state.trees) for fit in models])
    n_nodes = np.array([fit.state.n_nodes for fit in models])
    of_fit = {"description": "of the least-squares fit, on all training rows"}
    return {
        "n_terms": (_DRAW, n_terms[picks], {"description": "number of terms"}),
        "n_nodes": (_DRAW, n_nodes[picks], {"description": _SIZE}),
        "rmse": (_DRAW, np.sqrt(mse[picks]) * mixture.y_scale, of_fit),
        "r2": (_DRAW, 1.0 - mse[picks] * (mixture.y_scale / mixture.y_spread) ** 2, of_fit),
        "uses": ((*_DRAW, "column"), uses[picks], {"description": "1 if it uses the column"}),
    }


def _log_likelihood_of_trees(mixture: Mixture, picks: np.ndarray) -> Variable:
    values = np.array([fit.state.log_likelihood for _, fit in mixture.models])
    what = (
        "log p(y | trees, noise) with the best coefficients, for y of variance 1"
        if mixture.plug_in
        else "log p(y | trees), coefficients and noise integrated out, up to a constant"
    )
    return _DRAW, values[picks], {"description": what}


def _trees(result: Result, picks: np.ndarray) -> dict[str, Variable]:
    posterior, names = result.posterior, result.names
    models = [fit for _, fit in posterior.mixture.models]
    place = {state_key(state): i for i, state in enumerate(posterior.states)}
    states = np.array([place[state_key(fit.state)] for fit in models])
    # As objects, draws of the same formula share its text.
    formulas = np.array([str(fitted_formula(fit, names, result.used)) for fit in models], object)
    return {
        "formula": (_DRAW, formulas[picks], {"description": "with least-squares coefficients"}),
        "state": (
            _DRAW,
            states[picks],
            {"description": "the same for the same trees; the most probable are 0"},
        ),
    }


def _align(posterior: Posterior) -> tuple[list[int], np.ndarray, str]:
    """Return chains, the model of each of their draws, and how those were chosen.

    ArviZ wants chains of equal length, and weights it does not know. So each chain is resampled in
    its order, to as many draws as the longest has: what was held for long comes in a row. Where
    each draw counts the same and all are there, that changes nothing.
    """
    mixture = posterior.mixture
    place, stands_for = posterior.model_places, posterior.stands_for
    weights = [draws.weight * stands_for[draws.state] for draws in posterior.draws]
    chains = [i for i, weight in enumerate(weights) if weight.any()]
    n_draws = max(int(np.count_nonzero(weight)) for weight in weights)
    picks = [systematic(weights[i], n_draws) for i in chains]
    if len(chains) == len(weights) and all(
        np.array_equal(pick, np.arange(len(weight)))
        for pick, weight in zip(picks, weights, strict=True)
    ):
        how = "all draws of the chains"
    else:
        how = (
            "resampled from the draws of the chains by their weights, chain by chain and in their "
            f"order; {len(mixture.models)} of {len(posterior.states)} states were fitted, and "
            "chains without one are left out"
        )
    return (
        chains,
        np.array([place[posterior.draws[i].state[p]] for i, p in zip(chains, picks, strict=True)]),
        how,
    )
