"""A fitted model as a file: what is kept, and what has to hold for it when it is read.

Formulas are not kept, but the fits that they are made of, which give them again to the last bit. Of
the paper's sampler the path is not kept: it would need all training rows.

What is the same is stored once: trees, of which states are made, and states, of which the visited
ones come first and behind them those of models that differ from them (known terms put in front,
constants polished).
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..fitting.model import Model, State, expression_of
from ..formula.expression import constants
from ..formula.formula import Formula
from ..formula.operators import BY_OPCODE, OPERATORS, operator_weights
from ..formula.printing import ALL_DIGITS
from ..inputs.parameters import check_parameters, check_seed, terms_for
from ..inputs.prior import resolve_feature_weights
from ..inputs.validation import FEWEST_ROWS, Table
from ..kernels.opcodes import FEATURE, N_OPCODES
from ..posterior.diagnostics import Diagnostics
from ..posterior.posterior import LISTED, Draws, Group, Posterior
from ..posterior.prediction import Mixture
from ..posterior.table import formula_table
from ..result import Result
from .archive import Arrays, DamagedFile, naming, path_text, read_archive, require, write_archive
from .values import (
    LARGEST,
    SMALLEST,
    Field,
    ValueReader,
    ValueWriter,
    check_arrays,
    check_lengths,
    check_trees,
    nodes_from,
    nodes_to_arrays,
    split,
)

_KIND, _VERSION = "model", 1
_KEYS = {
    "parameters", "operators", "n_columns", "names", "target", "best", "near", "digits", "rounded",
    "diagnostics", "history",
}  # fmt: skip

_STATE_NUMBERS = ("weight", "log_likelihood", "noise_variance")
_MODEL_NUMBERS = ("intercept", "mse", "noise_variance", "coefficient_spread")
# `probe` is of use only while formulas are told apart.
_MODEL_VECTORS = ("coefficients", "centre", "length", "beta")
# To evaluate a tree takes memory for every node.
_MOST_NODES = 10_000
#: All arrays of a file but those of its values (`ValueWriter`).
_LAYOUT = {
    # Columns that vary, and the rows that plots and reports show.
    "used": Field("int32", ("used",), places_in="columns"),
    "range": Field("float64", (2, "used")),
    "rows/x": Field("float64", ("rows", "columns")),
    "rows/y": Field("float64", ("rows",)),
    "rows/weights": Field("float64", ("rows",), SMALLEST),
    "rows/position": Field("int64", ("rows",), 0),
    # Trees one after the other, and states of which each is some of them.
    "trees/length": Field("int32", ("trees",), 1, _MOST_NODES),
    "trees/op": Field("uint8", ("nodes",), places_in="operators"),
    "trees/feature": Field("int32", ("nodes",), places_in="used"),
    "trees/a": Field("float64", ("nodes",)),
    "trees/b": Field("float64", ("nodes",)),
    "states/visited": Field("int32", (), 1),
    "states/length": Field("int32", ("states",), 0),
    "states/tree": Field("int32", ("terms of states",), places_in="trees"),
    "states/numbers": Field("float64", (len(_STATE_NUMBERS), "states")),
    # Draws, chain by chain.
    "chains/weight": Field("float64", ("chains",), SMALLEST),
    "draws/length": Field("int32", ("chains",), 1),
    "draws/state": Field("int32", ("draws",), places_in="states"),
    "draws/weight": Field("float64", ("draws",), SMALLEST),
    # Fits of states, those that predict, and those that are listed as formulas.
    "models/state": Field("int32", ("models",), places_in="states"),
    "models/numbers": Field("float64", (len(_MODEL_NUMBERS), "models")),
    "models/vectors": Field("float64", (len(_MODEL_VECTORS), "terms of models")),
    "models/inverse_root": Field("float64", ("squares",)),
    "mixture/model": Field("int32", ("models to predict with",), places_in="models"),
    "mixture/weight": Field("float64", ("models to predict with",)),
    "mixture/numbers": Field("float64", (6,)),
    "mixture/plug_in": Field("bool", ()),
    "groups/model": Field("int32", ("formulas",), places_in="models"),
    "groups/weight": Field("float64", ("formulas",)),
    "groups/length": Field("int32", ("formulas",), 1),
    "groups/member": Field("int32", ("members",), places_in="states"),
    "inclusion": Field("float64", ("used",), 0.0, 1.0),
    "r2": Field("float64", ("formulas",), -LARGEST, 1.0),
}
# In memory a tree or a state is ten times as large as it may be in a file, and without names of
# their own, columns have names that take far more memory than a file.
_SIZES: dict[str, tuple[int, float]] = {
    "columns": (1, 1_000_000),
    "used": (1, np.inf),
    "rows": (FEWEST_ROWS, np.inf),
    "trees": (0, 250_000),
    "states": (1, 250_000),
    "chains": (1, 250_000),
    "models": (1, 10_000),
    "models to predict with": (1, 10_000),
    "formulas": (1, LISTED),
}
# One tree may be in many formulas, and writing them all takes time.
_MOST_NODES_SHOWN = 500_000
# How far sums of probabilities may be from 1.
_ROUNDING = 1.0e-6


def save_model(model: Any, result: Result, path: str | os.PathLike[str]) -> None:
    """Write the parameters of an estimator and the result of its fit to a file."""
    document, arrays = to_parts(model, result)
    try:
        # What a reader would refuse, so that a model is never lost by saving it.
        _check_settings(model, result.names, result.used)
        kept = {name: arrays[name] for name in _LAYOUT}
        _check(kept, document["n_columns"], _opcodes(document["operators"]))
    except DamagedFile as damage:
        raise ValueError(f"this model cannot be saved: {damage.args[0]}") from None
    write_archive(path, _KIND, _VERSION, document, arrays)


def load_model(
    kind: Any, path: str | os.PathLike[str], max_bytes: int
) -> tuple[dict[str, Any], Result]:
    """Read the parameters of an estimator of a class and the result of its fit from a file."""
    document, arrays = read_archive(path, _KIND, _VERSION, max_bytes=max_bytes)
    with naming(path_text(path)):
        return _from_parts(kind, document, arrays)


# Writing.


def to_parts(model: Any, result: Result) -> tuple[dict[str, Any], Arrays]:
    """Return the parameters of an estimator and the result of its fit as a document and arrays."""
    names, history = result.column_names, result.history
    texts, rounded = result.formulas["formula"], result.formulas["rounded"]
    writer = ValueWriter()
    document = {
        "parameters": writer.parameters(model),
        # By name, since their numbers may be others in another version.
        "operators": [BY_OPCODE[code].name for code in range(1, N_OPCODES)],
        "n_columns": result.n_columns,
        "names": None if names is None else [_storable(name) for name in names],
        "target": _storable(result.target),
        "best": result.best,
        "near": writer.plain(result.one_standard_error_rmse),
        # How many of each constant's digits mean something, where that is known.
        "digits": [
            None if formula._digits is None else list(formula._digits)
            for formula in result.formula_objects
        ],
        # None where it is the formula itself.
        "rounded": [
            None if same else text for text, same in zip(rounded, rounded == texts, strict=True)
        ],
        "diagnostics": writer.plain(result.diagnostics),
        "history": writer.plain(
            None if history is None else {
                name: history[name].to_numpy(dtype) for name, dtype in _HISTORY.items()
            }
        ),
    }  # fmt: skip
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
    arrays |= _posterior_to_arrays(result.posterior) | writer.arrays()
    # Those of a model that joblib left on disk are of another class.
    return document, {name: np.asarray(array) for name, array in arrays.items()}


def _storable(name: str) -> str:
    """Refuse a name that JSON turns into another: with two halves of a character as two."""
    if name.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") != name:
        raise ValueError(f"the column name {name!r} is no valid text; rename it")
    return name


class _Distinct:
    """Things in the order in which they came, and where each is."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._place: dict[Hashable, int] = {}

    def append(self, key: Hashable, item: Any) -> None:
        self._place.setdefault(key, len(self.items))
        self.items.append(item)

    def place(self, key: Hashable, item: Any) -> int:
        """Return where a thing is, which is at the end if it is new."""
        if key not in self._place:
            self.append(key, item)
        return self._place[key]


