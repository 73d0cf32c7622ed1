"""A fitted model as a file: what is kept, and what has to hold for it when it is read.

Formulas are not kept, but the fits that they are made of, which give them again to the last bit. Of
the paper's sampler the path is not kept: it would need all training rows.

What is the same is stored once: trees, of which states are made, and states, of which the visited
ones come first and behind them those of models that differ from them (known terms put in front,
constants polished).
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
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
from ..posterior.front import drawn_front
from ..posterior.posterior import LISTED, Draws, Group, Member, Posterior
from ..posterior.prediction import Mixture
from ..posterior.table import formula_table, front_table, with_shares
from ..result import Result
from .archive import Arrays, DamagedFile, naming, path_text, read_archive, require, write_archive
from .values import (
    LARGEST,
    SMALLEST,
    Field,
    ValueReader,
    ValueWriter,
    check_arrays,
    check_kinds,
    check_lengths,
    checked_nodes,
    kind_of,
    nodes_to_arrays,
    split,
)

_KIND, _VERSION = "model", 1
#: What entries of a document are, as `check_kinds` says it, and those that are checked when read.
_KINDS = {
    "operators": "[str]", "n_columns": "int", "names": "[str] | None", "target": "str",
    "best": "int", "rounded": "[None] | [str] | [None or str]",
}  # fmt: skip
_OTHERS = {"parameters", "near", "digits", "diagnostics", "history"}
# Entries that files of versions without a front, or without a tolerance, do not have.
_LATER = {"front", "trust"}

# Numbers of a state, of a model, vectors of a model and numbers of a mixture, in the order of their
# rows in arrays, with the least that each may be.
_STATE = {"weight": 0.0, "log_likelihood": -LARGEST, "noise_variance": 0.0}
_MODEL = {"intercept": -LARGEST, "mse": 0.0, "noise_variance": 0.0, "coefficient_spread": 0.0}
_VECTORS = {"coefficients": -LARGEST, "centre": -LARGEST, "length": SMALLEST, "beta": -LARGEST}
_MIXTURE = {"y_mean": -LARGEST, "y_scale": SMALLEST, "y_spread": SMALLEST, "n": 1.0}


def _rows(least: Mapping[str, float], size: str, most: Any = LARGEST) -> Field:
    return Field("float64", (len(least), size), np.array([*least.values()])[:, None], most)


# To evaluate a tree takes memory for every node.
_MOST_NODES = 10_000
#: All arrays of a file but those of its values (`ValueWriter`).
_LAYOUT = {
    # Columns that vary, and the rows that plots and reports show.
    "used": Field("int32", ("used",), 0, "columns"),
    "range": Field("float64", (2, "used")),
    "rows/x": Field("float64", ("rows", "columns")),
    "rows/y": Field("float64", ("rows",)),
    "rows/weights": Field("float64", ("rows",), SMALLEST),
    "rows/position": Field("int64", ("rows",), 0),
    # Trees one after the other, and states of which each is some of them.
    "trees/length": Field("int32", ("trees",), 1, _MOST_NODES),
    "trees/op": Field("uint8", ("nodes",), 0, "operators", lengths="trees/length"),
    "trees/feature": Field("int32", ("nodes",), 0, "used"),
    "trees/a": Field("float64", ("nodes",)),
    "trees/b": Field("float64", ("nodes",)),
    "states/visited": Field("int32", (), 1),
    "states/length": Field("int32", ("states",), 0),
    "states/tree": Field("int32", ("terms of states",), 0, "trees", lengths="states/length"),
    "states/numbers": _rows(_STATE, "states"),
    # Draws, chain by chain.
    "chains/weight": Field("float64", ("chains",), SMALLEST),
    "draws/length": Field("int32", ("chains",), 1),
    "draws/state": Field("int32", ("draws",), 0, "states", lengths="draws/length"),
    "draws/weight": Field("float64", ("draws",), SMALLEST),
    # Fits of states, those that predict, and those that are listed as formulas.
    "models/state": Field("int32", ("models",), 0, "states"),
    "models/numbers": _rows(_MODEL, "models", np.array([[LARGEST], [LARGEST], [LARGEST], [1.0]])),
    "models/vectors": _rows(_VECTORS, "terms of models"),
    "models/inverse_root": Field("float64", ("squares",)),
    "mixture/model": Field("int32", ("models to predict with",), 0, "models"),
    "mixture/weight": Field("float64", ("models to predict with",), 0.0),
    "mixture/numbers": Field("float64", (6,), np.array([*_MIXTURE.values(), SMALLEST, SMALLEST])),
    "mixture/plug_in": Field("bool", ()),
    "groups/model": Field("int32", ("formulas",), 0, "models"),
    "groups/weight": Field("float64", ("formulas",), 0.0),
    "groups/length": Field("int32", ("formulas",), 1),
    "groups/member": Field("int32", ("members",), 0, "states", lengths="groups/length"),
    "inclusion": Field("float64", ("used",), 0.0, 1.0),
    "r2": Field("float64", ("formulas",), -LARGEST, 1.0),
}
#: Those of the front, which belong to the entry of that name.
_FRONT_LAYOUT = {
    "front/model": Field("int32", ("members of the front",), 0, "models"),
    "front/group": Field("int32", ("members of the front",), -1, "formulas"),
    "front/r2": Field("float64", ("members of the front",), -LARGEST, 1.0),
    "front/log_evidence": Field("float64", ("members of the front",), None),
}
#: What files of earlier versions do not have either.
_EVIDENCE_LAYOUT = {"log_evidence": Field("float64", ("formulas",), None)}
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
    "members of the front": (1, 2 * LISTED),
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
        kept = {name: arrays[name] for name in _LAYOUT | _FRONT_LAYOUT | _EVIDENCE_LAYOUT}
        _check(kept, document["n_columns"], document["operators"])
    except DamagedFile as damage:
        raise ValueError(f"this model cannot be saved: {damage.args[0]}") from None
    write_archive(path, _KIND, _VERSION, document, arrays)


# Writing.


def to_parts(model: Any, result: Result) -> tuple[dict[str, Any], Arrays]:
    """Return the parameters of an estimator and the result of its fit as a document and arrays."""
    rows, history = result.rows, result.history
    texts, rounded = result.formulas["formula"], result.formulas["rounded"]
    writer = ValueWriter()
    document = {
        "parameters": writer.parameters(model),
        # By name, since their numbers may be others in another version.
        "operators": [BY_OPCODE[code].name for code in range(1, N_OPCODES)],
        "n_columns": result.n_columns,
        "names": result.column_names and list(result.column_names),
        "target": result.target,
        "best": result.best,
        "near": writer.plain(result.one_standard_error_rmse),
        "trust": writer.plain(result.trust),
        # How many of each constant's digits mean something, where that is known.
        "digits": [one._digits and list(one._digits) for one in result.formula_objects],
        # None where it is the formula itself.
        "rounded": [
            None if same else text for text, same in zip(rounded, rounded == texts, strict=True)
        ],
        "diagnostics": writer.plain(result.diagnostics),
        "front": _front_to_document(result),
        "history": None if history is None else writer.plain(
            {name: history[name].to_numpy(dtype) for name, dtype in _HISTORY.items()}
        ),
    }  # fmt: skip
    arrays = {
        "used": rows.used.astype(np.int32),
        "range": np.array(result.ranges),
        "rows/x": rows.X,
        "rows/y": rows.y,
        "rows/weights": rows.weights,
        "rows/position": rows.row_numbers.astype(np.int64),
        "r2": result.formulas["r2"].to_numpy(np.float64),
    }
    arrays["front/r2"] = result.front["r2"].to_numpy(np.float64)
    arrays |= _posterior_to_arrays(result.posterior) | writer.arrays()
    # Those of a model that joblib left on disk are of another class.
    return document, {name: np.asarray(array) for name, array in arrays.items()}


def _front_to_document(result: Result) -> dict[str, Any]:
    texts, rounded = result.front["formula"], result.front["rounded"]
    return {
        "best": result.best_of_front,
        "digits": [one._digits and list(one._digits) for one in result.front_objects],
        "rounded": [
            None if text == plain else text for text, plain in zip(rounded, texts, strict=True)
        ],
    }


class _Distinct(dict[Hashable, tuple[int, Any]]):
    """Things in the order in which they came, by what tells them apart."""

    def place(self, key: Hashable, thing: Any) -> int:
        """Return where a thing is, which is at the end if it is new."""
        return self.setdefault(key, (len(self), thing))[0]

    @property
    def things(self) -> list[Any]:
        """What has a place."""
        return [thing for _, thing in self.values()]


def _posterior_to_arrays(posterior: Posterior) -> Arrays:
    trees, states, models = _Distinct(), _Distinct(), _Distinct()

    def place_of_state(state: State) -> int:
        places = tuple(trees.place(tree.tobytes(), tree) for tree in state.trees)
        return states.place((places, _numbers([state], _STATE).tobytes()), (places, state))

    def place_of_model(model: Model) -> int:
        place = place_of_state(model.state)
        numbers, vectors = _numbers([model], _MODEL), _vectors([model])
        key = (place, *(array.tobytes() for array in (numbers, vectors, model.inverse_root)))
        return models.place(key, (place, model))

    mixture, groups, draws = posterior.mixture, posterior.groups, posterior.draws
    visited = np.array([place_of_state(state) for state in posterior.states], np.int32)
    n_visited = len(states)
    in_mixture = _integers(place_of_model(model) for _, model in mixture.models)
    in_groups = _integers(place_of_model(one.model) for one in groups)
    members = [sorted(one.members) for one in groups]
    in_front = _integers(place_of_model(one.model) for one in posterior.front)
    fits = [model for _, model in models.things]
    numbers = [*(getattr(mixture, name) for name in _MIXTURE), *mixture.noise_prior]
    return {
        "trees/length": _integers(map(len, trees.things)),
        **nodes_to_arrays("trees", trees.things),
        "states/visited": np.array(n_visited, np.int32),
        "states/length": _integers(len(places) for places, _ in states.things),
        "states/tree": _integers(i for places, _ in states.things for i in places),
        "states/numbers": _numbers([state for _, state in states.things], _STATE),
        "chains/weight": posterior.chain_weights,
        "draws/length": _integers(len(one.state) for one in draws),
        "draws/state": visited[np.concatenate([one.state for one in draws])],
        "draws/weight": np.concatenate([one.weight for one in draws]).astype(float),
        "models/state": _integers(place for place, _ in models.things),
        "models/numbers": _numbers(fits, _MODEL),
        "models/vectors": _vectors(fits),
        "models/inverse_root": np.concatenate([fit.inverse_root.ravel() for fit in fits]),
        "mixture/model": in_mixture,
        "mixture/weight": mixture.weights,
        "mixture/numbers": np.array(numbers, np.float64),
        "mixture/plug_in": np.array(mixture.plug_in, np.bool_),
        "groups/model": in_groups,
        "groups/weight": np.array([one.weight for one in groups], np.float64),
        "groups/length": _integers(map(len, members)),
        "groups/member": visited[[i for group in members for i in group]],
        "log_evidence": np.array([one.log_evidence for one in groups], np.float64),
        "inclusion": posterior.inclusion,
        "front/model": in_front,
        "front/group": _integers(one.group for one in posterior.front),
        "front/log_evidence": np.array([one.log_evidence for one in posterior.front], np.float64),
    }


def _integers(numbers: Iterable[int]) -> np.ndarray:
    return np.fromiter(numbers, np.int32)


def _numbers(items: Sequence[Any], names: Iterable[str]) -> np.ndarray:
    return np.array([[getattr(item, name) for item in items] for name in names], np.float64)


def _vectors(models: Sequence[Model]) -> np.ndarray:
    return np.array([np.concatenate([getattr(one, name) for one in models]) for name in _VECTORS])


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


def _check(arrays: Arrays, n_columns: int, operators: list[str]) -> np.ndarray:
    """Complain about arrays that are not those of a model; return the nodes of its trees."""
    require(
        len(operators) < 256 and OPERATORS.keys() >= set(operators),
        "it has an operator that this version of symbayes does not have",
    )
    # Our number of each operator of the file, that of a column first.
    opcodes = np.array([FEATURE, *(OPERATORS[name].opcode for name in operators)], np.uint8)
    layout = _LAYOUT | (_FRONT_LAYOUT if "front/model" in arrays else {})
    layout |= _EVIDENCE_LAYOUT if "log_evidence" in arrays else {}
    sizes = check_arrays(arrays, layout, {"columns": n_columns, "operators": len(opcodes)})
    for what, (least, most) in _SIZES.items():
        n = sizes.get(what, least)
        require(least <= n <= most, f"it has {n} {what}, and a file can have {least} to {most}")
    require(
        (np.diff(arrays["used"]) > 0).all() and (np.diff(arrays["range"], axis=0) >= 0).all(),
        "its columns or their ranges are impossible",
    )
    length = arrays["trees/length"].astype(np.int64)
    own = arrays | {"trees/op": opcodes[arrays["trees/op"]]}
    nodes = checked_nodes("trees", own, length, np.ones_like(length), sizes["used"])
    terms = arrays["states/length"][arrays["models/state"]].astype(np.int64)
    check_lengths("models/vectors", arrays["models/vectors"], terms)
    check_lengths("models/inverse_root", arrays["models/inverse_root"], terms**2)

    visited, member = int(arrays["states/visited"]), arrays["groups/member"]
    require(
        max(visited - 1, arrays["draws/state"].max(), member.max()) < min(visited, sizes["states"]),
        "it has a draw or a formula of a state that was not visited",
    )
    require(len(np.unique(member)) == len(member), "a state is of more than one formula")
    for what, weights in (
        ("states", arrays["states/numbers"][0, :visited]), ("chains", arrays["chains/weight"]),
        ("models", arrays["mixture/weight"]), ("formulas", arrays["groups/weight"]),
    ):  # fmt: skip
        smallest = 0.0 if what == "formulas" else 1.0 - _ROUNDING  # not all are listed
        fine = smallest <= weights.sum() <= 1.0 + _ROUNDING
        require(fine, f"the probabilities of the {what} are impossible")
    # Of all formulas together, as often as a tree occurs in them.
    trees_of_states = split(arrays["states/tree"], arrays["states/length"])
    shown = np.append(arrays["groups/model"], arrays.get("front/model", np.empty(0, np.int32)))
    states_shown = arrays["models/state"][shown].tolist()
    require(
        sum(length[trees_of_states[i]].sum() for i in states_shown) <= _MOST_NODES_SHOWN,
        f"its formulas have more than {_MOST_NODES_SHOWN} nodes together",
    )
    return nodes


# Reading.


def load_model(
    kind: Any, path: str | os.PathLike[str], max_bytes: int
) -> tuple[dict[str, Any], Result]:
    """Read the parameters of an estimator of a class and the result of its fit from a file."""
    document, arrays = read_archive(path, _KIND, _VERSION, max_bytes=max_bytes)
    with naming(path_text(path)):
        return _from_parts(kind, document, arrays)


def _from_parts(
    kind: Any, document: dict[str, Any], arrays: Arrays
) -> tuple[dict[str, Any], Result]:
    """Return the parameters and the result that a document and arrays hold, or refuse them."""
    require(
        document.keys() - _LATER == _KINDS.keys() | _OTHERS,
        "its document does not have the expected entries",
    )
    check_kinds("document", document, _KINDS)
    n, names, best = document["n_columns"], document["names"], document["best"]
    require(1 <= n <= _SIZES["columns"][1], "its number of columns is impossible")
    require(
        names is None or len(names) == len(set(names)) == n,
        "its names of columns are not one per column, all different",
    )
    reader = ValueReader(arrays)
    parameters = reader.parameters(kind, document["parameters"])
    near = reader.value(document["near"])
    require(type(near) is float and near >= 0.0, "one of its errors is no number")
    trust = reader.value(document.get("trust", 1.0))
    require(type(trust) is float and 0.0 < trust <= 1.0, "what its rows count is impossible")
    diagnostics = reader.value(document["diagnostics"])
    history = _history(reader.value(document["history"]))
    reader.finish()
    nodes = _check(arrays, n, document["operators"])
    posterior = _posterior(arrays, nodes)
    _check_diagnostics(diagnostics, len(posterior.draws))

    used = arrays["used"].astype(np.int64)
    shown_names = names or [f"x{i}" for i in range(n)]
    _check_settings(kind(**parameters), shown_names, used)
    formulas, table = _formulas(posterior, used, shown_names, arrays, document)
    require(0 <= best < len(formulas), "its best formula is none of its formulas")
    posterior, front, front_objects, of_front = _front(
        posterior, used, shown_names, arrays, document, formulas, table
    )
    table, front = with_shares(posterior, table, front)
    rows = [arrays[f"rows/{name}"] for name in ("x", "y", "weights")]
    result = Result(
        posterior=posterior,
        rows=Table(*rows, used, arrays["rows/position"]),  # type: ignore[call-arg]
        ranges=tuple(arrays["range"]),
        column_names=names,
        target=document["target"],
        formulas=table,
        formula_objects=formulas,
        best=best,
        front=front,
        front_objects=front_objects,
        best_of_front=of_front,
        one_standard_error_rmse=near,
        diagnostics=Diagnostics(diagnostics),
        history=history,
        trust=trust,
    )
    return parameters, result


def _posterior(arrays: Arrays, nodes: np.ndarray) -> Posterior:
    """Return the posterior of arrays that were checked."""

    def parts(name: str, lengths: str) -> list[np.ndarray]:
        return split(arrays[name], arrays[lengths])

    trees = split(nodes, arrays["trees/length"])
    states = [
        State(tuple(trees[i] for i in places.tolist()), *numbers)
        for places, numbers in zip(
            parts("states/tree", "states/length"), arrays["states/numbers"].T.tolist(), strict=True
        )
    ]
    of_models = arrays["models/state"]
    terms = arrays["states/length"][of_models].astype(np.int64)
    models = [
        Model(
            state=states[i],
            inverse_root=root.reshape(k, k),
            probe=np.empty(0),
            **dict(zip(_MODEL, numbers, strict=True)),
            **dict(zip(_VECTORS, vectors, strict=True)),
        )
        for i, k, numbers, vectors, root in zip(
            of_models.tolist(),
            terms.tolist(),
            arrays["models/numbers"].T.tolist(),
            split(arrays["models/vectors"], terms),
            split(arrays["models/inverse_root"], terms**2),
            strict=True,
        )
    ]
    weights, places = arrays["mixture/weight"].tolist(), arrays["mixture/model"].tolist()
    *numbers, nu, lam = arrays["mixture/numbers"].tolist()
    draws = zip(
        parts("draws/state", "draws/length"), parts("draws/weight", "draws/length"), strict=True
    )
    groups = zip(
        arrays["groups/weight"].tolist(),
        arrays["groups/model"].tolist(),
        parts("groups/member", "groups/length"),
        arrays.get("log_evidence", np.full(len(arrays["groups/weight"]), np.nan)).tolist(),
        strict=True,
    )
    return Posterior(
        states=states[: int(arrays["states/visited"])],
        draws=[Draws(state.astype(np.int64), weight) for state, weight in draws],
        chain_weights=arrays["chains/weight"],
        mixture=Mixture(
            [(weight, models[i]) for weight, i in zip(weights, places, strict=True)],
            **dict(zip(_MIXTURE, numbers, strict=True)),
            noise_prior=(nu, lam),
            plug_in=bool(arrays["mixture/plug_in"]),
        ),
        groups=[
            Group(weight, models[i], frozenset(of.tolist()), evidence)
            for weight, i, of, evidence in groups
        ],
        inclusion=arrays["inclusion"],
        front=[
            Member(models[i], group, evidence)
            for i, group, evidence in zip(
                *(arrays[f"front/{name}"].tolist() for name in ("model", "group", "log_evidence")),
                strict=True,
            )
        ]
        if "front/model" in arrays
        else [],
    )


def _front(
    posterior: Posterior,
    used: np.ndarray,
    names: Sequence[str],
    arrays: Arrays,
    document: dict[str, Any],
    formulas: list[Formula],
    table: pd.DataFrame,
) -> tuple[Posterior, pd.DataFrame, list[Formula], int | None]:
    """Return the posterior with its front, the table of that, its formulas and the best of them.

    Without an entry for it, the front is that of the formulas that were drawn.
    """
    entry = document.get("front")
    require(("front/model" in arrays) == (entry is not None), "a part of its front is missing")
    if entry is None:
        members = drawn_front(posterior.groups, table["n_nodes"].tolist())
        posterior = replace(posterior, front=members)
        places = [one.group for one in members]
        objects = [formulas[i] for i in places]
        rows = table.iloc[places]
        texts = rows["rounded"].tolist()
        shown = front_table(posterior, objects, rows["r2"].tolist(), texts)
        return posterior, shown, objects, None
    kinds = {"best": "int | None", "rounded": "[None] | [str] | [None or str]"}
    check_kinds("front", entry, kinds)
    require(entry.keys() == {*kinds, "digits"}, "its front does not have the expected entries")
    models = [one.model for one in posterior.front]
    objects, texts = _shown(models, used, names, entry)
    try:
        shown = front_table(posterior, objects, arrays["front/r2"].tolist(), texts)
    except RecursionError:
        raise DamagedFile("a formula is nested too deeply") from None
    best = entry["best"]
    require(best is None or 0 <= best < len(objects), "the best of its front is not there")
    return posterior, shown, objects, best


def _formulas(
    posterior: Posterior,
    used: np.ndarray,
    names: Sequence[str],
    arrays: Arrays,
    document: dict[str, Any],
) -> tuple[list[Formula], pd.DataFrame]:
    """Return the formulas of a posterior and their table."""
    models = posterior.formula_models
    formulas, texts = _shown([fit for _, fit in models], used, names, document)
    try:
        table = formula_table(posterior, formulas, arrays["r2"].tolist(), texts)
    except RecursionError:
        raise DamagedFile("a formula is nested too deeply") from None
    return formulas, table


def _shown(
    models: Sequence[Model], used: np.ndarray, names: Sequence[str], document: dict[str, Any]
) -> tuple[list[Formula], list[str]]:
    """Return fits as formulas, and these with simple constants as text."""
    digits, rounded = document["digits"], document["rounded"]
    require(len(rounded) == len(models), "its rounded formulas are not one per formula")
    require(
        isinstance(digits, list) and len(digits) == len(models),
        "its numbers of digits are not those of its formulas",
    )
    formulas = []
    try:
        for fit, some in zip(models, digits, strict=True):
            expression = expression_of(fit, used)
            fine = some is None or (
                isinstance(some, list)
                and all(type(n) is int and 1 <= n <= ALL_DIGITS for n in some)
                and len(some) == len([*constants(expression)])
            )
            require(fine, "its numbers of digits are not those of its constants")
            formulas.append(Formula._from_expression(expression, names, some))
        texts = [
            str(formula) if text is None else text
            for formula, text in zip(formulas, rounded, strict=True)
        ]
    except RecursionError:
        raise DamagedFile("a formula is nested too deeply") from None
    return formulas, texts


# What is known of the run: entries that every file has; what is added later must be optional.

_HISTORY = {"chain": np.int64, "trees": np.int64, "rmse": np.float64, "n_nodes": np.int64}
_DIAGNOSTICS = {
    "proposals": "int", "evaluations": "int", "restarts": "int", "thinning": "int",
    "seconds": "float", "stacking_gain": "float | None", "verdict": "str", "interrupted": "bool",
    "timed_out": "bool", "settled": "bool", "converged": "bool", "chains_disagree": "bool",
    "search_agreed": "bool | None", "acceptance": "{str: float} | {}", "r_hat": "{str: float} | {}",
    "effective_draws": "{str: float} | {}", "found": "[(float, str)] | []",
}  # fmt: skip
#: The same for entries with one value per chain; without temperatures some are empty.
_BY_CHAIN = {
    "log_likelihood": "[float64 1]", "log_likelihood_by_temperature": "[float64 2]",
    "leading_by_chain": "[float]", "stacking_weights": "[float] | None",
    "powers": "[float64 1] | []", "swap_rates": "[float64 1] | []", "round_trips": "[int] | []",
}  # fmt: skip


def _check_diagnostics(diagnostics: Any, n_chains: int) -> None:
    check_kinds("diagnostics", diagnostics, _DIAGNOSTICS | _BY_CHAIN)
    for name in _BY_CHAIN:
        n = len(diagnostics[name] or ())
        require(n in (0, n_chains), f"{name!r} of its diagnostics is impossible")


def _history(columns: Any) -> pd.DataFrame | None:
    """Return the record of the paper's sampler as a table again."""
    if columns is None:
        return None
    require(
        isinstance(columns, dict)
        and list(columns) == list(_HISTORY)
        and all(kind_of(columns[name]) == f"{np.dtype(of)} 1" for name, of in _HISTORY.items())
        and len({len(column) for column in columns.values()}) == 1,
        "its history is impossible",
    )
    return pd.DataFrame(columns)
