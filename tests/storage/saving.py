"""What tests of saved models share: everything a fitted model can be asked, and files of models."""

from __future__ import annotations

import warnings

import numpy as np

from symbayes.storage.archive import write_archive
from symbayes.storage.model_file import to_parts


def answers(model, X):
    """Return all that a model answers, as bytes, so that nan is nan and every bit counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [*model.predict(X, return_std=True)]
        for kind in ("mean", "observation"):
            found += [*model.predict_interval(X, 0.8, kind)]
            found += [model.sample_predictive(X, 20, kind, random_state=3)]
        formulas = [*model.formula_objects_, *model.pareto_objects_]
        found += [formula.predict(np.asarray(X)) for formula in formulas]
    texts = [
        model.formulas_.to_csv(), model.pareto_.to_csv(), model.inclusion_probability().to_csv(),
        str(model.best_formula_), repr(model.select("one_standard_error")),
        repr(model.select("simplest within 0.1")),
        model.select("accuracy").text(digits=17), model.best_formula_.latex(),
        repr(dict(model.diagnostics_)),
    ]  # fmt: skip
    if hasattr(model, "history_"):
        texts.append(model.history_.to_csv())
    return [array.tobytes() for array in found], texts


def contents(model):
    """Return what a model keeps, in an order of its own, down to the bits."""
    posterior = model.result_.posterior
    objects = ("result_", "formula_objects_", "best_formula_")
    fields = ("posterior", "accepted", "run", "warned", "formula_objects", "front_objects")
    kept = {name: value for name, value in vars(model).items() if name not in objects}
    kept |= {name: value for name, value in vars(model.result_).items() if name not in fields}
    return {name: repr(_plain(value)) for name, value in kept.items()} | {
        "states": [_plain(state) for state in posterior.states],
        "draws": [_plain(draws) for draws in posterior.draws],
        "models": [(weight, _plain(model)) for weight, model in posterior.mixture.models],
        "groups": [
            (one.weight, _plain(one.model), sorted(one.members)) for one in posterior.groups
        ],
        "front": [
            (one.group, repr(one.log_evidence), _plain(one.model)) for one in posterior.front
        ],
        "inclusion": posterior.inclusion.tobytes(),
        "leading": posterior.leading_by_chain,
    }


def _plain(value):
    """Return arrays as bytes and objects as dicts."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value.tolist()
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.flags.c_contiguous, value.tobytes())
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if hasattr(value, "to_csv"):
        return (value.to_csv(), value.dtypes.to_dict())
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "__dataclass_fields__"):
        return {key: _plain(item) for key, item in vars(value).items() if key != "probe"}
    return value


def write_edited(model, path, edit):
    """Save a model after `edit(document, arrays)`, with checksums that fit."""
    document, arrays = to_parts(model, model.result_)
    arrays = {name: array.copy() for name, array in arrays.items()}
    edit(document, arrays)
    write_archive(path, "model", 1, document, arrays)