def _posterior_to_arrays(posterior: Posterior) -> Arrays:
    trees, states, models = _Distinct(), _Distinct(), _Distinct()

    def places_of_trees(state: State) -> tuple[int, ...]:
        return tuple(trees.place(tree.tobytes(), tree) for tree in state.trees)

    def state_key(state: State) -> Hashable:
        return places_of_trees(state), _numbers([state], _STATE_NUMBERS).tobytes()

    for state in posterior.states:
        states.append(state_key(state), state)

    def place_of_model(model: Model) -> int:
        place = states.place(state_key(model.state), model.state)
        numbers = _numbers([model], _MODEL_NUMBERS).tobytes()
        vectors = _vectors([model]).tobytes(), model.inverse_root.tobytes()
        return models.place((place, numbers, *vectors), (place, model))

    mixture, groups, draws = posterior.mixture, posterior.groups, posterior.draws
    in_mixture = [place_of_model(model) for _, model in mixture.models]
    in_groups = [place_of_model(one.model) for one in groups]
    of_states = [places_of_trees(state) for state in states.items]
    fits = [model for _, model in models.items]
    numbers = (
        mixture.y_mean, mixture.y_scale, mixture.y_spread, mixture.n, *mixture.noise_prior,
    )  # fmt: skip
    return {
        "trees/length": _lengths(trees.items),
        **nodes_to_arrays("trees", trees.items),
        "states/visited": np.array(len(posterior.states), np.int32),
        "states/length": _lengths(of_states),
        "states/tree": _joined(of_states),
        "states/numbers": _numbers(states.items, _STATE_NUMBERS),
        "chains/weight": posterior.chain_weights,
        "draws/length": _lengths([one.state for one in draws]),
        "draws/state": np.concatenate([one.state for one in draws]).astype(np.int32),
        "draws/weight": np.concatenate([one.weight for one in draws]).astype(float),
        "models/state": np.array([place for place, _ in models.items], np.int32),
        "models/numbers": _numbers(fits, _MODEL_NUMBERS),
        "models/vectors": _vectors(fits),
        "models/inverse_root": np.concatenate([fit.inverse_root.ravel() for fit in fits]),
        "mixture/model": np.array(in_mixture, np.int32),
        "mixture/weight": mixture.weights,
        "mixture/numbers": np.array(numbers, np.float64),
        "mixture/plug_in": np.array(mixture.plug_in, np.bool_),
        "groups/model": np.array(in_groups, np.int32),
        "groups/weight": np.array([one.weight for one in groups], np.float64),
        "groups/length": _lengths([one.members for one in groups]),
        "groups/member": _joined([sorted(one.members) for one in groups]),
        "inclusion": posterior.inclusion,
    }


