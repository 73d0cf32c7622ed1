"""A fitted model as a file: what is kept, and what has to hold for it when it is read.

Formulas are not kept, but the fits that they are made of, which give them again to the last bit. Of
the paper's sampler the path is not kept: it would need all training rows.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pandas as pd

from ..fitting.fitter import expression_of
from ..formula.expression import Expression, constants
from ..formula.formula import Formula
from ..formula.operators import operator_weights
from ..formula.printing import ALL_DIGITS
from ..inputs.parameters import check_parameters, check_seed, terms_for
from ..inputs.prior import resolve_feature_weights
from ..inputs.validation import FEWEST_ROWS, Table
from ..posterior.diagnostics import Diagnostics
from ..posterior.posterior import Posterior
from ..posterior.table import formula_table
from ..result import Result
from .archive import Arrays, damaged, read_archive, write_archive
from .parts import Parts
from .plain_values import ValueReader, ValueWriter
from .posterior_parts import from_arrays, operator_names, to_arrays
from .stored_parameters import parameters_from_plain, parameters_to_plain
from .stored_records import check_diagnostics, history_from, history_of
from .stored_zip import Damage

_KIND, _VERSION = "model", 1
# Without names of their own, columns have names that take far more memory than a file.
_MOST_COLUMNS = 1_000_000
# A file may have one tree in many formulas, and to write them all takes time.
_MOST_NODES_SHOWN = 500_000
_KEYS = {
    "parameters", "operators", "n_columns", "names", "target", "best", "near", "digits", "rounded",
    "diagnostics", "history",
}  # fmt: skip


def save_model(model: Any, result: Result, path: str | os.PathLike[str]) -> None:
    """Write the parameters of an estimator and the result of its fit to a file."""
    document, arrays = to_parts(model, result)
    try:
        from_parts(type(model), document, arrays)  # what is written can be read
    except Damage as damage:
        raise ValueError(f"this model cannot be saved: {damage}") from None
    write_archive(path, _KIND, _VERSION, document, arrays)


def load_model(
    kind: Any, path: str | os.PathLike[str], max_bytes: int
) -> tuple[dict[str, Any], Result]:
    """Read the parameters of an estimator of a class and the result of its fit from a file."""
    document, arrays = read_archive(path, _KIND, _VERSION, max_bytes=max_bytes)
    try:
        return from_parts(kind, document, arrays)
    except Damage as damage:
        raise damaged(path, str(damage)) from None


def to_parts(model: Any, result: Result) -> tuple[dict[str, Any], Arrays]:
    """Return the parameters of an estimator and the result of its fit as a document and arrays."""
    names = result.column_names
    texts, rounded = result.formulas["formula"], result.formulas["rounded"]
    writer = ValueWriter()
    document = {
        "parameters": parameters_to_plain(writer, model),
        # Their numbers may be others in another version.
        "operators": operator_names(),
        "n_columns": result.n_columns,
        "names": None if names is None else [_storable(name) for name in names],
        "target": _storable(result.target),
        "best": result.best,
        "near": writer.plain(result.one_standard_error_rmse),
        # How many of each constant's mean something, where that is known.
        "digits": [
            None if formula._digits is None else list(formula._digits)
            for formula in result.formula_objects
        ],
        # Where it is the formula itself, that is enough to know.
        "rounded": [
            None if same else text for text, same in zip(rounded, rounded == texts, strict=True)
        ],
        "diagnostics": writer.plain(result.diagnostics),
        "history": writer.plain(history_of(result.history)),
    }
    rows = result.rows
    arrays = {
        "used": rows.used.astype(np.int32),
        "range": np.array(result.ranges),
        "rows/x": rows.X,
        "rows/y": rows.y,
        "rows/weights": rows.weights,
        "rows/position": rows.row_numbers.astype(np.int64),
        "r2": result.formulas["r2"].to_numpy(np.float64),
    }
    arrays |= to_arrays(result.posterior) | writer.arrays()
    # Those of a model that joblib left on disk are of another class.
    return document, {name: np.asarray(array) for name, array in arrays.items()}


def _storable(name: str) -> str:
    """Refuse a name that JSON turns into another: with two halves of a character as two."""
    if name.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") != name:
        raise ValueError(f"the column name {name!r} is no valid text; rename it")
    return name


def from_parts(
    kind: Any, document: dict[str, Any], arrays: Arrays
) -> tuple[dict[str, Any], Result]:
    """Return the parameters and the result that a document and arrays hold, or raise a Damage."""
    if document.keys() != _KEYS:
        raise Damage("its document does not have the expected entries")
    parts = Parts(arrays)
    reader = ValueReader(parts)
    parameters = parameters_from_plain(reader, kind, document["parameters"])
    column_names = _column_names(document["n_columns"], document["names"])
    rows, ranges = _rows(parts, document["n_columns"])
    names = column_names or [f"x{i}" for i in range(document["n_columns"])]
    _check_settings(kind(**parameters), names, rows.used)
    posterior = from_arrays(parts, document["operators"], len(rows.used))
    near = reader.value(document["near"])
    if not (type(near) is float and near >= 0.0):
        raise Damage("one of its errors is no number")
    best = document["best"]
    formulas, objects = _formulas(
        posterior, names, rows.used, parts, best, document["digits"], document["rounded"]
    )
    if not isinstance(document["target"], str):
        raise Damage("the name of its target is no text")
    diagnostics = reader.value(document["diagnostics"])
    check_diagnostics(diagnostics, len(posterior.draws))
    result = Result(
        posterior=posterior,
        rows=rows,
        ranges=ranges,
        column_names=column_names,
        target=document["target"],
        formulas=formulas,
        formula_objects=objects,
        best=best,
        one_standard_error_rmse=near,
        diagnostics=Diagnostics(diagnostics),
        history=history_from(reader.value(document["history"])),
    )
    reader.finish()
    parts.finish()
    return parameters, result


def _column_names(n: Any, names: Any) -> list[str] | None:
    if type(n) is not int or not 1 <= n <= _MOST_COLUMNS:
        raise Damage("its number of columns cannot be")
    if names is None:
        return None
    if (
        not isinstance(names, list)
        or len(names) != n
        or not all(isinstance(name, str) for name in names)
        or len(set(names)) != n
    ):
        raise Damage("its names of columns are not one text a column, all different")
    return names


def _rows(parts: Parts, n: int) -> tuple[Table, tuple[np.ndarray, np.ndarray]]:
    used = parts.indices("used", (None,), n).astype(np.int64)
    low, high = parts.within("range", np.float64, (2, len(used)))
    X = parts.within("rows/x", np.float64, (None, n))
    y = parts.within("rows/y", np.float64, (len(X),))
    weights = parts.within("rows/weights", np.float64, (len(X),), np.nextafter(0.0, 1.0))
    if len(used) == 0 or (np.diff(used) <= 0).any() or (low > high).any() or len(X) < FEWEST_ROWS:
        raise Damage("its columns or its rows cannot be")
    position = parts.within("rows/position", np.int64, (len(X),), 0)
    return Table(X, y, weights, used, position), (low, high)


def _check_settings(model: Any, names: list[str], used: np.ndarray) -> None:
    """Complain about parameters as `fit` would."""
    try:
        terms_for(check_parameters(model), model.n_terms)
        operator_weights(model.operators)
        check_seed(model.random_state)
        resolve_feature_weights(model.feature_weights, names, used)
    except (TypeError, ValueError, OverflowError) as error:
        raise Damage(f"one of its parameters cannot be: {str(error)[:300]}") from None


def _formulas(
    posterior: Posterior,
    names: list[str],
    used: np.ndarray,
    parts: Parts,
    best: Any,
    digits: Any,
    rounded: Any,
) -> tuple[pd.DataFrame, list[Formula]]:
    models = posterior.formula_models
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
        expressions = [expression_of(fit, used) for _, fit in models]
        formulas = [
            Formula._from_expression(expression, names, _digits(expression, some))
            for expression, some in zip(expressions, digits, strict=True)
        ]
        texts = [
            str(formula) if text is None else text
            for formula, text in zip(formulas, rounded, strict=True)
        ]
        table = formula_table(models, formulas, posterior.mixture.y_scale, r2.tolist(), texts)
    except RecursionError:
        raise Damage("a formula is nested too deeply") from None
    return table, formulas


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
