"""A fitted model in ArviZ's schema."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from typing import Any

import numpy as np
from scipy.stats import norm

from ..formula.checks import require_count
from ..inputs.parameters import generator
from ..posterior.posterior import Posterior, columns_of, state_key, systematic
from ..posterior.table import fitted_formula
from ..result import Result
from ..version import __version__

# What ArviZ 0.x says of ArviZ 1.x whenever it is imported; to_arviz is ready for both.
_OF_ITS_FUTURE = r"\s*ArviZ is undergoing a major refactor"
_DRAW = ("chain", "draw")


def to_arviz(result: Result, max_rows: int, random_state: Any) -> Any:
    """Return the draws in ArviZ's schema; the estimator's method says what the groups contain.

    Examples
    --------
    >>> from symbayes import BayesianSymbolicRegressor
    >>> from symbayes.datasets import paper_task
    >>> X, y = paper_task("f2", random_state=0)
    >>> model = BayesianSymbolicRegressor(["+", "square", "cube"], random_state=0).fit(X, y)
    >>> data = model.to_arviz()
    >>> data["posterior"]["uses"].mean(["chain", "draw"]).sel(column="x1").item()
    1.0
    >>> data["trees"]["formula"].dims
    ('chain', 'draw')
    """
    require_count("to_arviz", "max_rows", max_rows)
    rng = generator(random_state)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", _OF_ITS_FUTURE, FutureWarning)
            import arviz
    except ImportError as error:
        raise ImportError("to_arviz needs ArviZ: pip install 'symbayes[arviz]'") from error
    import xarray as xr

    posterior, mixture = result.posterior, result.posterior.mixture
    chains, picks, how = _align(posterior)
    rows = result.rows.sample(int(max_rows))
    means, noise = mixture.sample_from(picks.ravel(), rows.X[:, result.used], rng)
    means, noise = means.reshape(*picks.shape, -1), noise.reshape(picks.shape)
    fits = [fit for _, fit in mixture.models]
    mse = np.array([fit.mse for fit in fits])
    uses = np.zeros((len(fits), result.n_columns), np.int8)
    for i, fit in enumerate(fits):
        uses[i, result.used[columns_of(fit.state)]] = 1
    place = {state_key(state): i for i, state in enumerate(posterior.states)}
    # As objects, draws of the same formula share its text.
    formulas = [str(fitted_formula(fit, result.names, result.used)) for fit in fits]
    likelihood = (
        "log p(y | trees, noise) with the best coefficients, for y of variance 1"
        if mixture.plug_in
        else "log p(y | trees), coefficients and noise integrated out, up to a constant"
    )

    def by_draw(values: Any, description: str, *more_dims: str) -> tuple:
        """Return a variable: what each fitted model has, for every draw that is of it."""
        return (*_DRAW, *more_dims), np.asarray(values)[picks], {"description": description}

    # Variables are dimensions, values and, where the name does not say it, what they are.
    of_fit = "of the least-squares fit, on all training rows"
    groups: dict[str, dict[str, tuple]] = {
        "posterior": {
            "n_terms": by_draw([len(fit.state.trees) for fit in fits], "number of terms"),
            # Smaller than the column of the same name in `formulas_`.
            "n_nodes": by_draw(
                [fit.state.n_nodes for fit in fits],
                "nodes of all trees as sampled, without coefficients, intercept and the signs "
                "between them",
            ),
            "rmse": by_draw(np.sqrt(mse) * mixture.y_scale, of_fit),
            "r2": by_draw(1.0 - mse * (mixture.y_scale / mixture.y_spread) ** 2, of_fit),
            "uses": by_draw(uses, "1 if it uses the column", "column"),
            "noise": (_DRAW, noise, {"description": "standard deviation, in units of y"}),
        },
        "sample_stats": {
            "log_likelihood_of_trees": by_draw(
                [fit.state.log_likelihood for fit in fits], likelihood
            )
        },
        "log_likelihood": {
            "y": (
                (*_DRAW, "row"),
                rows.weights * norm.logpdf(rows.y, means, noise[..., None]),
                {"description": "log p(y | trees, coefficients, noise), times the row weight"},
            )
        },
        "posterior_predictive": {
            "y": ((*_DRAW, "row"), means + noise[..., None] * rng.normal(size=means.shape))
        },
        "observed_data": {"y": ("row", rows.y)},
        "constant_data": {"X": (("row", "column"), rows.X), "weight": ("row", rows.weights)},
        "trees": {
            "formula": by_draw(np.array(formulas, object), "with least-squares coefficients"),
            "state": by_draw(
                [place[state_key(fit.state)] for fit in fits],
                "the same for the same trees; the most probable are 0",
            ),
        },
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
        "chain_weights": posterior.chain_weights[chains].tolist(),
    }
    datasets = {}
    for name, variables in groups.items():
        dataset = xr.Dataset(variables, attrs=attrs)
        datasets[name] = dataset.assign_coords({dim: coords[dim] for dim in dataset.dims})
    # Not by hasattr: ArviZ 1.x answers the question with a warning.
    if (inference_data := vars(arviz).get("InferenceData")) is not None:
        return inference_data(attrs=attrs, **datasets)
    tree = xr.DataTree.from_dict(datasets)
    tree.attrs = attrs
    return tree


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