def _lengths(items: Sequence[Any]) -> np.ndarray:
    return np.array([len(item) for item in items], np.int32)


def _joined(items: Sequence[Sequence[int]]) -> np.ndarray:
    return np.array([place for item in items for place in item], np.int32)


def _numbers(items: Sequence[Any], names: Sequence[str]) -> np.ndarray:
    return np.array([[getattr(item, name) for item in items] for name in names], np.float64)


def _vectors(models: Sequence[Model]) -> np.ndarray:
    return np.array([np.concatenate([getattr(model, name) for model in models])
                     for name in _MODEL_VECTORS])  # fmt: skip


# Checks, of what is saved and of what is read.


def _check_settings(model: Any, names: Sequence[str], used: np.ndarray) -> None:
    """Complain about parameters as `fit` would."""
    try:
        terms_for(check_parameters(model), model.n_terms)
        operator_weights(model.operators)
        check_seed(model.random_state)
        resolve_feature_weights(model.feature_weights, names, used)
    except (TypeError, ValueError, OverflowError) as error:
        raise DamagedFile(f"one of its parameters is impossible: {str(error)[:300]}") from None


def _opcodes(names: Any) -> np.ndarray:
    """Return our number of each operator of a file, that of a column first."""
    require(isinstance(names, list) and len(names) < 256, "its operators are no list of names")
    require(
        all(isinstance(name, str) and name in OPERATORS for name in names),
        "it has an operator that this version of symbayes does not have",
    )
    return np.array([FEATURE, *(OPERATORS[name].opcode for name in names)], np.uint8)


