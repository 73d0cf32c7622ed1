"""A fitted model as a file: what is kept, and what has to hold for it when it is read.

Formulas are not kept, but the fits that they are made of, which give them again to the last bit. Of
the paper's sampler the path is not kept: it would need all training rows.
"""

from __future__ import annotations

import os
from typing import Any, TypeVar

import numpy as np

from ..fitting.fitter import expression_of
from ..formula.expression import Expression, constants
from ..formula.formula import Formula
from ..formula.operators import operator_weights
from ..formula.printing import ALL_DIGITS
from ..inputs.column_weights import resolve_feature_weights
from ..inputs.parameters import check_parameters, check_seed, terms_for
from ..inputs.validation import FEWEST_ROWS, Table, feature_names
from ..posterior.diagnostics import Diagnostics
from ..posterior.listing import formula_table
from ..posterior.posterior import Posterior
from .archive import Arrays, damaged, read_archive, write_archive
from .parts import Parts
from .plain_values import ValueReader, ValueWriter
from .posterior_parts import from_arrays, operator_names, to_arrays
from .stored_parameters import parameters_from_plain, parameters_to_plain
from .stored_records import check_diagnostics, history_from, history_of
from .stored_zip import Damage

Estimator = TypeVar("Estimator")

_KIND, _VERSION = "model", 1
# Without names of their own, columns have names that take far more memory than a file.
_MOST_COLUMNS = 1_000_000
# A file may have one tree in many formulas, and to write them all takes time.
_MOST_NODES_SHOWN = 500_000
_KEYS = {
    "parameters", "operators", "n_columns", "names", "target", "best", "near", "digits", "rounded",
    "diagnostics", "history",
}  # fmt: skip


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file."""
    document, arrays = to_parts(model)
    try:
        from_parts(type(model), document, arrays)  # what is written can be read
    except Damage as damage:
        raise ValueError(f"this model cannot be saved: {damage}") from None
    write_archive(path, _KIND, _VERSION, document, arrays)


def load_model(kind: type[Estimator], path: str | os.PathLike[str], max_bytes: int) -> Estimator:
    """Read a fitted model of a class from a file."""
    document, arrays = read_archive(path, _KIND, _VERSION, max_bytes=max_bytes)
    try:
        return from_parts(kind, document, arrays)
    except Damage as damage:
        raise damaged(path, str(damage)) from None


def to_parts(model: Any) -> tuple[dict[str, Any], Arrays]:
    """Return a fitted model as a document and arrays."""
    names = getattr(model, "feature_names_in_", None)
    texts, rounded = model.formulas_["formula"], model.formulas_["rounded"]
    writer = ValueWriter()
    document = {
        "parameters": parameters_to_plain(writer, model),
        # Their numbers may be others in another version.
        "operators": operator_names(),
        "n_columns": int(model.n_features_in_),
        "names": None if names is None else [_storable(str(name)) for name in names],
        "target": _storable(model._target),
        "best": model.formula_objects_.index(model.best_formula_),
        "near": writer.plain(model._near),
        # How many of each constant's mean something, where that is known.
        "digits": [
            None if formula._digits is None else list(formula._digits)
            for formula in model.formula_objects_
        ],
        # Where it is the formula itself, that is enough to know.
        "rounded": [
            None if same else text for text, same in zip(rounded, rounded == texts, strict=True)
        ],
        "diagnostics": writer.plain(model.diagnostics_),
        "history": writer.plain(history_of(model)),
    }
    rows = model._rows
    arrays = {
        "used": model._used.astype(np.int32),
        "range": np.array(model._range),
        "rows/x": rows.X,
        "rows/y": rows.y,
        "rows/weights": rows.weights,
        "rows/position": rows.row_numbers.astype(np.int64),
        "r2": model.formulas_["r2"].to_numpy(np.float64),
    }
    arrays |= to_arrays(model._posterior) | writer.arrays()
    # Those of a model that joblib left on disk are of another class.
    return document, {name: np.asarray(array) for name, array in arrays.items()}


def _storable(name: str) -> str:
    """Refuse a name that JSON turns into another: with two halves of a character as two."""
    if name.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") != name:
        raise ValueError(f"the column name {name!r} is no valid text; rename it")
    return name


def from_parts(kind: type[Estimator], document: dict[str, Any], arrays: Arrays) -> Estimator:
    """Return the fitted model of a class that a document and arrays hold, or raise a Damage."""
    if document.keys() != _KEYS:
        raise Damage("its document does not have the expected entries")
    parts = Parts(arrays)
    reader = ValueReader(parts)
    model: Any = kind(**parameters_from_plain(reader, kind, document["parameters"]))
    _set_columns(model, document["n_columns"], document["names"])
    _set_rows(model, parts)
    _check_settings(model)
    model._posterior = from_arrays(parts, document["operators"], len(model._used))
    model._near = reader.value(document["near"])
    if not (type(model._near) is float and model._near >= 0.0):
        raise Damage("one of its errors is no number")
    _set_formulas(model, parts, document["best"], document["digits"], document["rounded"])
    model._target = document["target"]
    if not isinstance(model._target, str):
        raise Damage("the name of its target is no text")
    diagnostics = reader.value(document["diagnostics"])
    check_diagnostics(diagnostics, len(model._posterior.draws))
    model.diagnostics_ = Diagnostics(diagnostics)
    history = history_from(reader.value(document["history"]))
    if history is not None:
        model.history_ = history
    reader.finish()
    parts.finish()
    return model


def _set_columns(model: Any, n: Any, names: Any) -> None:
    if type(n) is not int or not 1 <= n <= _MOST_COLUMNS:
        raise Damage("its number of columns cannot be")
    model.n_features_in_ = n
    if names is None:
        return
    if (
        not isinstance(names, list)
        or len(names) != n
        or not all(isinstance(name, str) for name in names)
        or len(set(names)) != n
    ):
        raise Damage("its names of columns are not one text a column, all different")
    model.feature_names_in_ = np.array(names, dtype=object)


def _set_rows(model: Any, parts: Parts) -> None:
    n = model.n_features_in_
    used = parts.indices("used", (None,), n).astype(np.int64)
    low, high = parts.within("range", np.float64, (2, len(used)))
    X = parts.within("rows/x", np.float64, (None, n))
    y = parts.within("rows/y", np.float64, (len(X),))
    weights = parts.within("rows/weights", np.float64, (len(X),), np.nextafter(0.0, 1.0))
    if len(used) == 0 or (np.diff(used) <= 0).any() or (low > high).any() or len(X) < FEWEST_ROWS:
        raise Damage("its columns or its rows cannot be")
    model._used, model._range, model._told = used, (low, high), set()
    position = parts.within("rows/position", np.int64, (len(X),), 0)
    model._rows = Table(X, y, weights, used, position)


def _check_settings(model: Any) -> None:
    """Complain about parameters as `fit` would."""
    try:
        terms_for(check_parameters(model), model.n_terms)
        operator_weights(model.operators)
        check_seed(model.random_state)
        resolve_feature_weights(model.feature_weights, feature_names(model), model._used)
    except (TypeError, ValueError, OverflowError) as error:
        raise Damage(f"one of its parameters cannot be: {str(error)[:300]}") from None


def _set_formulas(model: Any, parts: Parts, best: Any, digits: Any, rounded: Any) -> None:
    posterior: Posterior = model._posterior
    models, names = posterior.formula_models, tuple(feature_names(model))
    if (
        not isinstance(rounded, list)
        or len(rounded) != len(models)
        or not all(text is None or isinstance(text, str) for text in rounded)
    ):
        raise Damage("its rounded formulas are not one text a formula")
    if not isinstance(digits, list) or len(digits) != len(models):
        raise Damage("its numbers of digits are not those of its formulas")
    if type(best) is not int or not 0 <= best < len(models):
        raise Damage("its best formula is none of its formulas")
    if sum(fit.state.n_nodes for _, fit in models) > _MOST_NODES_SHOWN:
        raise Damage(f"its formulas have more than {_MOST_NODES_SHOWN} nodes together")
    r2 = parts.within("r2", np.float64, (len(models),), most=1.0)
    try:
        expressions = [expression_of(fit, model._used) for _, fit in models]
        formulas = [
            Formula._from_expression(expression, names, _digits(expression, some))
            for expression, some in zip(expressions, digits, strict=True)
        ]
        texts = [
            str(formula) if text is None else text
            for formula, text in zip(formulas, rounded, strict=True)
        ]
        model.formulas_ = formula_table(
            models, formulas, posterior.mixture.y_scale, r2.tolist(), texts
        )
    except RecursionError:
        raise Damage("a formula is nested too deeply") from None
    model.formula_objects_, model.best_formula_ = formulas, formulas[best]


def _digits(expression: Expression, digits: Any) -> list[int] | None:
    if digits is None:
        return None
    if not (
        isinstance(digits, list)
        and all(type(n) is int and 1 <= n <= ALL_DIGITS for n in digits)
        and len(digits) == sum(1 for _ in constants(expression))
    ):
        raise Damage("its numbers of digits are not those of its constants")
    return digits