def _check(arrays: Arrays, n_columns: int, opcodes: np.ndarray) -> None:
    """Complain about arrays that are not those of a model."""
    sizes = check_arrays(arrays, _LAYOUT, {"columns": n_columns, "operators": len(opcodes)})
    for what, (least, most) in _SIZES.items():
        n = sizes[what]
        require(least <= n <= most, f"it has {n} {what}, and a file can have {least} to {most}")
    require(
        (np.diff(arrays["used"]) > 0).all() and (np.diff(arrays["range"], axis=0) >= 0).all(),
        "its columns or their ranges are impossible",
    )
    length = arrays["trees/length"].astype(np.int64)
    nodes = nodes_from(arrays, "trees", opcodes[arrays["trees/op"]])
    check_trees("trees", nodes, length, np.ones_like(length), sizes["used"])
    for name, lengths in (("states/tree", "states/length"), ("draws/state", "draws/length"),
                          ("groups/member", "groups/length")):  # fmt: skip
        check_lengths(name, arrays[name], arrays[lengths])
    terms = arrays["states/length"][arrays["models/state"]].astype(np.int64)
    check_lengths("models/vectors", arrays["models/vectors"], terms)
    check_lengths("models/inverse_root", arrays["models/inverse_root"], terms**2)

    visited, member = int(arrays["states/visited"]), arrays["groups/member"]
    require(
        max(visited - 1, arrays["draws/state"].max(), member.max()) < min(visited, sizes["states"]),
        "it has a draw or a formula of a state that was not visited",
    )
    require(len(np.unique(member)) == len(member), "a state is of more than one formula")

    weight, _, noise_variance = arrays["states/numbers"]
    require((weight >= 0.0).all() and (noise_variance >= 0.0).all(), "a state has a number below 0")
    _, mse, noise_variance, spread = arrays["models/numbers"]
    lengths_of_columns = arrays["models/vectors"][_MODEL_VECTORS.index("length")]
    require(
        (mse >= 0.0).all()
        and (noise_variance >= 0.0).all()
        and ((spread >= 0.0) & (spread <= 1.0)).all()
        and (lengths_of_columns > 0.0).all(),
        "a model has an impossible number",
    )
    _, y_scale, y_spread, n, nu, lam = arrays["mixture/numbers"].tolist()
    require(
        y_scale > 0.0 and y_spread > 0.0 and n >= 1.0 and nu > 0.0 and lam > 0.0,
        "a number that predictions need is impossible",
    )
    for what, weights in (
        ("states", weight[:visited]), ("chains", arrays["chains/weight"]),
        ("models", arrays["mixture/weight"]), ("formulas", arrays["groups/weight"]),
    ):  # fmt: skip
        smallest = 0.0 if what == "formulas" else 1.0 - _ROUNDING  # not all are listed
        fine = (weights >= 0.0).all() and smallest <= weights.sum() <= 1.0 + _ROUNDING
        require(fine, f"the probabilities of the {what} are impossible")
    # Of all formulas together, as often as a tree occurs in them.
    ends = np.cumsum(arrays["states/length"], dtype=np.int64)
    sums = np.concatenate([[0], np.cumsum(length[arrays["states/tree"]])])
    nodes_of_states = sums[ends] - sums[ends - arrays["states/length"]]
    shown = nodes_of_states[arrays["models/state"][arrays["groups/model"]]].sum()
    require(
        shown <= _MOST_NODES_SHOWN,
        f"its formulas have more than {_MOST_NODES_SHOWN} nodes together",
    )


# Reading.


def _from_parts(
    kind: Any, document: dict[str, Any], arrays: Arrays
) -> tuple[dict[str, Any], Result]:
    """Return the parameters and the result that a document and arrays hold, or refuse them."""
    require(document.keys() == _KEYS, "its document does not have the expected entries")
    n, names, target = document["n_columns"], document["names"], document["target"]
    require(
        type(n) is int and 1 <= n <= _SIZES["columns"][1], "its number of columns is impossible"
    )
    require(
        names is None or (_are_texts(names, n) and len(set(names)) == n),
        "its names of columns are not one text per column, all different",
    )
    require(isinstance(target, str), "the name of its target is no text")
    reader = ValueReader(arrays)
    parameters = reader.parameters(kind, document["parameters"])
    near = reader.value(document["near"])
    require(type(near) is float and near >= 0.0, "one of its errors is no number")
    diagnostics = reader.value(document["diagnostics"])
    history = _history(reader.value(document["history"]))
    reader.finish()
    opcodes = _opcodes(document["operators"])
    _check(arrays, n, opcodes)
    posterior = _posterior(arrays, opcodes)
    _check_diagnostics(diagnostics, len(posterior.draws))

    used = arrays["used"].astype(np.int64)
    rows = [arrays[f"rows/{name}"] for name in ("x", "y", "weights")]
    formula_names = names or [f"x{i}" for i in range(n)]
    _check_settings(kind(**parameters), formula_names, used)
    formulas, table = _formulas(
        posterior, used, formula_names, arrays["r2"], document["digits"], document["rounded"]
    )
    best = document["best"]
    require(
        type(best) is int and 0 <= best < len(formulas), "its best formula is none of its formulas"
    )
    low, high = arrays["range"]
    result = Result(
        posterior=posterior,
        rows=Table(*rows, used, arrays["rows/position"]),  # type: ignore[call-arg]
        ranges=(low, high),
        column_names=names,
        target=target,
        formulas=table,
        formula_objects=formulas,
        best=best,
        one_standard_error_rmse=near,
        diagnostics=Diagnostics(diagnostics),
        history=history,
    )
    return parameters, result


def _are_texts(texts: Any, n: int, types: tuple[type, ...] = (str,)) -> bool:
    return (
        isinstance(texts, list)
        and len(texts) == n
        and all(isinstance(text, types) for text in texts)
    )


def _posterior(arrays: Arrays, opcodes: np.ndarray) -> Posterior:
    """Return the posterior of arrays that were checked."""
    nodes = nodes_from(arrays, "trees", opcodes[arrays["trees/op"]])
    trees = split("trees/op", nodes, arrays["trees/length"])
    states = [
        State(tuple(trees[i] for i in row.tolist()), *numbers)
        for row, numbers in zip(
            split("states/tree", arrays["states/tree"], arrays["states/length"]),
            arrays["states/numbers"].T.tolist(),
            strict=True,
        )
    ]
    of_models = arrays["models/state"]
    terms = arrays["states/length"][of_models].astype(np.int64)
    models = [
        Model(
            state=states[i],
            inverse_root=root.reshape(k, k),
            probe=np.empty(0),
            **dict(zip(_MODEL_NUMBERS, numbers, strict=True)),
            **dict(zip(_MODEL_VECTORS, vectors, strict=True)),
        )
        for i, k, numbers, vectors, root in zip(
            of_models.tolist(),
            terms.tolist(),
            arrays["models/numbers"].T.tolist(),
            split("models/vectors", arrays["models/vectors"], terms),
            split("models/inverse_root", arrays["models/inverse_root"], terms**2),
            strict=True,
        )
    ]
    weights, places = arrays["mixture/weight"].tolist(), arrays["mixture/model"].tolist()
    y_mean, y_scale, y_spread, n, nu, lam = arrays["mixture/numbers"].tolist()
    mixture = Mixture(
        models=[(weight, models[i]) for weight, i in zip(weights, places, strict=True)],
        y_mean=y_mean,
        y_scale=y_scale,
        y_spread=y_spread,
        n=n,
        noise_prior=(nu, lam),
        plug_in=bool(arrays["mixture/plug_in"]),
    )
    length = arrays["draws/length"]
    draws = zip(
        split("draws/state", arrays["draws/state"].astype(np.int64), length),
        split("draws/weight", arrays["draws/weight"], length),
        strict=True,
    )
    groups = zip(
        arrays["groups/weight"].tolist(),
        arrays["groups/model"].tolist(),
        split("groups/member", arrays["groups/member"], arrays["groups/length"]),
        strict=True,
    )
    return Posterior(
        states=states[: int(arrays["states/visited"])],
        draws=[Draws(*pair) for pair in draws],
        chain_weights=arrays["chains/weight"],
        mixture=mixture,
        groups=[Group(weight, models[i], frozenset(of.tolist())) for weight, i, of in groups],
        inclusion=arrays["inclusion"],
    )


def _formulas(
    posterior: Posterior,
    used: np.ndarray,
    names: Sequence[str],
    r2: np.ndarray,
    digits: Any,
    rounded: Any,
) -> tuple[list[Formula], pd.DataFrame]:
    """Return the formulas of a posterior and their table."""
    models = posterior.formula_models
    require(
        _are_texts(rounded, len(models), (str, type(None))),
        "its rounded formulas are not one text per formula",
    )
    require(
        isinstance(digits, list) and len(digits) == len(models),
        "its numbers of digits are not those of its formulas",
    )
    try:
        formulas = []
        for (_, fit), some in zip(models, digits, strict=True):
            expression = expression_of(fit, used)
            fine = some is None or (
                isinstance(some, list)
                and all(type(n) is int and 1 <= n <= ALL_DIGITS for n in some)
                and len(some) == sum(1 for _ in constants(expression))
            )
            require(fine, "its numbers of digits are not those of its constants")
            formulas.append(Formula._from_expression(expression, tuple(names), some))
        texts = [
            str(formula) if text is None else text
            for formula, text in zip(formulas, rounded, strict=True)
        ]
        table = formula_table(models, formulas, posterior.mixture.y_scale, r2.tolist(), texts)
    except RecursionError:
        raise DamagedFile("a formula is nested too deeply") from None
    return formulas, table


# What is known of the run. Those who show it expect these entries.

_HISTORY = {"chain": np.int64, "trees": np.int64, "rmse": np.float64, "n_nodes": np.int64}
#: What an entry of the diagnostics may be, in the words of `_kind`.
_DIAGNOSTICS = {
    "proposals": ["int"], "evaluations": ["int"], "restarts": ["int"], "thinning": ["int"],
    "seconds": ["float"], "stacking_gain": ["float", "NoneType"], "verdict": ["str"],
    "interrupted": ["bool"], "timed_out": ["bool"], "settled": ["bool"], "converged": ["bool"],
    "chains_disagree": ["bool"], "search_agreed": ["bool", "NoneType"],
    "acceptance": ["{str: float}", "{}"], "r_hat": ["{str: float}", "{}"],
    "effective_draws": ["{str: float}", "{}"], "found": ["[(float, str)]", "[]"],
}  # fmt: skip
#: The same for those of which there is one per chain; without temperatures some are empty.
_BY_CHAIN = {
    "log_likelihood": ["[float64 1]"], "log_likelihood_by_temperature": ["[float64 2]"],
    "leading_by_chain": ["[float]"], "stacking_weights": ["[float]", "NoneType"],
    "powers": ["[float64 1]", "[]"], "swap_rates": ["[float64 1]", "[]"],
    "round_trips": ["[int]", "[]"],
}  # fmt: skip


def _check_diagnostics(diagnostics: Any, n_chains: int) -> None:
    require(isinstance(diagnostics, dict), "its diagnostics are no dict")
    for name, kinds in (_DIAGNOSTICS | _BY_CHAIN).items():
        value = diagnostics.get(name)
        fine = name in diagnostics and _kind(value) in kinds
        if name in _BY_CHAIN and value:
            fine = fine and len(value) == n_chains
        require(fine, f"{name!r} of its diagnostics is impossible")


def _kind(value: Any) -> str:
    """Return the type of a value and of what is in it: "int", "[float64 1]", "{str: float}"."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name} {value.ndim}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_kind, value))})"
    if isinstance(value, list):
        return f"[{' or '.join({_kind(item) for item in value})}]"
    if isinstance(value, dict):
        kinds = {f"{_kind(key)}: {_kind(item)}" for key, item in value.items()}
        return f"{{{' or '.join(kinds)}}}"
    return type(value).__name__


def _history(columns: Any) -> pd.DataFrame | None:
    """Return the record of the paper's sampler as a table again."""
    if columns is None:
        return None
    require(
        isinstance(columns, dict)
        and list(columns) == list(_HISTORY)
        and all(_kind(columns[name]) == f"{np.dtype(of)} 1" for name, of in _HISTORY.items())
        and len({len(column) for column in columns.values()}) == 1,
        "its history is impossible",
    )
    return pd.DataFrame(columns)
